import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { Client as Client2, StreamableHTTPClientTransport as Http2 } from '@modelcontextprotocol/client';
import { StdioClientTransport as Stdio2 } from '@modelcontextprotocol/client/stdio';
import { Client as Client1 } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport as Stdio1 } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport as Http1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { McpServer, createMcpHandler } from '@modelcontextprotocol/server';
import { Agent, MCPServerStdio, run } from '@openai/agents-core';
import { createSpillway } from 'spillway';
import { guardClient } from 'spillway/adapters/mcp';
import { guardMcpServer } from 'spillway/adapters/openai-agents';
import { mcpHttpProvider } from 'spillway/providers/mcp-http';
import { mcpStdioProvider } from 'spillway/providers/mcp-stdio';
import { describe, expect, it } from 'vitest';
import * as z from 'zod';
import { serveHttp } from '../../src/mcp-proxy/http/front.ts';
import { createMcpProxy } from '../../src/mcp-proxy/proxy.ts';
import { liveRuntime } from '../../src/runtime.ts';
import { nothingSeen } from '../adapters/frameworks/kit.ts';
import { scriptedModel } from '../adapters/frameworks/openai-agents.ts';
import { NODE, QUICK, ledger } from './kit.ts';
import { behind, type Command } from './wire-kit.ts';

const LIMIT_MS = 400;
const DEFAULTS = { timeoutMs: LIMIT_MS, retry: QUICK };
const INFO = { name: 'test', version: '1' };
const JSON_TYPE = { 'content-type': 'application/json' };
const STREAM_TYPE = { 'content-type': 'text/event-stream' };

/** What becomes of the answer to a payment that was made. */
const FATES: Readonly<Record<string, (response: ServerResponse) => unknown>> = {
  'is reset': (response) => response.socket?.destroy(),
  hangs: () => undefined,
  'is cut in two': (response) => response.writeHead(200, JSON_TYPE).write('{"jsonrpc":', () => response.destroy()),
  'is HTTP 500': (response) => response.writeHead(500, JSON_TYPE).end('{}'),
  'is HTTP 502': (response) => response.writeHead(502).end('<h1>Bad Gateway</h1>'),
  'is HTTP 504': (response) => response.writeHead(504).end(),
  'is HTTP 202': (response) => response.writeHead(202).end(),
  'is a stream that ends': (response) => response.writeHead(200, STREAM_TYPE).end(),
  'is a stream that ends behind an event with an id': (response) =>
    response.writeHead(200, STREAM_TYPE).end('id: 1\nretry: 10\ndata: \n\n'),
  'is a stream that is reset': (response) =>
    response.writeHead(200, STREAM_TYPE).write('id: 1\nretry: 10\ndata: \n\n', () => response.destroy()),
};

