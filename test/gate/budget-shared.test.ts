import { describe, expect, it } from 'vitest';
import { typed } from './kit.ts';
import { spending } from './spending.ts';

describe('over processes', () => {
  it('R-22.7 share one budget, of which each that comes to 80 % is told once', async () => {
    const one = spending({ calls: 10, per: 'tenant' });
    const other = spending({ calls: 10, per: 'tenant' }, { runtime: one.runtime, store: one.store });
    for (let made = 0; made < 6; made++) {
      await one.call({ tenant: 't' });
      await other.call({ tenant: 't' });
    }
    expect(one.runs() + other.runs()).toBe(10);
    const told = [...typed(one.trace, 'budget'), ...typed(other.trace, 'budget')];
    expect(told.filter(({ step }) => step === 'warned')).toMatchObject([
      { per: 'tenant', scope: 't', unit: 'calls', limit: 10, left: 2 },
    ]);
    expect(told.filter(({ step }) => step === 'refused')).toHaveLength(2);
  });

  it('R-22.7 what a process had reserved that died counts as used once its lease has passed', async () => {
    const dies = spending(
      { calls: 2, usd: 10, per: 'tenant', leaseMs: 30_000 },
      { policy: { cost: 4, timeoutMs: 1e9 }, execute: () => new Promise(() => {}) },
    );
    void dies.spillway.execute({ toolName: 'search', input: {} });
    await dies.runtime.advance(1_000);
    const next = spending(
      { calls: 2, usd: 10, per: 'tenant', leaseMs: 30_000 },
      { runtime: dies.runtime, store: dies.store },
    );
    expect(await next.budget.left()).toMatchObject([{ left: 1 }, { left: 6 }]);
    await dies.runtime.advance(60_000);
    // No longer reserved, and not given back: it may have run.
    expect(await next.budget.left()).toMatchObject([{ left: 1 }, { left: 6 }]);
    expect((await next.call()).status).toBe('success');
    expect((await next.call()).error?.code).toBe('limit_exceeded');
  });

  it('R-22.7 an attempt that outlives its lease is counted once, as what it used', async () => {
    const at = spending(
      { usd: 10, per: 'tenant', leaseMs: 1_000 },
      {
        policy: { cost: 4, timeoutMs: 100_000 },
        execute: async (_, { usage }) => {
          await new Promise<void>((resolve) => {
            at.runtime.after(50_000).subscribe(() => resolve());
          });
          usage?.({ usd: 1 });
        },
      },
    );
    void at.spillway.execute({ toolName: 'search', input: {} });
    await at.runtime.advance(10_000);
    await at.budget.charge({ usd: 1 });
    expect(await at.budget.left()).toMatchObject([{ left: 5 }]);
    await at.runtime.advance(60_000);
    expect(await at.budget.left()).toMatchObject([{ left: 8 }]);
  });

  it('R-22.7 a budget in the store that cannot be read lets nothing pass', async () => {
    const at = spending({ calls: 5, per: 'tenant' });
    await at.call();
    for await (const { key, version } of at.store.byTool('spillway/budget'))
      await at.store.compareAndSet(key, version, { state: 'done', ttlMs: 60_000, payload: '{"used":{}}' });
    expect((await at.call()).error?.code).toBe('store_unavailable');
    expect(at.runs()).toBe(1);
  });

  it('R-22.7 close() waits until the store has what was used', async () => {
    const at = spending({ usd: 5, per: 'tenant' }, { policy: { cost: 2 } });
    const call = at.spillway.execute({ toolName: 'search', input: {} });
    await at.runtime.advance(0);
    await call;
    await at.spillway.close();
    expect(await at.budget.left()).toMatchObject([{ left: 3 }]);
  });
});
