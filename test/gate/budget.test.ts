import { plan } from 'spillway';
import { createBudget } from 'spillway/gates';
import { memoryStore } from 'spillway/stores/memory';
import { describe, expect, it } from 'vitest';
import { spending } from './spending.ts';

describe('budget', () => {
  it('R-22.6 calls: what is over the limit is refused before it runs, and names what is left', async () => {
    const at = spending({ calls: 2, per: 'session' });
    await at.call();
    await at.call();
    const refused = await at.call();
    expect(refused).toMatchObject({ status: 'error', attempts: 0, error: { code: 'limit_exceeded', terminal: true } });
    expect(refused.error?.message).toBe("The session's budget is used up: 0 of 2 calls left");
    expect(refused.error?.modelText).toContain('0 of 2 calls left, so the call was not made');
    expect(at.runs()).toBe(2);
    // Another session has its own.
    expect(await at.call({ session: 'other' })).toMatchObject({ status: 'success' });
    expect(await at.budget.left()).toEqual([{ per: 'session', unit: 'calls', limit: 2, left: 0 }]);
  });

  it('R-22.6 usd: by the declared cost, and by what the tool tells in its place', async () => {
    const at = spending(
      { usd: 1, per: 'tenant' },
      {
        policy: { cost: 0.3 },
        execute: (input: { tells?: number }, { usage }) =>
          usage?.(input.tells === undefined ? {} : { usd: input.tells }),
      },
    );
    await at.call({ tenant: 't' });
    expect(await at.budget.left({ tenant: 't' })).toMatchObject([{ left: 0.7 }]);
    await at.call({ tenant: 't', input: { tells: 0.1 } });
    expect((await at.budget.left({ tenant: 't' }))[0]?.left).toBeCloseTo(0.6);
    await at.call({ tenant: 't' });
    await at.call({ tenant: 't' });
    const refused = await at.call({ tenant: 't' });
    expect(refused.error).toMatchObject({ code: 'limit_exceeded' });
    expect(refused.error?.message).toContain('used up: 0 of 1 US dollars left');
    expect(at.runs()).toBe(4);
  });

  it('R-22.6 a call for which too little is left is refused, although there is something', async () => {
    const at = spending({ usd: 1, per: 'tenant' }, { policy: { cost: 0.4 } });
    await at.call();
    await at.call();
    const { error } = await at.call();
    expect(error?.message).toBe("The tenant's budget is too small for this call: 0.2 of 1 US dollars left");
  });

  it('R-22.6 tokens: reports add up, and an attempt reserves what one was seen to use', async () => {
    const at = spending(
      { tokens: 1_000, per: 'session' },
      {
        execute: (_, { usage }) => {
          usage?.({ tokens: 200 });
          usage?.({ tokens: 150 });
          return at.runtime.after(10);
        },
      },
    );
    await at.call();
    await at.call();
    // 300 are left, and one is known to use 350: all of it is reserved, and what comes beside it is refused.
    const [third, beside] = await Promise.all([at.call(), at.call()]);
    expect([third?.status, beside?.error?.code]).toEqual(['success', 'limit_exceeded']);
    expect((await at.call()).error?.message).toContain('used up: 0 of 1000 tokens left');
    expect(at.runs()).toBe(3);
  });

  it('R-22.6 until it is known what one call uses they go one at a time, and then together', async () => {
    const at = spending(
      { tokens: 1_000, per: 'session' },
      {
        execute: async (_, { usage }) => {
          await new Promise<void>((resolve) => {
            at.runtime.after(100).subscribe(() => resolve());
          });
          usage?.({ tokens: 400 });
        },
      },
    );
    const all = [1, 2, 3, 4].map(() => at.spillway.execute({ toolName: 'search', input: {} }));
    await at.runtime.advance(99);
    expect(at.runs()).toBe(1);
    await at.runtime.advance(1);
    // 600 are left: one reserves 400, one the 200 that remain, and for the last there is nothing.
    expect(at.runs()).toBe(3);
    await at.runtime.advance(1_000);
    const ends = (await Promise.all(all)).map(({ status }) => status);
    expect(ends.toSorted()).toEqual(['error', 'success', 'success', 'success']);
  });

  it('R-22.6 what a tool tells that is no amount counts for nothing', async () => {
    const told = [{ tokens: -5 }, { tokens: Number.NaN }, { tokens: Infinity }, 'many', null, { usd: '3' }];
    const at = spending(
      { tokens: 10, usd: 10, per: 'session' },
      { execute: (_, { usage }) => told.forEach((one) => usage?.(one as never)) },
    );
    expect(await at.call()).toMatchObject({ status: 'success' });
    expect(await at.budget.left()).toMatchObject([{ left: 10 }, { left: 10 }]);
  });

  it('R-22.6 a retry costs, and is no further call; what never ran costs nothing', async () => {
    let tries = 0;
    const failing = (more: object): never => {
      throw Object.assign(new Error('down'), more);
    };
    const retried = spending(
      { calls: 10, usd: 10, per: 'session' },
      { policy: { cost: 1 }, execute: () => (++tries < 3 ? failing({ status: 503 }) : 'ok') },
    );
    expect(await retried.call()).toMatchObject({ status: 'success', attempts: 3 });
    expect(await retried.budget.left()).toMatchObject([
      { unit: 'calls', left: 9 },
      { unit: 'usd', left: 7 },
    ]);
    const unreached = spending(
      { calls: 10, usd: 10, per: 'session' },
      { policy: { cost: 1, retry: { maxAttempts: 1 } }, execute: () => failing({ code: 'ECONNREFUSED' }) },
    );
    await unreached.call();
    expect(await unreached.budget.left()).toMatchObject([{ left: 10 }, { left: 10 }]);
  });

  it('R-22.6 a call whose first attempt never ran is counted once a later one does', async () => {
    let tries = 0;
    const at = spending(
      { calls: 2, per: 'session' },
      {
        execute: () => {
          if (++tries % 2 === 1) throw Object.assign(new Error('down'), { code: 'ECONNREFUSED' });
          return 'ok';
        },
      },
    );
    const ends = [await at.call(), await at.call(), await at.call()].map(({ error }) => error?.code ?? 'ran');
    expect(ends).toEqual(['ran', 'ran', 'limit_exceeded']);
    expect(await at.budget.left()).toMatchObject([{ left: 0 }]);
    expect(at.runs()).toBe(4);
  });

  it('R-22.6 what a tool tells in parts that come to no number locks no budget', async () => {
    const at = spending(
      { tokens: 1_000, per: 'tenant' },
      {
        execute: (_, { usage }) => {
          for (const tokens of [1, 1]) usage?.({ usd: Number.MAX_VALUE, tokens });
        },
      },
    );
    for (const left of [998, 996, 994]) {
      expect(await at.call()).toMatchObject({ status: 'success' });
      expect(await at.budget.left()).toMatchObject([{ left }]);
    }
  });

  it('R-22.6 turns of two tenants are two, whatever their ids', async () => {
    const at = spending({ calls: 1, per: 'turn' });
    const one = plan.from([{ id: 'a', tool: 'search', input: {} }]);
    const statuses: string[] = [];
    for (const tenant of ['acme', 'globex']) {
      at.spillway.turn(one, { turnId: 'monday', tenant }).subscribe((event) => {
        if (event.source === 'turn' && event.type === 'settled') statuses.push(event.result.status);
      });
      await at.runtime.advance(1_000);
    }
    expect(statuses).toEqual(['completed', 'completed']);
    expect(await at.budget.left({ turnId: 'monday', tenant: 'acme' })).toMatchObject([{ left: 0 }]);
    expect(await at.budget.left({ turnId: 'monday' })).toMatchObject([{ left: 1 }]);
  });

  it('R-22.6 a retry for which nothing is left is not made, and the failure is the one before it', async () => {
    const at = spending(
      { usd: 1, per: 'session' },
      { policy: { cost: 1 }, execute: () => Promise.reject(Object.assign(new Error('down'), { status: 503 })) },
    );
    expect(await at.call()).toMatchObject({ attempts: 1, error: { code: 'execution_error' } });
    expect(at.runs()).toBe(1);
  });

  it('R-22.6 calls that run at once reserve what they need: none is overdrawn', async () => {
    const at = spending(
      { calls: 3, usd: 2.5, per: 'tenant' },
      { policy: { cost: 1 }, execute: (_, __) => at.runtime.after(50) },
    );
    const results = await Promise.all([1, 2, 3, 4, 5].map(() => at.call()));
    expect(results.map(({ status }) => status).toSorted()).toEqual(['error', 'error', 'error', 'success', 'success']);
    expect(await at.budget.left()).toMatchObject([{ left: 1 }, { left: 0.5 }]);
  });

  it('R-22.6 a replay costs nothing', async () => {
    const at = spending({ calls: 1, per: 'session' });
    await at.call({ idempotencyKey: 'k' });
    expect(await at.call({ idempotencyKey: 'k' })).toMatchObject({ status: 'success', fromCache: true });
  });

  it('R-22.6 of a turn: its calls share one, and a call of its own is a turn of one', async () => {
    const at = spending({ calls: 2, per: 'turn' });
    const states: string[] = [];
    const three = plan.from(['a', 'b', 'c'].map((id) => ({ id, tool: 'search', input: {} })));
    for (const _ of [1, 2]) {
      at.spillway.turn(three).subscribe((event) => {
        if (event.source === 'turn' && event.type === 'settled')
          states.push(
            event.result.nodes
              .map(({ state }) => state)
              .toSorted()
              .join(),
          );
      });
      await at.runtime.advance(1_000);
    }
    expect(states).toEqual(['failed,succeeded,succeeded', 'failed,succeeded,succeeded']);
    expect(await at.call()).toMatchObject({ status: 'success' });
  });

  it('R-22.6 of several all have to have something left, and one that refuses costs the others nothing', async () => {
    const at = spending([
      { calls: 10, per: 'tenant' },
      { calls: 1, per: 'session' },
    ]);
    await at.call({ session: 'a' });
    expect(await at.call({ session: 'a' })).toMatchObject({ error: { code: 'limit_exceeded' } });
    expect(await at.budget.left({ session: 'a' })).toMatchObject([{ left: 9 }, { left: 0 }]);
  });

  it('R-22.6 holds in the mode off, and a store that does not answer lets nothing pass', async () => {
    const off = spending({ calls: 0, per: 'tenant' }, { mode: 'off' });
    expect((await off.call()).error?.code).toBe('limit_exceeded');
    const store = { ...memoryStore(), get: () => Promise.reject(new Error('gone')) };
    const lost = spending({ calls: 5, per: 'tenant' }, { store });
    const refused = lost.spillway.execute({ toolName: 'search', input: {} });
    await lost.runtime.advance(10_000);
    expect((await refused).error?.code).toBe('store_unavailable');
    expect(lost.runs() + off.runs()).toBe(0);
  });

  it('R-22.6 begins anew when its window is over', async () => {
    const at = spending({ calls: 1, per: 'tenant', windowMs: 60_000 });
    await at.call();
    expect((await at.call()).error?.code).toBe('limit_exceeded');
    await at.runtime.advance(60_000);
    expect((await at.call()).status).toBe('success');
  });

  it('R-22.6 a model is charged, too, and that is never refused', async () => {
    const at = spending({ tokens: 100, per: 'session' });
    await at.budget.charge({ tokens: 250 }, { session: 's' });
    expect((await at.call({ session: 's' })).error?.message).toContain('0 of 100 tokens left');
    expect((await at.call({ session: 't' })).status).toBe('success');
  });

  it.each([
    ['nothing', undefined],
    ['no limit', { per: 'turn' }],
    ['nobody', { calls: 1 }],
    ['somebody else', { calls: 1, per: 'planet' }],
    ['half a call', { calls: 0.5, per: 'turn' }],
    ['less than nothing', { usd: -1, per: 'turn' }],
    ['a word', { tokens: 'many', per: 'turn' }],
    ['another unit', { euros: 1, per: 'turn' }],
    ['no window', { calls: 1, per: 'turn', windowMs: 0 }],
    ['an empty list', []],
  ])('R-22.6 %s is no budget', (_what, limits) => {
    expect(() => createBudget(limits as never)).toThrow(RangeError);
  });
});
