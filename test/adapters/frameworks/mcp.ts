import { Client as Client2 } from '@modelcontextprotocol/client';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { InMemoryTransport } from '@modelcontextprotocol/sdk/inMemory.js';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { guardClient } from 'spillway/adapters/mcp';
import { z } from 'zod';
import {
  BEHAVIOUR,
  TIMEOUT_MS,
  behave,
  defaultsOf,
  type Framework,
  type ModelCall,
  type Script,
  type Seen,
} from './kit.ts';

/** A real server in this process. */
export function server(seen: Seen): McpServer {
  const made = new McpServer({ name: 'test', version: '0' });
  for (const name of Object.keys(BEHAVIOUR)) {
    const inputSchema = name === 'strict' ? { n: z.number() } : {};
    made.registerTool(
      name,
      { description: 'a tool of the test', inputSchema },
      async (_input: unknown, { signal }: { signal: AbortSignal }) => ({
        content: [{ type: 'text' as const, text: await behave(name, seen, signal) }],
      }),
    );
  }
  return made;
}

export async function connected(seen: Seen): Promise<Client> {
  const [ours, theirs] = InMemoryTransport.createLinkedPair();
  const client = new Client({ name: 'test', version: '0' });
  await Promise.all([client.connect(ours), server(seen).connect(theirs)]);
  return client;
}

export async function connected2(seen: Seen): Promise<Client2> {
  const [ours, theirs] = InMemoryTransport.createLinkedPair();
  const client = new Client2({ name: 'test', version: '0' });
  // The transports of both generations are the same but for the types of their messages.
  await Promise.all([
    client.connect(ours as unknown as Parameters<Client2['connect']>[0]),
    server(seen).connect(theirs),
  ]);
  return client;
}

interface CallOptions {
  readonly signal?: AbortSignal;
  readonly timeout?: number;
}
type Call = (call: ModelCall, options: CallOptions) => Promise<unknown>;

/** What a host does with a client: all calls at once, and the model is told each result, or error. */
export const runAll = async (
  calls: readonly ModelCall[],
  options: CallOptions,
  call: Call,
  seen: Seen,
): Promise<void> => {
  const one = async (made: ModelCall): Promise<void> => {
    const text = await call(made, options).then((result) => JSON.stringify(result), String);
    options.signal?.throwIfAborted();
    seen.told.set(made.id, text);
    seen.shown += text;
  };
  await Promise.all(calls.map(one));
};

const optionsOf = ({ guarded, signal, timeoutMs = TIMEOUT_MS }: Script): CallOptions => ({
  ...(guarded ? {} : { timeout: timeoutMs }),
  ...(signal === undefined ? {} : { signal }),
});
const paramsOf = ({ name, input }: ModelCall): { name: string; arguments: Record<string, unknown> } => ({
  name,
  arguments: input as Record<string, unknown>,
});

export const mcp: Framework = {
  name: 'MCP client of `@modelcontextprotocol/sdk` 1.32',
  entry: 'mcp: guardClient(client)',
  run: async (script, seen) => {
    const plain = await connected(seen);
    const client = script.guarded ? guardClient(plain, { defaults: defaultsOf(script) }) : plain;
    await runAll(
      script.calls,
      optionsOf(script),
      (call, options) => client.callTool(paramsOf(call), undefined, options),
      seen,
    );
  },
};

export const mcp2: Framework = {
  name: 'MCP client of `@modelcontextprotocol/client` 2.4',
  entry: 'mcp: guardClient(client)',
  run: async (script, seen) => {
    const plain = await connected2(seen);
    const client = script.guarded ? guardClient(plain, { defaults: defaultsOf(script) }) : plain;
    await runAll(script.calls, optionsOf(script), (call, options) => client.callTool(paramsOf(call), options), seen);
  },
};
