import { Subject, map } from 'rxjs';
import { ToolExecutionError, plan, tool } from 'spillway';
import { createBudget } from 'spillway/gates';
import { describe, expect, it } from 'vitest';
import * as z from 'zod';
import { scene, silent, typed } from './kit.ts';

describe('what an approval is for', () => {
  it('R-22.2 another input, session, actor or tenant asks again; the same in another order does not', async () => {
    const at = scene();
    at.pay({ input: { amount: 7, to: 'ada' }, session: 's' });
    at.pay({ input: { to: 'ada', amount: 7 }, session: 's' });
    at.pay({ input: { amount: 8, to: 'ada' }, session: 's' });
    at.pay({ input: { amount: 7, to: 'ada' }, session: 't' });
    at.pay({ input: { amount: 7, to: 'ada' }, session: 's', actor: 'a' });
    at.pay({ input: { amount: 7, to: 'ada' }, session: 's', tenant: 'x' });
    await at.pass(0);
    const pending = await at.approvals.pending();
    expect(pending).toHaveLength(5);
    const [first] = pending;
    expect(await at.approvals.answer(first?.id ?? '', true)).toMatchObject({ counts: true, state: 'approved' });
    await at.pass(1_000);
    // One approval, one effect; the other call that asked the same waits for its own.
    expect(at.runs).toHaveLength(1);
    expect(await at.approvals.pending()).toHaveLength(5);
  });

  it('R-22.2 an approval is used up: the same call asks anew', async () => {
    const at = scene({ approvals: { ask: () => true } });
    at.pay();
    await at.pass(0);
    at.pay();
    await at.pass(0);
    expect(at.runs).toHaveLength(2);
    expect(at.asked).toHaveLength(2);
    expect(at.asked[0]?.id).not.toBe(at.asked[1]?.id);
  });

  it('R-22.2 an input that is changed while it waits is not the one that was approved', async () => {
    const input = { amount: 7 };
    const at = scene();
    const call = at.pay({ input });
    await at.pass(0);
    const [asked] = await at.approvals.pending();
    input.amount = 7_000;
    await at.approvals.answer(asked?.id ?? '', true);
    await at.pass(2_000);
    expect(at.runs).toEqual([]);
    expect(call.result).toBeUndefined();
    expect(await at.approvals.pending()).toMatchObject([{ input: { amount: 7_000 } }]);
  });

  it.each([
    ['a date', { amount: 7, at: new Date(0) }],
    ['a map', { amount: 7, to: new Map([['ada', 7]]) }],
  ])('R-22.2 an input with %s that is changed after it needed no approval is decided about anew', async (_, input) => {
    const at = scene({
      approvals: { ask: () => true },
      tool: { needsApproval: { path: 'amount', above: 100 } },
      hooks: { beforeToolCall: () => void (input.amount = 900) },
    });
    const call = at.pay({ input });
    await at.pass(1_000);
    expect(at.runs).toEqual([]);
    expect(call.result).toMatchObject({ status: 'error', attempts: 0 });
  });

  it('R-22.2 an input whose schema made a map is not the approved one, once the map is another', async () => {
    const made: Array<Map<string, number>> = [];
    const at = scene({
      approvals: { ask: ({ input }) => at.runtime.after(10).pipe(map(() => input !== null)) },
      tool: {
        input: z.object({ usd: z.number() }).transform(({ usd }) => {
          made.push(new Map([['ada', usd]]));
          return { to: made[0] };
        }),
      },
    });
    at.pay({ input: { usd: 7 } });
    await at.pass(5);
    made[0]?.set('ada', 900);
    await at.pass(5);
    expect(at.runs).toEqual([]);
    await at.pass(1_000);
    // It was asked about anew.
    expect([at.asked.length, at.runs.length]).toEqual([2, 1]);
  });

  it('R-22.2 two processes that hold the same answer run one effect', async () => {
    const one = scene();
    const other = scene({ runtime: one.runtime, store: one.store });
    one.pay();
    other.pay();
    await one.pass(0);
    const [asked, ...more] = await one.approvals.pending();
    expect(more).toEqual([]);
    await other.approvals.answer(asked?.id ?? '', { approved: true });
    await one.pass(5_000);
    expect(one.runs.length + other.runs.length).toBe(1);
    expect(await one.approvals.pending()).toHaveLength(1);
  });

  it('R-22.2 expires: an answer that comes too late counts for nothing', async () => {
    const at = scene({ approvals: { ask: silent, ttlMs: 60_000 } });
    const call = at.pay();
    await at.pass(59_999);
    const [asked] = await at.approvals.pending();
    expect(call.result).toBeUndefined();
    await at.pass(1);
    expect(call.result?.error).toMatchObject({ code: 'not_permitted', terminal: true });
    expect(call.result?.error?.message).toContain('Nobody approved the call within 60 s');
    expect(call.result?.error?.modelText).toContain('did not answer within 60 s, so it was not made');
    expect(await at.approvals.answer(asked?.id ?? '', true)).toEqual({ counts: false, state: 'unknown' });
    expect(typed(at.trace, 'approval').map(({ step }) => step)).toEqual(['asked', 'expired']);
    at.pay();
    await at.pass(0);
    expect(at.runs).toEqual([]);
    expect(await at.approvals.pending()).toHaveLength(1);
  });

  it('R-22.2 an answer that nobody used in time is worth nothing', async () => {
    const at = scene({ approvals: { ttlMs: 60_000 } });
    at.pay();
    await at.pass(0);
    const [asked] = await at.approvals.pending();
    await at.spillway.close();
    expect(await at.approvals.answer(asked?.id ?? '', true)).toMatchObject({ counts: true });
    const next = scene({ runtime: at.runtime, store: at.store });
    await next.pass(60_001);
    next.pay();
    await next.pass(0);
    expect(next.runs).toEqual([]);
  });

  it('R-22.2 an id answers its own question, not the next one about the same input', async () => {
    const at = scene();
    at.pay();
    await at.pass(0);
    const [first] = await at.approvals.pending();
    await at.approvals.answer(first?.id ?? '', false);
    await at.pass(1_000);
    at.pay();
    await at.pass(0);
    expect(await at.approvals.answer(first?.id ?? '', true)).toMatchObject({ counts: false });
    await at.pass(2_000);
    expect(at.runs).toEqual([]);
  });

  it('R-22.2 what the store holds of an approval and cannot be read approves nothing', async () => {
    const at = scene();
    at.pay();
    await at.pass(0);
    for await (const { key, version } of at.store.byTool('spillway/approval'))
      await at.store.compareAndSet(key, version, { state: 'done', ttlMs: 60_000, payload: '{"state":"approved"}' });
    const call = at.pay();
    await at.pass(1_000);
    expect(call.result?.error?.code).toBe('store_unavailable');
    expect(at.runs).toEqual([]);
  });
});

