import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client, type ClientOptions } from '@modelcontextprotocol/sdk/client/index.js';
import { InMemoryTransport } from '@modelcontextprotocol/sdk/inMemory.js';
import type { CallToolResult, JSONRPCMessage } from '@modelcontextprotocol/sdk/types.js';
import { createMcpProxy, type McpProxy, type McpProxyOptions, type ProxiedServer } from '../../src/mcp-proxy/proxy.ts';
import { ROOT } from '../providers/support.ts';

export { ROOT };
export const NODE: string = process.execPath;
const FAULTS = join(import.meta.dirname, 'fault-server.ts');

/** A file in which a server keeps what it did. */
export interface Ledger {
  readonly path: string;
  readonly lines: () => readonly string[];
  readonly count: (line: string) => number;
  [Symbol.dispose](): void;
}

export const ledger = (): Ledger => {
  const folder = mkdtempSync(join(tmpdir(), 'mcp-proxy-'));
  const path = join(folder, 'ledger');
  const lines = (): readonly string[] => {
    try {
      return readFileSync(path, 'utf8').replace(/\n$/, '').split('\n');
    } catch {
      return [];
    }
  };
  return {
    path,
    lines,
    count: (line) => lines().filter((each) => each === line).length,
    [Symbol.dispose]: () => rmSync(folder, { recursive: true, force: true }),
  };
};

/** The server that suffers what it is told to. */
export const faults = (kept: Ledger, more: Omit<ProxiedServer, 'place'> = {}, startAs = ''): ProxiedServer => ({
  place: { command: NODE, args: [FAULTS, kept.path, startAs] },
  ...more,
});

/** What a client says and hears, message by message. */
export interface Seen {
  readonly from: 'client' | 'server';
  readonly message: JSONRPCMessage;
}

export interface Proxied {
  readonly client: Client;
  readonly proxy: McpProxy;
  readonly notes: readonly string[];
  readonly seen: readonly Seen[];
  /** Sends a message as it is. */
  readonly raw: (message: JSONRPCMessage) => Promise<void>;
  readonly call: (
    name: string,
    input?: Record<string, unknown>,
    meta?: Record<string, unknown>,
  ) => Promise<CallToolResult>;
  [Symbol.asyncDispose](): Promise<void>;
}

const CAPABILITIES = { roots: { listChanged: true }, sampling: {}, elicitation: {} };

/** A client of SDK 1 in front of a proxy, in one process; the servers run in their own. */
export async function proxied(
  servers: McpProxyOptions['servers'],
  options: Omit<McpProxyOptions, 'servers'> = {},
  { prepare, ...clientOptions }: ClientOptions & { readonly prepare?: (client: Client) => void } = {},
): Promise<Proxied> {
  const notes: string[] = [];
  const seen: Seen[] = [];
  const proxy = createMcpProxy({ servers, note: (line) => notes.push(line), ...options });
  const [near, far] = InMemoryTransport.createLinkedPair();
  const served = proxy.serve$(far, true).subscribe();
  const client = new Client({ name: 'test', version: '1' }, { capabilities: CAPABILITIES, ...clientOptions });
  prepare?.(client);
  const send = near.send.bind(near);
  near.send = (message, sendOptions) => {
    seen.push({ from: 'client', message });
    return send(message, sendOptions);
  };
  Object.assign(near, { onmessage: (message: JSONRPCMessage) => void seen.push({ from: 'server', message }) });
  await client.connect(near);
  return {
    client,
    proxy,
    notes,
    seen,
    raw: (message) => near.send(message),
    call: async (name, input = {}, meta = {}) =>
      (await client.callTool({ name, arguments: input, _meta: meta }, undefined, {
        timeout: 100_000,
      })) as CallToolResult,
    [Symbol.asyncDispose]: async () => {
      await client.close();
      served.unsubscribe();
      await proxy.close();
    },
  };
}

export const textOf = ({ content }: CallToolResult): string =>
  content.map((part) => (part.type === 'text' ? part.text : part.type)).join('\n');

/** A retry of a read that need not wait. */
export const QUICK = { initialDelayMs: 1, maxDelayMs: 5, maxAttempts: 4, maxTotalTimeMs: 60_000 } as const;
