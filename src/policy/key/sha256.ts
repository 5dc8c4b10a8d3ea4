/** SHA-256 of a text's UTF-8 bytes, as 64 hex digits. Lone surrogates have no UTF-8 form: none may be in the text. */
export type Sha256 = (text: string) => string;

/** What a host may offer: Node since 22.3, Bun and Deno do, as `process`. */
export interface HashingHost {
  getBuiltinModule?(
    id: 'node:crypto',
  ): { readonly hash?: (algorithm: 'sha256', text: string, encoding: 'hex') => string } | undefined;
}

/** Two digits a byte. */
export const hexOf = (bytes: Uint8Array): string =>
  Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');

const WORDS = 64;
const BLOCK_BYTES = 64;

/** The first 32 bits behind the point. */
const fraction = (root: number): number => ((root % 1) * 2 ** 32) | 0;

const primes = (count: number): number[] => {
  const found: number[] = [];
  for (let next = 2; found.length < count; next++) if (found.every((prime) => next % prime !== 0)) found.push(next);
  return found;
};

/**
 * The constants of FIPS 180-4: of the cube roots of the first 64 primes, and to start from, of the square roots of the
 * first eight.
 */
const ROUNDS: readonly number[] = primes(WORDS).map((prime) => fraction(Math.cbrt(prime)));
const START: readonly number[] = primes(8).map((prime) => fraction(Math.sqrt(prime)));

const rotated = (word: number, bits: number): number => (word >>> bits) | (word << (32 - bits));

/** The text, a 1 bit, zeros, and the text's length in bits at the end of a block. */
const padded = (text: Uint8Array): DataView => {
  const bytes = new Uint8Array(Math.ceil((text.length + 9) / BLOCK_BYTES) * BLOCK_BYTES);
  bytes.set(text);
  bytes[text.length] = 0x80;
  const view = new DataView(bytes.buffer);
  view.setBigUint64(bytes.length - 8, BigInt(text.length) * 8n);
  return view;
};

/**
 * SHA-256 in plain JavaScript, which runs anywhere. It is our own, since the smallest library weighs nearly four times
 * as much with all that it does besides.
 */
export const portableSha256: Sha256 = (text) => {
  const blocks = padded(new TextEncoder().encode(text));
  const state = Int32Array.from(START);
  const words = new Int32Array(WORDS);
  const word = (at: number): number => words[at] as number;
  for (let block = 0; block < blocks.byteLength; block += BLOCK_BYTES) {
    for (let at = 0; at < 16; at++) words[at] = blocks.getInt32(block + at * 4);
    for (let at = 16; at < WORDS; at++) {
      const early = word(at - 15);
      const late = word(at - 2);
      words[at] =
        (rotated(late, 17) ^ rotated(late, 19) ^ (late >>> 10)) +
        word(at - 7) +
        (rotated(early, 7) ^ rotated(early, 18) ^ (early >>> 3)) +
        word(at - 16);
    }
    let [a, b, c, d, e, f, g, h] = state as unknown as [number, number, number, number, number, number, number, number];
    for (let at = 0; at < WORDS; at++) {
      const mixed =
        h +
        (rotated(e, 6) ^ rotated(e, 11) ^ rotated(e, 25)) +
        ((e & f) ^ (~e & g)) +
        (ROUNDS[at] as number) +
        word(at);
      const spread = (rotated(a, 2) ^ rotated(a, 13) ^ rotated(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
      h = g;
      g = f;
      f = e;
      e = (d + mixed) | 0;
      d = c;
      c = b;
      b = a;
      a = (mixed + spread) | 0;
    }
    for (const [at, value] of [a, b, c, d, e, f, g, h].entries()) state[at] = (state[at] as number) + value;
  }
  const digest = new DataView(new ArrayBuffer(32));
  for (const [at, value] of state.entries()) digest.setInt32(at * 4, value);
  return hexOf(new Uint8Array(digest.buffer));
};

/**
 * The host's own SHA-256, which is much faster. It is reached without an import, since the root entry imports nothing
 * of Node;
 * `undefined` in a browser, on a worker, and in older Nodes.
 */
export function hostSha256(host: HashingHost | undefined = globalThis.process): Sha256 | undefined {
  const hash = host?.getBuiltinModule?.('node:crypto')?.hash;
  return hash === undefined ? undefined : (text) => hash('sha256', text, 'hex');
}

export const sha256: Sha256 = hostSha256() ?? portableSha256;