describe('who is asked again', () => {
  const refused = (): never => {
    throw new ToolExecutionError('transport_error', 'refused', { executed: false });
  };

  it('R-22.3 a retry that is certain to follow a failure without effect asks nobody', async () => {
    let tries = 0;
    const at = scene({ approvals: { ask: () => true }, execute: () => (++tries < 3 ? refused() : 'paid') });
    const call = at.pay();
    await at.pass(1_000);
    expect(call.result).toMatchObject({ status: 'success', attempts: 3 });
    expect(at.asked).toHaveLength(1);
  });

  it('R-22.3 a retry after an attempt that may have taken effect asks anew, and says so', async () => {
    let tries = 0;
    const lost = (): never => {
      throw Object.assign(new Error('socket hang up'), { code: 'ECONNRESET' });
    };
    const answer$ = new Subject<boolean>();
    let asks = 0;
    const at = scene({
      tool: { policy: { effects: 'mutating', enforcesKey: true, retry: { initialDelayMs: 100, jitterPercent: 0 } } },
      approvals: { ask: () => (asks++ === 0 ? true : answer$) },
      execute: () => (++tries === 1 ? lost() : 'paid'),
    });
    const call = at.pay();
    await at.pass(5_000);
    expect(at.runs).toHaveLength(1);
    expect(at.asked.map(({ cause }) => cause)).toEqual(['needed', 'uncertain']);
    answer$.next(true);
    await at.pass(0);
    expect(call.result).toMatchObject({ status: 'success', attempts: 2 });
  });

  it('R-22.3 a no to such a retry leaves the failure as it was: it may have taken effect', async () => {
    const answers = [true, false];
    const at = scene({
      tool: { policy: { effects: 'mutating', enforcesKey: true, retry: { initialDelayMs: 100, jitterPercent: 0 } } },
      approvals: { ask: () => answers.shift() ?? false },
      execute: () => {
        throw Object.assign(new Error('socket hang up'), { code: 'ECONNRESET' });
      },
    });
    const call = at.pay();
    await at.pass(5_000);
    expect(at.runs).toHaveLength(1);
    expect(call.result?.error).toMatchObject({ code: 'transport_error', uncertain: true });
  });

  it('R-22.3 an alternative asks for itself', async () => {
    const runs: string[] = [];
    const other = tool({
      name: 'other',
      needsApproval: true,
      policy: { effects: 'mutating' },
      execute: () => String(runs.push('other')),
    });
    const at = scene({
      tool: { policy: { effects: 'mutating', retry: { maxAttempts: 1 }, alternatives: ['other'] } },
      more: [other],
      approvals: { ask: ({ toolName }) => toolName === 'pay' },
      execute: refused,
    });
    const call = at.pay();
    await at.pass(1_000);
    expect(at.asked.map(({ toolName }) => toolName)).toEqual(['pay', 'other']);
    expect([runs, call.result?.error?.code]).toEqual([[], 'not_permitted']);
  });

  it('R-22.3 a replay asks nobody', async () => {
    const at = scene({ approvals: { ask: () => true } });
    const first = at.pay({ idempotencyKey: 'k' });
    await at.pass(0);
    const again = at.pay({ idempotencyKey: 'k' });
    await at.pass(0);
    expect([first.result?.fromCache, again.result?.fromCache]).toEqual([false, true]);
    expect([at.asked.length, at.runs.length]).toEqual([1, 1]);
  });

  it('R-22.3 two calls under one key that wait together need one approval: the other gets the result', async () => {
    const at = scene();
    const one = at.pay({ idempotencyKey: 'k' });
    const other = at.pay({ idempotencyKey: 'k' });
    await at.pass(0);
    const [asked] = await at.approvals.pending();
    await at.approvals.answer(asked?.id ?? '', true);
    await at.pass(5_000);
    expect([one.result?.status, other.result?.status]).toEqual(['success', 'success']);
    expect([one, other].filter(({ result }) => result?.fromCache === true)).toHaveLength(1);
    expect([at.runs.length, await at.approvals.pending()]).toEqual([1, []]);
  });

  it('R-22.3 a breaker that is open, or a hook that blocks, does not use an approval up', async () => {
    const at = scene({ approvals: { ask: () => true } });
    await at.spillway.orderBreakers('force_open', { tool: 'pay' });
    const call = at.pay();
    await at.pass(0);
    expect(call.result?.status).toBe('circuit_open');
    await at.spillway.orderBreakers('reset', { tool: 'pay' });
    at.pay();
    await at.pass(0);
    expect([at.asked.length, at.runs.length]).toEqual([1, 1]);
  });
});

describe('what undoes a failed turn', () => {
  it('R-22.6 asks nobody, and no budget limits it', async () => {
    const undone: unknown[] = [];
    const at = scene({
      approvals: { ask: () => true },
      budget: createBudget({ calls: 2, per: 'tenant' }),
      tool: { compensate: (output: unknown) => void undone.push(output) },
      more: [
        tool({
          name: 'fails',
          policy: { effects: 'mutating' },
          execute: () => Promise.reject(Object.assign(new Error('no'), { status: 402 })),
        }),
      ],
    });
    const turn = plan.from(
      [
        { id: 'pay', tool: 'pay', input: { amount: 1 } },
        { id: 'fails', tool: 'fails', needs: ['pay'] },
      ],
      { onFailure: 'compensate' },
    );
    at.spillway.turn(turn).subscribe();
    await at.pass(10_000);
    expect([at.runs.length, undone, at.asked.length]).toEqual([1, ['paid'], 1]);
  });
});