/** A bank of SDK 2 over HTTP, in both eras: it pays, and then its answer meets a fate. */
async function bankWith(fate: (response: ServerResponse) => unknown) {
  let paid = 0;
  const handler = createMcpHandler(() => {
    const server = new McpServer({ name: 'bank', version: '1' });
    server.registerTool('pay', { inputSchema: z.object({}) }, () => ({
      content: [{ type: 'text', text: `paid ${++paid}` }],
    }));
    return server;
  });
  const serve = async (incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> => {
    const { method = '', headers } = incoming;
    const body = await text(incoming);
    const request = new Request(`http://${String(headers.host)}/mcp`, {
      method,
      headers: headers as Record<string, string>,
      ...(body === '' ? {} : { body }),
    });
    const before = paid;
    const response = await handler.fetch(request);
    const answer = await response.text();
    if (paid > before) fate(outgoing);
    else outgoing.writeHead(response.status, Object.fromEntries(response.headers)).end(answer);
  };
  const server = createServer((incoming, outgoing) => void serve(incoming, outgoing));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}/mcp`,
    paid: () => paid,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

const split = ([command, ...args]: Command) => ({ command, args, stderr: 'ignore' as const });

type Pay = (url: string) => Promise<string>;
const told = (result: unknown): string => JSON.stringify(result);
const failed = (thrown: unknown): string => String(thrown);

/** What both generations have in common, but for the types of their messages. */
interface McpClient {
  connect(transport: never): Promise<void>;
  callTool(params: { name: string; arguments: Record<string, unknown> }): Promise<unknown>;
  close(): Promise<void>;
}
const client1 = (): McpClient => new Client1(INFO);
const client2 = (mode: 'legacy' | 'auto'): McpClient => new Client2(INFO, { versionNegotiation: { mode } });

const overHttp =
  (pay: Pay): Pay =>
  async (url) => {
    const proxy = createMcpProxy({ servers: { s: { place: { url } } }, defaults: DEFAULTS });
    const front = await serveHttp(proxy, { host: '127.0.0.1', port: 0, modern: true, runtime: liveRuntime });
    try {
      return await pay(front.url);
    } finally {
      await front.close();
      await proxy.close();
    }
  };
const asked = async (
  client: McpClient,
  transport: Http1 | Http2 | Stdio1 | Stdio2,
  calling: (client: McpClient) => McpClient = (same) => same,
): Promise<string> => {
  await client.connect(transport as never);
  const said = await calling(client).callTool({ name: 'pay', arguments: {} }).then(told, failed);
  await client.close();
  return said;
};
const guarded = (client: McpClient, transport: Http1 | Http2): Promise<string> =>
  asked(client, transport, (own) => guardClient(own, { defaults: DEFAULTS }));

const CLIENTS: Readonly<Record<string, Pay>> = {
  'SDK 1 through the proxy': overHttp((url) => asked(client1(), new Http1(new URL(url)))),
  'SDK 2, of 2025, through the proxy': overHttp((url) => asked(client2('legacy'), new Http2(new URL(url)))),
  'SDK 2, of 2026, through the proxy': overHttp((url) => asked(client2('auto'), new Http2(new URL(url)))),
  'SDK 1, guarded': (url) => guarded(client1(), new Http1(new URL(url))),
  'SDK 2, of 2025, guarded': (url) => guarded(client2('legacy'), new Http2(new URL(url))),
  'SDK 2, of 2026, guarded': (url) => guarded(client2('auto'), new Http2(new URL(url))),
  'a provider': async (url) => {
    const spillway = createSpillway({ providers: [await mcpHttpProvider({ name: 'bank', url })], defaults: DEFAULTS });
    const { error } = await spillway.execute({ toolName: 'bank.pay', input: {} });
    await spillway.close();
    return String(error?.modelText);
  },
};

describe.each(Object.entries(CLIENTS))('%s', (_client, pay) => {
  it.each(Object.entries(FATES))(
    'R-16.3 R-2.5 an answer that %s: paid once, and the model is told so',
    async (_name, fate) => {
      await using bank = await bankWith(fate);
      const said = await pay(bank.url);
      expect(bank.paid()).toBe(1);
      expect(said).toMatch(/may have/);
    },
  );
});

const BANK = join(import.meta.dirname, 'paying-server.ts');
/** How a bank that is a process ends once it has paid. */
const ENDS = ['kill', 'exit', 'freeze', 'hang', 'throw'];

/** Clients of the command itself, in front of a bank that is a process. */
const STDIO: Readonly<Record<string, (command: Command) => Promise<string>>> = {
  'SDK 1': (command) => asked(client1(), new Stdio1(split(command))),
  'SDK 2, of 2025': (command) => asked(client2('legacy'), new Stdio2(split(command))),
  'SDK 2, of 2026': (command) => asked(client2('auto'), new Stdio2(split(command))),
};

describe.each(Object.entries(STDIO))('%s over stdio', (_client, pay) => {
  it.each(ENDS)('R-16.3 R-2.5 a bank that pays and ends by %s: paid once', async (end) => {
    using kept = ledger();
    // Long enough for a bank on a busy machine to pay before it is given up.
    const timeoutMs = ['freeze', 'hang'].includes(end) ? '5000' : '20000';
    const said = await pay(behind([NODE, BANK, kept.path, end], '--timeout', timeoutMs));
    expect(kept.lines()).toEqual(['paid']);
    // What the server itself says of it passes.
    expect(said).toContain(end === 'throw' ? 'ECONNRESET' : 'may have');
  });
});

const PATIENT = { timeoutMs: 5_000, retry: QUICK };
const direct = (client: McpClient, transport: Stdio1 | Stdio2): Promise<string> =>
  asked(client, transport, (own) => guardClient(own, { defaults: PATIENT }));

const ofProvider = async ([command, ...args]: Command): Promise<string> => {
  const bank = await mcpStdioProvider({ name: 'bank', command, args });
  const spillway = createSpillway({ providers: [bank], defaults: PATIENT });
  const { error } = await spillway.execute({ toolName: 'bank.pay', input: {} });
  await spillway.close();
  return String(error?.modelText);
};

/** What the model of an agent is told, whose SDK has started the bank. */
const ofAgent = async ([command, ...args]: Command): Promise<string> => {
  const seen = nothingSeen();
  const model = scriptedModel({ calls: [{ id: 'c1', name: 'pay', input: {} }], guarded: true }, seen);
  const server = guardMcpServer(new MCPServerStdio({ command, args }), { defaults: PATIENT });
  await server.connect();
  try {
    await run(new Agent({ name: 'test', mcpServers: [server], model }), 'go');
  } finally {
    await server.close();
  }
  return String(seen.told.get('c1'));
};

/** Nothing between them and the bank. */
const DIRECT: typeof STDIO = {
  'SDK 1, guarded': (command) => direct(client1(), new Stdio1(split(command))),
  'SDK 2, of 2025, guarded': (command) => direct(client2('legacy'), new Stdio2(split(command))),
  'SDK 2, of 2026, guarded': (command) => direct(client2('auto'), new Stdio2(split(command))),
  'a provider': ofProvider,
  'OpenAI Agents, its server guarded': ofAgent,
};

describe.each(Object.entries(DIRECT))('%s over stdio', (_client, pay) => {
  it.each(ENDS)('R-2.5 a bank that pays and ends by %s: paid once', async (end) => {
    using kept = ledger();
    const said = await pay([NODE, BANK, kept.path, end]);
    expect(kept.lines()).toEqual(['paid']);
    expect(said).toMatch(/may have/i);
  });
});
