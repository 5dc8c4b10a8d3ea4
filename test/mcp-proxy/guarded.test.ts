import { ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import { describe, expect, it } from 'vitest';
import { until } from '../providers/support.ts';
import { QUICK, faults, ledger, proxied, textOf } from './kit.ts';

describe('R-16.1 what a tool call gets from the proxy', () => {
  it('R-16.1 a tool that only reads is tried again, and its client sees one answer', async () => {
    using kept = ledger();
    await using it = await proxied({ s: faults(kept) }, { defaults: { retry: QUICK } });
    expect(textOf(await it.call('look', { first: 'failed', times: 2 }))).toBe('looked 3 times');
    expect(kept.count('look')).toBe(3);
  });

  it('R-16.1 a failure that stays is the tool’s own, unchanged', async () => {
    using kept = ledger();
    await using it = await proxied({ s: faults(kept) }, { defaults: { retry: QUICK, breaker: false } });
    expect(await it.call('look', { first: 'failed', times: 99 })).toEqual({
      content: [{ type: 'text', text: 'connect ECONNRESET 10.0.0.1:443' }],
      isError: true,
    });
    expect(kept.count('look')).toBe(4);
    await expect(it.call('pay', { amount: 1, then: 'error' })).rejects.toMatchObject({
      code: -32_603,
      data: { kept: true },
    });
  });

  it('R-16.1 a call has a hard limit, and the server is told that nobody waits', async () => {
    using kept = ledger();
    await using it = await proxied({ s: faults(kept) }, { defaults: { timeoutMs: 300 } });
    const result = await it.call('pay', { amount: 3, then: 'hang' });
    expect(result.isError).toBe(true);
    expect(textOf(result)).toMatch(/may have run|took too long|Check first/);
    await until(() => kept.count('<- notifications/cancelled') === 1);
    expect(kept.count('pay 3')).toBe(1);
  });

  it('R-16.1 a tool that keeps failing rests, and the model is told until when', async () => {
    using kept = ledger();
    const breaker = { failureThreshold: 2, cooldownMs: 60_000 };
    await using it = await proxied({ s: faults(kept) }, { defaults: { retry: { maxAttempts: 1 }, breaker } });
    for (let n = 0; n < 2; n++) await it.call('look', { first: 'failed', times: 99 });
    const result = await it.call('look', { first: 'failed', times: 99 });
    expect(result.isError).toBe(true);
    expect(textOf(result)).toMatch(/Try again in (?:60|59) s, not before\./);
    expect(kept.count('look')).toBe(2);
    // Its neighbours do not rest.
    expect((await it.call('pid')).isError).toBeUndefined();
  });

  it('R-16.1 input that does not fit is not sent, unless the host leaves that to the server', async () => {
    using kept = ledger();
    await using it = await proxied({ s: faults(kept) });
    const result = await it.call('pay', { amount: 'ten' });
    expect(result.isError).toBe(true);
    expect(textOf(result)).toContain('amount');
    expect(kept.count('<- tools/call')).toBe(0);
    await using lenient = await proxied({ s: faults(kept, { tools: { pay: { checkInput: false } } }) });
    expect(textOf(await lenient.call('pay', { amount: 'ten' }))).toBe('paid ten');
  });

  it('R-16.1 a second call under one key of _meta gets the first one’s answer, other input a conflict', async () => {
    using kept = ledger();
    await using it = await proxied({ s: faults(kept) });
    const meta = { 'spillway/idempotencyKey': 'order-1' };
    const both = await Promise.all([it.call('pay', { amount: 5 }, meta), it.call('pay', { amount: 5 }, meta)]);
    expect(both.map(textOf)).toEqual(['paid 5', 'paid 5']);
    expect(kept.count('pay 5')).toBe(1);
    const other = await it.call('pay', { amount: 6 }, meta);
    expect(other.isError).toBe(true);
    expect(kept.count('pay 6')).toBe(0);
    // Nobody gets an old answer without asking.
    await it.call('pay', { amount: 5 });
    expect(kept.count('pay 5')).toBe(2);
  });

  it('R-16.1 an answer that is too long becomes a failure that says so, with its beginning', async () => {
    using kept = ledger();
    await using it = await proxied({ s: faults(kept) }, { maxOutputBytes: 2_000 });
    expect((await it.call('big', { size: 1_500 })).isError).toBeUndefined();
    const result = await it.call('big', { size: 50_000 });
    expect(result.isError).toBe(true);
    expect(textOf(result)).toMatch(/^The tool ran\. Its answer has \d+ bytes, and 2000 are .*\nx{2000}$/s);
  });

  it('R-16.1 one that is too long to be read becomes one, too, and no call beside it fails', async () => {
    using kept = ledger();
    await using it = await proxied({ s: faults(kept) });
    const pidOf = async (): Promise<string> => textOf(await it.call('pid'));
    const before = await pidOf();
    const [big, ...others] = await Promise.all([
      it.call('big', { size: 12_000_000 }),
      ...[1, 2, 3, 4, 5, 6].map((amount) => it.call('pay', { amount })),
    ]);
    expect(big.isError).toBe(true);
    expect(textOf(big)).toMatch(
      /^The tool ran\. Its answer has 12000\d{3} bytes, and 10485760 are read at most; ask for/,
    );
    expect(others.map(textOf)).toEqual([1, 2, 3, 4, 5, 6].map((amount) => `paid ${amount}`));
    expect(await pidOf()).toBe(before);
    // Of a resource nobody says that a tool ran.
    await expect(it.client.readResource({ uri: 'x://big' })).rejects.toThrow(
      /-32603: The answer has 12000\d{3} bytes, and 10485760 are read at most$/,
    );
    // It ran, and so it is not made again.
    expect(it.notes).toEqual([]);
  });

  it('R-4.7 a person may take longer than the tool', async () => {
    using kept = ledger();
    let answer: ((value: { action: 'accept'; content: Record<string, boolean> }) => void) | undefined;
    await using it = await proxied(
      { s: faults(kept) },
      { defaults: { timeoutMs: 400, retry: QUICK } },
      {
        prepare: (client) =>
          client.setRequestHandler(ElicitRequestSchema, () => new Promise((done) => (answer = done))),
      },
    );
    const called = it.call('ask');
    await until(() => answer !== undefined);
    // Another call’s limit passes meanwhile, and so would have this one’s.
    expect((await it.call('pay', { amount: 9, then: 'hang' }).then(textOf)).length).toBeGreaterThan(0);
    answer?.({ action: 'accept', content: { sure: true } });
    expect(JSON.parse(textOf(await called))).toEqual({ action: 'accept', content: { sure: true } });
  });
});
