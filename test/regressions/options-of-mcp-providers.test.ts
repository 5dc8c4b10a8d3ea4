// Was: `mcpProvider` and `mcpStdioProvider` swallowed options that they do not have, and a client that is no connection
// failed far from its cause. Now: both are refused, naming the option, or what to give.
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { InMemoryTransport } from '@modelcontextprotocol/sdk/inMemory.js';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { describe, expect, it } from 'vitest';
import { mcpConnection, mcpProvider, type McpProviderOptions } from 'spillway/providers/mcp';
import { mcpStdioProvider, type McpStdioOptions } from 'spillway/providers/mcp-stdio';

const connected = async (): Promise<Client> => {
  const server = new McpServer({ name: 'box', version: '0' });
  server.registerTool('read', {}, () => ({ content: [] }));
  const [ours, theirs] = InMemoryTransport.createLinkedPair();
  const client = new Client({ name: 'test', version: '0' });
  await Promise.all([client.connect(ours), server.connect(theirs)]);
  return client;
};

describe('R-2.9 options of MCP providers', () => {
  it.each(['policies', 'timeoutMs', 'capabilities', 'command'])(
    'R-2.9 mcpProvider has no %s, and connects nothing',
    async (option) => {
      let connects = 0;
      const connect: McpProviderOptions['connect'] = async () => {
        connects++;
        return mcpConnection(await connected());
      };
      const options = { name: 'box', connect, [option]: {} };
      await expect(mcpProvider(options)).rejects.toThrow(
        new RangeError(
          `mcpProvider has no option "${option}"; it takes name, connect, connectTimeoutMs, show, tools, waiting, runtime`,
        ),
      );
      expect(connects).toBe(0);
    },
  );

  it.each(['policies', 'timeoutMs', 'capabilities', 'url'])(
    'R-2.9 mcpStdioProvider has no %s, and starts nothing',
    async (option) => {
      const options = { name: 'box', command: 'no-such-command-here', [option]: {} } as McpStdioOptions;
      const says = `mcpStdioProvider has no option "${option}"; it takes name, command, args, env, cwd, stderrLines, maxMessageBytes, connectTimeoutMs, show, handlers, tools, runtime`;
      await expect(mcpStdioProvider(options)).rejects.toThrow(new RangeError(says));
    },
  );

  it('R-2.9 connect must be a function', async () => {
    const client = await connected();
    await expect(mcpProvider({ name: 'box', connect: client as never })).rejects.toThrow(
      'connect must be a function that gives a connection, such as async () => mcpConnection(client), not object',
    );
    await client.close();
  });

  it.each<readonly [string, (client: Client) => unknown]>([
    ['a client', (client) => client],
    ['nothing', () => undefined],
    ['a connection without an end', (client) => ({ client, close: () => client.close() })],
  ])('R-2.9 %s is no connection: the error says what to give', async (_what, given) => {
    const client = await connected();
    const refused = mcpProvider({ name: 'box', connect: async () => given(client) as never });
    await expect(refused).rejects.toThrow(
      /connect must give a connection: wrap the client, as in async \(\) => mcpConnection\(client\)/,
    );
    await expect(refused).rejects.toMatchObject({
      kind: 'transport_error',
      executed: false,
      classification: 'permanent',
    });
    await client.close();
  });

  it('R-2.9 a connection is taken', async () => {
    const provider = await mcpProvider({ name: 'box', connect: async () => mcpConnection(await connected()) });
    expect(provider.tools.map(({ name }) => name)).toEqual(['box.read']);
    await provider.close();
  });
});
