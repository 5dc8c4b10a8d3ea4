// Was: a policy for a misspelt tool was silent in LangChain's middleware and in guardClient. Now: it is named with what
// there is, as soon as the tools are known.
import { Client as Client2 } from '@modelcontextprotocol/client';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { InMemoryTransport } from '@modelcontextprotocol/sdk/inMemory.js';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { Server } from '@modelcontextprotocol/sdk/server/index.js';
import { CallToolRequestSchema, ListToolsRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import { spillwayMiddleware } from 'spillway/adapters/langchain';
import { guardClient } from 'spillway/adapters/mcp';
import { beforeAll, describe, expect, it } from 'vitest';
import type { GuardLayerOptions } from '../../src/adapters/guarded/calls.ts';
import { nothingSeen } from '../adapters/frameworks/kit.ts';
import { langChainTools, loadLangChain, scriptedModel, type LangChain } from '../adapters/frameworks/langchain.ts';
import { SIDE_INSTALL_TIMEOUT_MS } from '../side-install.ts';

const MISSPELT = { policies: { wether: { effects: 'read' } } } as const satisfies GuardLayerOptions;

describe('a misspelt policy in LangChain', () => {
  let lc: LangChain;
  beforeAll(async () => {
    lc = await loadLangChain();
  }, SIDE_INSTALL_TIMEOUT_MS);
  const GO = { messages: [{ role: 'user', content: 'go' }] };
  const run = async (options: GuardLayerOptions): Promise<readonly string[]> => {
    const seen = nothingSeen();
    const middleware = [spillwayMiddleware({ ToolMessage: lc.ToolMessage, ...options })];
    const model = scriptedModel(lc, { calls: [{ id: 'c1', name: 'good', input: {} }], guarded: true }, seen);
    await lc.createAgent({ model, tools: langChainTools(lc, seen), middleware }).invoke(GO);
    return seen.ran;
  };

  it('R-2.9 ends the run at its first model call, naming it and the tools there are', async () => {
    await expect(run(MISSPELT)).rejects.toThrow(
      /policies of spillwayMiddleware has no option "wether"; it takes slow, good, bad, worded, strict/,
    );
  });

  it('R-2.9 one for a tool that is there changes nothing', async () => {
    expect(await run({ policies: { good: { effects: 'read' } } })).toEqual(['good']);
    expect(await run({})).toEqual(['good']);
  });
});

interface McpClient {
  connect(transport: never): Promise<void>;
  callTool(params: { name: string; arguments: Record<string, unknown> }): Promise<unknown>;
  listTools(params?: { cursor: string }): Promise<{ readonly tools: unknown; readonly nextCursor?: unknown }>;
}

/** A real server of two tools, and how often each method was asked. */
const connected = async (client: McpClient, asked: string[]): Promise<McpClient> => {
  const server = new McpServer({ name: 'test', version: '0' });
  for (const name of ['weather', 'news']) {
    server.registerTool(name, { description: 'a tool of the test', inputSchema: {} }, () => {
      asked.push(name);
      return { content: [{ type: 'text', text: 'fine' }] };
    });
  }
  const [ours, theirs] = InMemoryTransport.createLinkedPair();
  await Promise.all([client.connect(ours as never), server.connect(theirs)]);
  return client;
};
const ERROR = /policies of guardClient has no option "wether"; it takes weather, news/;

describe.each([
  ['1.x', () => new Client({ name: 'test', version: '0' }) as McpClient],
  ['2.x', () => new Client2({ name: 'test', version: '0' }) as unknown as McpClient],
])('a misspelt policy in guardClient, SDK %s', (_version, made) => {
  it('R-2.9 rejects when the tools are listed', async () => {
    const client = guardClient(await connected(made(), []), MISSPELT);
    await expect(client.listTools()).rejects.toThrow(ERROR);
  });

  it('R-2.9 rejects the first call, and each one after it, and nothing runs', async () => {
    const ran: string[] = [];
    const client = guardClient(await connected(made(), ran), MISSPELT);
    for (let call = 0; call < 2; call++)
      await expect(client.callTool({ name: 'weather', arguments: {} })).rejects.toThrow(ERROR);
    expect(ran).toEqual([]);
  });

  it('R-2.9 one for a tool that is there changes nothing', async () => {
    const ran: string[] = [];
    const client = guardClient(await connected(made(), ran), { policies: { weather: { effects: 'read' } } });
    expect(await client.callTool({ name: 'weather', arguments: {} })).toMatchObject({ content: [{ text: 'fine' }] });
    expect(((await client.listTools()).tools as readonly unknown[]).length).toBe(2);
    expect(ran).toEqual(['weather']);
  });
});

/** A server whose list has two pages, or cannot be had. */
const paged = async (lists: boolean): Promise<Client> => {
  // oxlint-disable-next-line typescript/no-deprecated
  const server = new Server({ name: 'test', version: '0' }, { capabilities: { tools: {} } });
  const tool = (name: string): { name: string; inputSchema: { type: 'object' } } => ({
    name,
    inputSchema: { type: 'object' },
  });
  server.setRequestHandler(ListToolsRequestSchema, ({ params }) => {
    if (!lists) throw new Error('no list');
    return params?.cursor === undefined
      ? { tools: [tool('weather')], nextCursor: 'second' }
      : { tools: [tool('news')] };
  });
  server.setRequestHandler(CallToolRequestSchema, () => ({ content: [{ type: 'text', text: 'fine' }] }));
  const client = new Client({ name: 'test', version: '0' });
  const [ours, theirs] = InMemoryTransport.createLinkedPair();
  await Promise.all([client.connect(ours), server.connect(theirs)]);
  return client;
};

describe('lists that are not whole', () => {
  it('R-2.9 a first page proves nothing, the last one does', async () => {
    const client = guardClient(await paged(true), MISSPELT);
    expect((await client.listTools()).nextCursor).toBe('second');
    await expect(client.listTools({ cursor: 'second' })).rejects.toThrow(ERROR);
    const right = guardClient(await paged(true), { policies: { news: {} } });
    expect(await right.callTool({ name: 'news', arguments: {} })).toMatchObject({ content: [{ text: 'fine' }] });
  });

  it('R-2.9 where no list can be had nothing is said to be wrong', async () => {
    const client = guardClient(await paged(false), MISSPELT);
    expect(await client.callTool({ name: 'weather', arguments: {} })).toMatchObject({ content: [{ text: 'fine' }] });
  });
});
