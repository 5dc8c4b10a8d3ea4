import { ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import { describe, expect, it } from 'vitest';
import { isAlive, kill, until } from '../providers/support.ts';
import { QUICK, faults, ledger, proxied, textOf } from './kit.ts';

const quick = { defaults: { retry: QUICK } };

describe('R-16.2 a server that dies behind the proxy', () => {
  it('R-16.2 is started again, told what its client had settled, and the client hears of nothing', async () => {
    using kept = ledger();
    await using it = await proxied({ s: faults(kept) }, quick);
    await it.client.setLoggingLevel('warning');
    await it.client.subscribeResource({ uri: 'x://1' });
    const before = Number(textOf(await it.call('pid')));
    const heard = it.seen.length;
    kill(before);
    await until(() => kept.count('started ') === 2 && kept.count('<- resources/subscribe') === 2);
    const after = Number(textOf(await it.call('pid')));
    expect(after).not.toBe(before);
    const lines = kept.lines();
    const again = lines.slice(lines.lastIndexOf('started '));
    expect(again.filter((line) => /initialize|logging|subscribe/.test(line))).toEqual([
      '<- initialize',
      '<- notifications/initialized',
      '<- logging/setLevel',
      '<- resources/subscribe',
    ]);
    // A call and its answer; nothing of the death.
    expect(it.seen.slice(heard).map(({ from }) => from)).toEqual(['client', 'server']);
    expect(it.notes.join('\n')).toContain('SIGKILL');
  });

  it('R-16.2 in the middle of a read: the read is made again', async () => {
    using kept = ledger();
    await using it = await proxied({ s: faults(kept) }, quick);
    expect(textOf(await it.call('look', { first: 'kill', times: 2 }))).toBe('looked 3 times');
    expect(kept.count('started ')).toBe(3);
  });

  it('R-16.2 other requests that only ask are asked again, too', async () => {
    using kept = ledger();
    await using it = await proxied({ s: faults(kept) }, quick);
    const pid = Number(textOf(await it.call('pid')));
    process.kill(pid, 'SIGSTOP');
    const listed = it.client.listTools();
    kill(pid);
    expect((await listed).tools.map(({ name }) => name)).toContain('pay');
  });

  it('R-16.2 takes its questions back', async () => {
    using kept = ledger();
    let asked = 0;
    let withdrawn = false;
    await using it = await proxied(
      { s: faults(kept) },
      { defaults: { retry: { maxAttempts: 1 } } },
      {
        prepare: (client) =>
          client.setRequestHandler(ElicitRequestSchema, (_, { signal }) => {
            asked++;
            signal.addEventListener('abort', () => (withdrawn = true));
            return new Promise(() => undefined);
          }),
      },
    );
    const pid = Number(textOf(await it.call('pid')));
    const called = it.call('ask');
    await until(() => asked === 1);
    kill(pid);
    expect((await called).isError).toBe(true);
    await until(() => withdrawn);
  });

  it('R-16.2 one that does not come up again is told in words, and its client stays', async () => {
    using kept = ledger();
    await using it = await proxied({ s: faults(kept, {}, 'broken') }, { defaults: { retry: { maxAttempts: 1 } } });
    kill(Number(textOf(await it.call('pid'))));
    await until(() => it.notes.length >= 2);
    const result = await it.call('pid');
    expect(result.isError).toBe(true);
    expect(textOf(result)).toMatch(/did not run/);
    await expect(it.client.ping()).resolves.toEqual({});
  });
});

describe('R-16.2 a server that freezes', () => {
  it('R-16.2 loses its calls at their limit, is found out by a ping, and is started again', async () => {
    using kept = ledger();
    await using it = await proxied({ s: faults(kept) }, { defaults: { timeoutMs: 300, retry: { maxAttempts: 1 } } });
    const pid = Number(textOf(await it.call('pid')));
    expect((await it.call('pay', { amount: 2, then: 'freeze' })).isError).toBe(true);
    await until(() => kept.count('started ') === 2);
    await until(() => !isAlive(pid));
    expect(textOf(await it.call('pay', { amount: 3 }))).toBe('paid 3');
    expect(kept.count('pay 2')).toBe(1);
  });

  it('R-16.2 one that is only slow with a call is left alone', async () => {
    using kept = ledger();
    await using it = await proxied({ s: faults(kept) }, { defaults: { timeoutMs: 200, retry: { maxAttempts: 1 } } });
    const pid = textOf(await it.call('pid'));
    expect((await it.call('pay', { amount: 2, then: 'hang' })).isError).toBe(true);
    await until(() => kept.count('<- ping') === 1);
    expect(textOf(await it.call('pid'))).toBe(pid);
  });
});

describe('R-16.2 a server that floods', () => {
  it('R-16.2 every message comes through, in order, and calls beside it are answered', async () => {
    using kept = ledger();
    await using it = await proxied({ s: faults(kept) });
    const count = 20_000;
    const [flooded] = await Promise.all([it.call('flood', { count }), it.call('pid')]);
    expect(textOf(flooded)).toBe('flooded');
    const data = it.seen.flatMap(({ message }) =>
      'method' in message && message.method === 'notifications/message'
        ? [Number.parseInt(String(message.params?.['data']), 10)]
        : [],
    );
    expect(data).toEqual(Array.from({ length: count }, (_, n) => n));
  });
});

describe('R-16.3 payments: a tool without annotations is never repeated', () => {
  it.each(['kill', 'exit', 'hang', 'error', 'failed', 'freeze'])(
    'R-16.3 %s after it took effect: once',
    async (then) => {
      using kept = ledger();
      const retry = { ...QUICK, maxAttempts: 10 };
      await using it = await proxied({ s: faults(kept) }, { defaults: { timeoutMs: 400, retry } });
      await it.call('pay', { amount: 7, then }).catch(() => undefined);
      // A server that died is back: whatever would have been sent again has been.
      await it.call('pid');
      expect(kept.count('pay 7')).toBe(1);
    },
  );

  it('R-16.3 and a model that is told so asks first', async () => {
    using kept = ledger();
    await using it = await proxied({ s: faults(kept) }, quick);
    const result = await it.call('pay', { amount: 7, then: 'kill' });
    expect(result.isError).toBe(true);
    expect(textOf(result)).toContain('Check first whether it took effect.');
  });
});
