import { Client as Client2 } from '@modelcontextprotocol/client';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { InMemoryTransport } from '@modelcontextprotocol/sdk/inMemory.js';
import { McpServer, type RegisteredTool } from '@modelcontextprotocol/sdk/server/mcp.js';
import { createSpillway, type ToolResultEnvelope } from 'spillway';
import { afterEach, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { mcpConnection, mcpProvider, type McpConnection, type McpProvider } from '../../../src/providers/mcp.ts';
import { mcpHttpProvider } from '../../../src/providers/mcp-http.ts';
import { mcpStdioProvider } from '../../../src/providers/mcp-stdio.ts';
import { httpServer } from './http-server.ts';
import { ROOT, context, failure, run, until } from '../support.ts';

const open: Array<{ close(): Promise<void> }> = [];
afterEach(() => Promise.all(open.splice(0).map((each) => each.close())));

const register = (server: McpServer, name: string, answer: string): RegisteredTool =>
  server.registerTool(name, { inputSchema: { n: z.number().optional() } }, () => ({
    content: [{ type: 'text', text: answer }],
  }));
const newServer = (): McpServer => {
  const server = new McpServer({ name: 'test', version: '0' });
  register(server, 'old', 'old');
  return server;
};
const connect1 = async (server: McpServer): Promise<McpConnection> => {
  const [ours, theirs] = InMemoryTransport.createLinkedPair();
  const client = new Client({ name: 'test', version: '0' });
  await Promise.all([client.connect(ours), server.connect(theirs)]);
  return mcpConnection(client);
};
const connect2 = async (server: McpServer): Promise<McpConnection> => {
  const [ours, theirs] = InMemoryTransport.createLinkedPair();
  const client = new Client2({ name: 'test', version: '0' });
  await Promise.all([client.connect(ours as unknown as Parameters<Client2['connect']>[0]), server.connect(theirs)]);
  return mcpConnection(client);
};
const provided = async (server: McpServer, connect = connect1): Promise<McpProvider> => {
  const provider = await mcpProvider({ name: 'box', connect: () => connect(server) });
  open.push(provider);
  return provider;
};
const names = ({ tools }: McpProvider): string[] => tools.map(({ name }) => name);
const brief = ({ status, output, error }: ToolResultEnvelope): unknown => output?.content ?? [status, error?.code];

describe.each([
  ['1', connect1],
  ['2', connect2],
])('tools/list_changed, SDK %s', (_generation, connect) => {
  it('R-12.2 a new tool is guarded by the layers that have the provider, a removed one is refused, one that stayed is the same', async () => {
    const server = newServer();
    const kept = register(server, 'kept', 'kept');
    const provider = await provided(server, connect);
    const spillway = createSpillway({
      providers: [provider],
      defaults: { timeoutMs: 1_000, retry: { maxAttempts: 1 } },
    });
    open.push(spillway);
    const before = provider.tools.find(({ name }) => name === 'box.kept');
    const hanging = server.registerTool('hanging', {}, () => new Promise<never>(() => undefined));
    await until(() => names(provider).includes('box.hanging'));
    expect(brief(await spillway.execute({ toolName: 'box.hanging' }))).toEqual(['timeout', 'timeout']);
    expect(spillway.tools.map(({ name }) => name)).toEqual(names(provider));
    hanging.remove();
    await until(() => !names(provider).includes('box.hanging'));
    expect(brief(await spillway.execute({ toolName: 'box.hanging' }))).toEqual(['error', 'unknown_tool']);
    expect(brief(await spillway.execute({ toolName: 'box.kept' }))).toBe('kept');
    expect(provider.tools.find(({ name }) => name === 'box.kept')).toBe(before);
    expect(kept.enabled).toBe(true);
  });

  it('R-12.2 another schema of a tool checks its input from then on', async () => {
    const server = newServer();
    const changing = register(server, 'changing', 'done');
    const provider = await provided(server, connect);
    const spillway = createSpillway({ providers: [provider] });
    open.push(spillway);
    expect(brief(await spillway.execute({ toolName: 'box.changing', input: { n: 1 } }))).toBe('done');
    const before = provider.tools;
    changing.update({ paramsSchema: { n: z.string() } });
    await until(() => provider.tools !== before);
    expect(brief(await spillway.execute({ toolName: 'box.changing', input: { n: 1 } }))).toEqual([
      'error',
      'invalid_parameters',
    ]);
    expect(brief(await spillway.execute({ toolName: 'box.changing', input: { n: 'one' } }))).toBe('done');
  });
});

describe('tools/list_changed', () => {
  it('R-12.2 whoever still holds a tool that is gone is told so, and the server is not asked', async () => {
    const server = newServer();
    let asked = 0;
    const passing = server.registerTool('passing', {}, () => {
      asked++;
      return { content: [] };
    });
    const provider = await provided(server);
    const held = createSpillway({ tools: [...provider.tools] });
    open.push(held);
    passing.remove();
    await until(() => !names(provider).includes('box.passing'));
    expect(brief(await held.execute({ toolName: 'box.passing' }))).toEqual(['error', 'unknown_tool']);
    expect(asked).toBe(0);
    register(server, 'passing', 'back');
    await until(() => names(provider).includes('box.passing'));
    expect(brief(await held.execute({ toolName: 'box.passing' }))).toBe('back');
  });

  it('R-12.2 a hundred changes at once are a few listings, and the last one counts', async () => {
    const server = newServer();
    let listings = 0;
    const provider = await mcpProvider({
      name: 'box',
      connect: async () => {
        const connection = await connect1(server);
        const { client } = connection;
        const listTools: typeof client.listTools = (...given) => {
          listings++;
          return client.listTools(...given);
        };
        return { ...connection, client: { listTools, callTool: (...given) => client.callTool(...given) } };
      },
    });
    open.push(provider);
    for (let n = 0; n < 100; n++) register(server, `t${n}`, 'x');
    await until(() => names(provider).length === 101);
    expect(listings).toBeLessThan(20);
  });

  it('R-12.2 a listing that fails leaves the list as it was', async () => {
    const server = newServer();
    let fails = false;
    let heard: (() => void) | undefined;
    let listings = 0;
    const provider = await mcpProvider({
      name: 'box',
      connect: async () => {
        const connection = await connect1(server);
        const listTools: typeof connection.client.listTools = (...given) => {
          listings++;
          return fails ? Promise.reject(new Error('not now')) : connection.client.listTools(...given);
        };
        return {
          ...connection,
          client: { listTools, callTool: (...given) => connection.client.callTool(...given) },
          toolsChanged: (tell) => (heard = tell),
        };
      },
    });
    open.push(provider);
    fails = true;
    heard?.();
    await until(() => listings === 2);
    expect(names(provider)).toEqual(['box.old']);
    expect(await run(provider, 'box.old', {})).toBe('old');
    fails = false;
    register(server, 'new', 'new');
    heard?.();
    await until(() => names(provider).includes('box.new'));
  });

  it('R-12.2 after a loss the list is the new server’s', async () => {
    const first = newServer();
    const second = newServer();
    register(second, 'second', 'second');
    const servers = [first, second];
    const provider = await mcpProvider({ name: 'box', connect: () => connect1(servers.shift() ?? second) });
    open.push(provider);
    await first.close();
    // The first call may be the one that finds out.
    expect(await run(provider, 'box.old', {}).catch(() => run(provider, 'box.old', {}))).toBe('old');
    expect(names(provider)).toEqual(['box.old', 'box.second']);
  });

  it('R-12.2 over HTTP, on the stream that the session listens on', async () => {
    const servers: McpServer[] = [];
    const server = await httpServer({ tools: (mcp) => void servers.push(mcp) });
    const provider = await mcpHttpProvider({ name: 'box', url: server.url });
    open.push(provider, { close: async () => server[Symbol.asyncDispose]() });
    await until(() => server.requests.some((request) => request.startsWith('GET')));
    const [mcp] = servers;
    if (mcp === undefined) throw new Error('no session was made');
    register(mcp, 'late', 'late');
    await until(() => names(provider).includes('box.late'));
    expect(await run(provider, 'box.late', {})).toBe('late');
  });

  it('R-12.2 over stdio, from a process that changes its tools', async () => {
    const script = `
      import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
      import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
      const server = new McpServer({ name: 'changing', version: '0' });
      const late = () => server.registerTool('late', {}, () => ({ content: [{ type: 'text', text: 'late' }] }));
      const change = server.registerTool('change', {}, () => { change.remove(); late(); return { content: [{ type: 'text', text: 'changed' }] }; });
      await server.connect(new StdioServerTransport());`;
    const provider = await mcpStdioProvider({
      name: 'box',
      command: process.execPath,
      args: ['--input-type=module', '--eval', script],
      cwd: ROOT,
    });
    open.push(provider);
    const before = provider.tools[0];
    expect(await run(provider, 'box.change', {})).toBe('changed');
    await until(() => names(provider).includes('box.late'));
    expect(names(provider)).toEqual(['box.late']);
    expect(await run(provider, 'box.late', {})).toBe('late');
    expect(await failure(Promise.resolve(before?.execute({}, context())))).toMatchObject({
      kind: 'unknown_tool',
      executed: false,
    });
  });
});
