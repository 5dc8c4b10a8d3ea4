import { hash as digest } from '@stablelib/sha256';

/** SHA-256 of a text's UTF-8 bytes, as 64 hex digits. Lone surrogates have no UTF-8 form: none may be in the text. */
export type Sha256 = (text: string) => string;

/** What a host may offer: Node since 22.3, Bun and Deno do, as `process`. */
export interface HashingHost {
  getBuiltinModule?(id: 'node:crypto'): { readonly hash?: (algorithm: 'sha256', text: string, encoding: 'hex') => string } | undefined;
}

/** Two digits a byte. */
export const hexOf = (bytes: Uint8Array): string => Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');

/** The one that runs anywhere. */
export const portableSha256: Sha256 = (text) => hexOf(digest(new TextEncoder().encode(text)));

/** The host's own, faster by far, and got without an import: the root entry has none of Node's. `undefined` in a browser, on a worker, and in older Nodes. */
export function hostSha256(host: HashingHost | undefined = globalThis.process): Sha256 | undefined {
  const hash = host?.getBuiltinModule?.('node:crypto')?.hash;
  return hash === undefined ? undefined : (text) => hash('sha256', text, 'hex');
}

export const sha256: Sha256 = hostSha256() ?? portableSha256;
