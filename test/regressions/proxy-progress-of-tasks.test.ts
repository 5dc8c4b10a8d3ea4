// Was: progress that a server told of a task reached nobody, since the request that began the task was answered.
// Now: it is told under the request's token, as long as the task may run; of a call that is over it is still nobody's.
import { expect, it } from 'vitest';
import { NODE, proxied } from '../mcp-proxy/kit.ts';

const TELLS = `
  const say = (message) => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', ...message }) + '\\n');
  const at = '2026-01-01T00:00:00Z';
  const task = { taskId: '1', status: 'working', createdAt: at, lastUpdatedAt: at, ttl: 60000, pollInterval: 10 };
  require('node:readline').createInterface({ input: process.stdin }).on('line', (line) => {
    const { id, method, params = {} } = JSON.parse(line);
    if (id === undefined) return;
    const tools = [{ name: 'work', inputSchema: { type: 'object' } }];
    if (method === 'tools/list') return say({ id, result: { tools } });
    if (method === 'tools/call') {
      const { progressToken } = params._meta;
      const tell = (progress) =>
        say({ method: 'notifications/progress', params: { progressToken, progress, total: 2 } });
      tell(0);
      say({ id, result: params.task ? { task } : { content: [] } });
      tell(1);
      tell(2);
      return say({ method: 'notifications/message', params: { level: 'info', data: 'told' } });
    }
    const { protocolVersion } = params;
    const capabilities = { tools: {}, logging: {}, tasks: { requests: { tools: { call: {} } } } };
    say({ id, result: { protocolVersion, capabilities, serverInfo: { name: 's', version: '1' } } });
  });`;

it.each([
  ['a task is passed on after its request is answered', { task: { ttl: 60_000 } }, [0, 1, 2]],
  ['a call that is over is nobody’s', {}, [0]],
])('R-16.4 progress of %s', async (_name, more, told) => {
  await using it = await proxied({ s: { place: { command: NODE, args: ['-e', TELLS] } } });
  Object.assign(it.client, { onerror: () => undefined });
  const params = { name: 'work', arguments: {}, _meta: { progressToken: 'mine' }, ...more };
  await it.raw({ jsonrpc: '2.0', id: 'x', method: 'tools/call', params });
  const heard = (method: string): unknown[] =>
    it.seen.flatMap(({ message }) => ('method' in message && message.method === method ? [message.params] : []));
  await expect.poll(() => heard('notifications/message'), { timeout: 30_000 }).toHaveLength(1);
  const expected = told.map((progress) => ({ progressToken: 'mine', progress, total: 2 }));
  expect(heard('notifications/progress')).toEqual(expected);
});
