import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { CallToolResultSchema } from '@modelcontextprotocol/sdk/types.js';
import { describe, expect, it } from 'vitest';
import { EVERYTHING } from '../providers/support.ts';
import { NODE, proxied } from './kit.ts';
import { behind, type Command } from './wire-kit.ts';

/** A machine may be busy. */

/** A server that counts its tasks from one, and says in a task's result whose it is. */
const COUNTS = `
  const [, name] = process.argv;
  let last = 0;
  const at = '2026-01-01T00:00:00Z';
  const dates = { createdAt: at, lastUpdatedAt: at, ttl: 60000, pollInterval: 10 };
  const taskOf = (taskId, status) => ({ taskId, status, ...dates });
  const related = (taskId) => ({ 'io.modelcontextprotocol/related-task': { taskId } });
  const write = (message) => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', ...message }) + '\\n');
  const tasks = { list: {}, cancel: {}, requests: { tools: { call: {} } } };
  const known = (taskId) => Number(taskId) >= 1 && Number(taskId) <= last;
  const ANSWERS = {
    initialize: ({ protocolVersion }) =>
      ({ protocolVersion, capabilities: { tools: {}, tasks }, serverInfo: { name, version: '1' } }),
    'tools/list': () =>
      ({ tools: [{ name: 'work', inputSchema: { type: 'object' }, execution: { taskSupport: 'required' } }] }),
    'tools/call': () => {
      const taskId = String(++last);
      write({ method: 'notifications/tasks/status', params: taskOf(taskId, 'working') });
      write({ id: 'ask' + last, method: 'elicitation/create',
        params: { message: 'Sure?', requestedSchema: { type: 'object', properties: {} }, _meta: related(taskId) } });
      return { task: taskOf(taskId, 'working') };
    },
    'tasks/get': ({ taskId }) => known(taskId) && taskOf(taskId, 'completed'),
    'tasks/cancel': ({ taskId }) => known(taskId) && taskOf(taskId, 'cancelled'),
    'tasks/list': () => ({ tasks: Array.from({ length: last }, (_, n) => taskOf(String(n + 1), 'completed')) }),
    'tasks/result': ({ taskId }) => known(taskId) &&
      ({ content: [{ type: 'text', text: name + ' did ' + taskId }], _meta: related(taskId) }),
  };
  require('node:readline').createInterface({ input: process.stdin }).on('line', (line) => {
    const { id, method, params } = JSON.parse(line);
    if (method === undefined || id === undefined) return;
    const result = ANSWERS[method]?.(params);
    write(result ? { id, result } : { id, error: { code: -32602, message: 'Task not found' } });
  });`;
const counts = (name: string) => ({ place: { command: NODE, args: ['-e', COUNTS, name] } });

/** Runs a tool as a task to its end: its id, and what it gave. */
const done = async (
  client: Client,
  name: string,
  input = {},
): Promise<{ readonly id: string; readonly said: string[] }> => {
  const said: string[] = [];
  let id = '';
  const stream = client.experimental.tasks.callToolStream({ name, arguments: input }, CallToolResultSchema, {
    task: { ttl: 60_000 },
  });
  for await (const message of stream) {
    if (message.type === 'taskCreated') id = message.task.taskId;
    if (message.type !== 'taskStatus') said.push(message.type);
    if (message.type === 'result') said.push(JSON.stringify(message.result.content));
  }
  return { id, said };
};

describe('R-16.4 tasks', () => {
  it('R-16.4 of one server pass as they are', { timeout: 180_000 }, async () => {
    const every: Command = [NODE, EVERYTHING, 'stdio'];
    const run = async ([command, ...args]: Command): Promise<unknown> => {
      const client = new Client({ name: 'test', version: '1' });
      await client.connect(new StdioClientTransport({ command, args, stderr: 'ignore' }));
      const { id, said } = await done(client, 'simulate-research-query', { topic: 'tides' });
      const { tasks } = await client.experimental.tasks.listTasks();
      const again = await client.experimental.tasks.getTaskResult(id, CallToolResultSchema);
      await expect(client.experimental.tasks.getTask('nobody’s')).rejects.toThrow(/not found/i);
      await client.close();
      return { said, again: again.content, listed: tasks.map(({ taskId, status }) => [taskId === id, status]) };
    };
    const [direct, behindIt] = await Promise.all([run(every), run(behind(every))]);
    expect(behindIt).toEqual(direct);
  });

  it('R-16.4 R-16.7 of several servers that count alike are each its own server’s', async () => {
    const asked: unknown[] = [];
    await using it = await proxied(
      { one: counts('one'), two: counts('two') },
      {},
      {
        prepare: (client) => {
          client.fallbackRequestHandler = ({ params }) => {
            const { _meta: meta } = params ?? {};
            asked.push(meta?.['io.modelcontextprotocol/related-task']);
            return Promise.resolve({ action: 'accept', content: {} });
          };
        },
      },
    );
    const { client } = it;
    const { tasks } = client.experimental;
    await client.listTools();
    expect(await done(client, 'one.work')).toMatchObject({
      id: 'one.1',
      said: expect.arrayContaining([expect.stringContaining('one did 1')]) as unknown,
    });
    expect(await done(client, 'two.work')).toMatchObject({
      id: 'two.1',
      said: expect.arrayContaining([expect.stringContaining('two did 1')]) as unknown,
    });
    expect((await tasks.listTasks()).tasks.map(({ taskId }) => taskId)).toEqual(['one.1', 'two.1']);
    expect(await tasks.cancelTask('two.1')).toMatchObject({ taskId: 'two.1', status: 'cancelled' });
    expect(await tasks.getTaskResult('one.1', CallToolResultSchema)).toMatchObject({
      _meta: { 'io.modelcontextprotocol/related-task': { taskId: 'one.1' } },
    });
    await expect(tasks.getTask('two.2')).rejects.toThrow(/Task not found/);
    await expect(tasks.getTask('1')).rejects.toThrow(/Task 1 not found/);
    await expect.poll(() => asked).toEqual([{ taskId: 'one.1' }, { taskId: 'two.1' }]);
    const told = it.seen.map(({ message }) => message).filter((message) => 'method' in message);
    const statuses = told.filter(({ method }) => method === 'notifications/tasks/status');
    expect(statuses.map(({ params }) => params?.['taskId'])).toEqual(['one.1', 'two.1']);
  });
});
