import type { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import { describe, expect, it } from 'vitest';
import { EVERYTHING, FILESYSTEM, ROOT, until } from '../providers/support.ts';
import { NODE, faults, ledger, proxied, textOf } from './kit.ts';

/** A server that asks its client, and answers with what it heard of how far that is. */
const ASKS = `
  const write = (message) => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', ...message }) + '\\n');
  const heard = [];
  let call;
  const requestedSchema = { type: 'object', properties: {} };
  const ask = { message: process.argv[1], requestedSchema, _meta: { progressToken: 1 } };
  const answers = {
    initialize: ({ protocolVersion }) =>
      ({ protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 'asks', version: '1' } }),
    'tools/list': () => ({ tools: [{ name: 'ask', inputSchema: { type: 'object' } }] }),
  };
  require('node:readline').createInterface({ input: process.stdin }).on('line', (line) => {
    const { id, method, params } = JSON.parse(line);
    if (method === 'notifications/progress') heard.push(params);
    if (method === 'tools/call') write({ id: 1, method: 'elicitation/create', params: ask }, (call = id));
    else if (method === undefined)
      write({ id: call, result: { content: [{ type: 'text', text: JSON.stringify(heard) }] } });
    else if (id !== undefined) write({ id, result: answers[method](params) });
  });`;

describe('R-16.7 several servers as one', () => {
  const place = (...args: string[]) => ({ place: { command: NODE, args } });

  it('R-16.7 tools and prompts stand behind the names of their servers, and each gets its own', async () => {
    using kept = ledger();
    await using it = await proxied({
      all: place(EVERYTHING, 'stdio'),
      files: place(FILESYSTEM, ROOT),
      bank: faults(kept),
    });
    const { tools } = await it.client.listTools();
    const names = tools.map(({ name }) => name);
    expect(names).toEqual(expect.arrayContaining(['all.echo', 'files.read_text_file', 'bank.pay']));
    expect(names.filter((name) => !/^(?:all|files|bank)\./.test(name))).toEqual([]);
    expect(it.client.getServerCapabilities()).toMatchObject({
      prompts: {},
      logging: {},
      resources: {},
      completions: {},
    });
    expect(textOf(await it.call('all.echo', { message: 'x' }))).toBe('Echo: x');
    expect(textOf(await it.call('files.read_text_file', { path: `${ROOT}/LICENSE` }))).toContain('MIT');
    expect(textOf(await it.call('bank.pay', { amount: 4 }))).toBe('paid 4');
    const { prompts } = await it.client.listPrompts();
    expect(prompts.map(({ name }) => name)).toContain('all.simple-prompt');
    expect((await it.client.getPrompt({ name: 'all.simple-prompt' })).messages).toHaveLength(1);
    const { resources } = await it.client.listResources();
    const uri = resources[0]?.uri ?? '';
    expect((await it.client.readResource({ uri })).contents).toHaveLength(1);
    await expect(it.call('nobody.echo')).rejects.toMatchObject({ code: -32_602 });
    await it.client.setLoggingLevel('error');
    expect(kept.count('<- logging/setLevel')).toBe(1);
  });

  it('R-16.7 breakers are each tool’s own, and one server’s death is nobody else’s', async () => {
    using one = ledger();
    using two = ledger();
    const breaker = { failureThreshold: 1 };
    await using it = await proxied(
      { one: faults(one), two: faults(two) },
      { defaults: { retry: { maxAttempts: 1 }, breaker } },
    );
    await it.call('one.look', { first: 'kill', times: 99 });
    expect((await it.call('one.look')).isError).toBe(true);
    expect(textOf(await it.call('two.look'))).toBe('looked 1 times');
    expect(two.count('started ')).toBe(1);
  });

  it('R-16.7 one that does not start is left out, and told', async () => {
    using kept = ledger();
    await using it = await proxied({ gone: place('-e', 'process.exit(7)'), bank: faults(kept) });
    expect((await it.client.listTools()).tools.map(({ name }) => name)).toContain('bank.pay');
    await until(() => it.notes.some((line) => line.startsWith('gone: ')));
  });

  // Was: all servers heard of the client's progress with what one of them had asked. Now: that one does.
  it('R-16.7 how far a client is with what a server asked is told to that one', async () => {
    const prepare = (client: Client): void =>
      client.setRequestHandler(ElicitRequestSchema, async ({ params }, { _meta, sendNotification }) => {
        const progressToken = _meta?.progressToken ?? 'none';
        const { message } = params;
        await sendNotification({ method: 'notifications/progress', params: { progressToken, progress: 1, message } });
        return { action: 'accept', content: {} };
      });
    const servers = { one: place('-e', ASKS, 'one'), two: place('-e', ASKS, 'two') };
    await using it = await proxied(servers, {}, { prepare });
    const heard = await Promise.all([it.call('one.ask'), it.call('two.ask')]);
    expect(heard.map((result) => JSON.parse(textOf(result)) as unknown)).toEqual([
      [{ progressToken: 1, progress: 1, message: 'one' }],
      [{ progressToken: 1, progress: 1, message: 'two' }],
    ]);
  });
});
