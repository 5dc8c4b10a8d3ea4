import { join } from 'node:path';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { expect, it } from 'vitest';
import { serveHttp } from '../../src/mcp-proxy/http/front.ts';
import { createMcpProxy } from '../../src/mcp-proxy/proxy.ts';
import { liveRuntime } from '../../src/runtime.ts';
import { NODE } from './kit.ts';
import { behind, type Command } from './wire-kit.ts';

/** A machine may be busy. */

const MODERN: Command = [NODE, join(import.meta.dirname, 'modern-server.ts'), 'stdio'];

interface Listening {
  readonly client: Client;
  readonly heard: unknown[];
}

const listening = async (transport: Parameters<Client['connect']>[0]): Promise<Listening> => {
  const client = new Client({ name: 'test', version: '1' }, { versionNegotiation: { mode: 'auto' } });
  const heard: unknown[] = [];
  client.setNotificationHandler('notifications/tools/list_changed', ({ params }) => {
    const { _meta: meta = {} } = params ?? {};
    heard.push(Object.keys(meta));
  });
  await client.connect(transport);
  expect(client.getProtocolEra()).toBe('modern');
  return { client, heard };
};

const names = async ({ client }: Listening): Promise<string[]> =>
  (await client.listTools()).tools.map(({ name }) => name);

/** What a client hears that listens, and once it no longer does. */
const scenario = async (it: Listening): Promise<unknown> => {
  const subscription = await it.client.listen({ toolsListChanged: true });
  await it.client.callTool({ name: 'grow', arguments: {} });
  await expect.poll(() => it.heard.length).toBeGreaterThan(0);
  const told = [...it.heard];
  await subscription.close();
  const closed = await subscription.closed;
  const listed = await names(it);
  await it.client.close();
  return { told, closed, grown: listed.includes('grown') };
};

it('R-16.4 R-16.5 subscriptions/listen over stdio, as direct', { timeout: 180_000 }, async () => {
  const run = ([command, ...args]: Command): Promise<unknown> =>
    listening(new StdioClientTransport({ command, args, stderr: 'ignore' })).then(scenario);
  const [direct, proxied] = await Promise.all([run(MODERN), run(behind(MODERN))]);
  expect(proxied).toEqual(direct);
  expect(direct).toMatchObject({ grown: true });
});

it('R-16.4 R-16.5 over HTTP two clients listen, each for itself', async () => {
  const [command, ...args] = MODERN;
  const proxy = createMcpProxy({ servers: { s: { place: { command, args } } } });
  const front = await serveHttp(proxy, { host: '127.0.0.1', port: 0, modern: true, runtime: liveRuntime });
  const [one, two] = await Promise.all(
    [1, 2].map(() => listening(new StreamableHTTPClientTransport(new URL(front.url)))),
  );
  if (one === undefined || two === undefined) throw new TypeError('there are two');
  const [first] = await Promise.all([one, two].map(({ client }) => client.listen({ toolsListChanged: true })));
  await one.client.callTool({ name: 'grow', arguments: {} });
  await expect.poll(() => [one.heard.length, two.heard.length]).toEqual([1, 1]);
  await first?.close();
  expect(await names(two)).toContain('grown');
  await one.client.close();
  await two.client.close();
  await front.close();
  await proxy.close();
});
