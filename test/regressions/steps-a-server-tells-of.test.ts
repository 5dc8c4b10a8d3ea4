// Was: what a server put into the `data` of its JSON-RPC error, such as the code of a step that was refused, was read
// as what became of the call: a payment was made five times, and said not to have run. Now: the server has answered, so
// its tool may have taken effect.
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { InMemoryTransport } from '@modelcontextprotocol/sdk/inMemory.js';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { CallToolRequestSchema, ListToolsRequestSchema, McpError } from '@modelcontextprotocol/sdk/types.js';
import { createSpillway, tool } from 'spillway';
import { guardClient } from 'spillway/adapters/mcp';
import { mcpConnection, mcpProvider } from 'spillway/providers/mcp';
import { describe, expect, it } from 'vitest';

const defaults = { retry: { initialDelayMs: 1, jitterPercent: 0 } } as const;

/** A client of a server whose tool pays, and then answers with an error that tells of a step after that. */
const paying = async (data: object): Promise<{ readonly client: Client; readonly paid: () => number }> => {
  let paid = 0;
  const { server } = new McpServer({ name: 'bank', version: '0' }, { capabilities: { tools: {} } });
  server.setRequestHandler(ListToolsRequestSchema, () => ({
    tools: [{ name: 'pay', inputSchema: { type: 'object' } }],
  }));
  server.setRequestHandler(CallToolRequestSchema, () => {
    paid++;
    throw new McpError(-32_603, 'paid, and could not send the receipt', data);
  });
  const [ours, theirs] = InMemoryTransport.createLinkedPair();
  const client = new Client({ name: 'test', version: '0' });
  await Promise.all([client.connect(ours), server.connect(theirs)]);
  return { client, paid: () => paid };
};

describe.each<readonly [string, object]>([
  ['refused', { code: 'ECONNREFUSED' }],
  ['throttled', { code: 'ThrottlingException' }],
  ['throttled, in its own body', { error: { type: 'rate_limit_error' } }],
  ['answered 503', { httpStatus: 503 }],
  ['answered 429', { httpStatus: 429 }],
])('a server that tells of a step that was %s', (_what, data) => {
  it('R-2.5 is asked once by a guarded client, whose model is told that it may have run', async () => {
    const { client, paid } = await paying(data);
    const told = await guardClient(client, { defaults }).callTool({ name: 'pay', arguments: {} });
    expect(JSON.stringify(told.content)).toContain('may have');
    expect(paid()).toBe(1);
  });

  it('R-2.5 is asked once by a provider', async () => {
    const { client, paid } = await paying(data);
    const bank = await mcpProvider({ name: 'bank', connect: () => Promise.resolve(mcpConnection(client)) });
    const [own] = bank.tools;
    const result = await createSpillway({ providers: [bank], defaults }).execute({
      toolName: own?.name ?? '',
      input: {},
    });
    expect(result).toMatchObject({ attempts: 1, error: { uncertain: true } });
    expect(paid()).toBe(1);
  });
});

describe('a tool that throws what its own client threw', () => {
  const refused = { code: 'ECONNREFUSED' };

  it.each<readonly [string, object]>([
    ['a step that was refused beside a code of JSON-RPC', { code: -32_603, data: refused }],
    ['a step that was throttled beside a code of JSON-RPC', { code: -32_603, data: { code: 'ThrottlingException' } }],
    ['a step that was refused in the body of an answer', { response: { status: 200, data: refused } }],
    ['a step that was refused in an answer of GraphQL', { extensions: refused }],
    ['a step that was refused beside a server’s own fault', { code: 'INTERNAL_SERVER_ERROR', data: refused }],
  ])('R-2.5 with %s: it runs once', async (_what, fields) => {
    let paid = 0;
    const pay = tool({
      name: 'pay',
      policy: { effects: 'mutating', ...defaults },
      execute: () => {
        paid++;
        throw Object.assign(new Error('paid, and could not send the receipt'), fields);
      },
    });
    expect(await createSpillway({ tools: [pay] }).execute({ toolName: 'pay' })).toMatchObject({
      error: { uncertain: true },
    });
    expect(paid).toBe(1);
  });
});
