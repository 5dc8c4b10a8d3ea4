import { describe, expect, it } from 'vitest';
import { EVERYTHING, FILESYSTEM, ROOT, until } from '../providers/support.ts';
import { NODE, faults, ledger, proxied, textOf } from './kit.ts';

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
});
