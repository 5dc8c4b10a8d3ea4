// Was: an approval was bound to what the caller held, and not to what the tool was given: with a schema, a change of
// either ran an input that nobody had approved. Now: it is for the input that runs, and each change asks anew.
import { ToolExecutionError, type DedupeStore } from 'spillway';
import { createBudget } from 'spillway/gates';
import { memoryStore } from 'spillway/stores/memory';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { scene } from '../gate/kit.ts';

interface Payment {
  amount: number;
}
const input = z.object({ amount: z.number(), live: z.boolean().default(true) });
const large = (given: unknown): boolean => (given as Payment).amount > 100;
const makeLarge = ({ input: given }: { readonly input: unknown }): void => {
  (given as Payment).amount = 9_999;
};
const refusedAtFirst = (change: (given: Payment) => void): ((given: unknown) => string) => {
  let attempts = 0;
  return (given) => {
    if (attempts++ > 0) return 'paid';
    change(given as Payment);
    throw new ToolExecutionError('execution_error', 'busy', { executed: false, classification: 'transient' });
  };
};

describe('a person approves what runs', () => {
  it('R-22.2 what the caller changes while it waits changes neither the question nor what runs', async () => {
    const held = { amount: 7_000 };
    const at = scene({ tool: { input } });
    at.pay({ input: held });
    await at.pass(0);
    held.amount = 7;
    const [asked] = await at.approvals.pending();
    expect(asked?.input).toEqual({ amount: 7_000, live: true });
    await at.approvals.answer(asked?.id ?? '', true);
    await at.pass(2_000);
    expect(at.runs.map(([, given]) => given)).toEqual([asked?.input]);
    expect(await at.approvals.pending()).toEqual([]);
  });

  it('R-22.2 what a hook changes in place is asked about', async () => {
    const hooks = { beforeToolCall: makeLarge };
    const at = scene({ tool: { input }, hooks, approvals: { ask: ({ input: given }) => !large(given) } });
    const call = at.pay();
    await at.pass(0);
    expect(at.asked.map(({ input: given }) => given)).toEqual([
      { amount: 7, live: true },
      { amount: 9_999, live: true },
    ]);
    expect([call.result?.error?.code, at.runs]).toEqual(['not_permitted', []]);
  });

  it('R-22.1 a rule is asked again about an input that a hook has changed since', async () => {
    const hooks = { beforeToolCall: makeLarge };
    const at = scene({ tool: { needsApproval: large }, hooks, approvals: { ask: () => false } });
    const call = at.pay();
    await at.pass(0);
    expect(at.asked.map(({ input: given }) => given)).toEqual([{ amount: 9_999 }]);
    expect([call.result?.error?.code, at.runs]).toEqual(['not_permitted', []]);
  });

  it('R-22.2 a hook that changes it each time ends the call, and nothing runs', async () => {
    let changes = 0;
    const hooks = {
      beforeToolCall: ({ input: given }: { readonly input: unknown }): void => {
        (given as Payment).amount = ++changes;
      },
    };
    const at = scene({ hooks, approvals: { ask: () => true } });
    const call = at.pay();
    await at.pass(60_000);
    expect([call.result?.error?.code, at.runs]).toEqual(['not_permitted', []]);
    expect(call.result?.error?.message).toContain('change it in prepareCall');
  });

  it('R-22.3 a retry with another input asks anew, although the failure was certain', async () => {
    const execute = refusedAtFirst(() => undefined);
    const hooks = {
      beforeToolCall: ({ input: given, attempt }: { readonly input: unknown; readonly attempt: number }): void => {
        if (attempt === 2) makeLarge({ input: given });
      },
    };
    const at = scene({ approvals: { ask: ({ input: given }) => !large(given) }, hooks, execute });
    const call = at.pay();
    await at.pass(2_000);
    expect(at.asked).toHaveLength(2);
    expect(at.runs).toHaveLength(1);
    expect(call.result?.status).not.toBe('success');
  });

  it('R-22.3 what the tool itself changes is not what its retry runs with: that is what was approved', async () => {
    const execute = refusedAtFirst((given) => (given.amount = 9_999));
    const at = scene({ approvals: { ask: ({ input: given }) => !large(given) }, execute });
    const call = at.pay();
    await at.pass(2_000);
    expect(at.asked).toHaveLength(1);
    expect(at.runs.map(([, given]) => given)).toEqual([{ amount: 9_999 }, { amount: 7 }]);
    expect(call.result?.status).toBe('success');
  });

  it('R-22.2 what changes while the store uses the answer up is asked about anew', async () => {
    const held = { amount: 7 };
    const memory = memoryStore();
    const store: DedupeStore = {
      ...memory,
      compareAndSet: (key, version, outcome) => {
        if (JSON.stringify(outcome).includes('used')) held.amount = 9_999;
        return memory.compareAndSet(key, version, outcome);
      },
    };
    const at = scene({ store, approvals: { ask: ({ input: given }) => !large(given) } });
    const call = at.pay({ input: held });
    await at.pass(60_000);
    expect(at.asked.map(({ input: given }) => given)).toEqual([{ amount: 7 }, { amount: 9_999 }]);
    expect([call.result?.error?.code, at.runs]).toEqual(['not_permitted', []]);
  });

  it('R-22.2 a retry after its time asks anew: an approval counts for its time', async () => {
    const retry = { initialDelayMs: 120_000, maxDelayMs: 1e6, maxTotalTimeMs: 1e7, jitterPercent: 0 };
    const execute = refusedAtFirst(() => undefined);
    const tool = { policy: { effects: 'mutating' as const, retry } };
    const at = scene({ tool, approvals: { ttlMs: 60_000, ask: () => true }, execute });
    at.pay();
    await at.pass(1_000_000);
    expect(at.asked).toHaveLength(2);
    expect(at.runs).toHaveLength(2);
  });

  it('R-22.2 an input of which a schema makes a date is approved as that', async () => {
    const at = scene({ tool: { input: z.object({ due: z.coerce.date() }) } });
    at.pay({ input: { due: '2030-01-01' } });
    at.pay({ input: { due: '2031-01-01' } });
    await at.pass(0);
    const pending = await at.approvals.pending();
    expect(pending).toHaveLength(2);
    const [first] = pending;
    await at.approvals.answer(first?.id ?? '', true);
    await at.pass(2_000);
    expect(at.runs).toHaveLength(1);
  });

  it('R-22.1 what cannot be told from a changed input does not run, though it needed no approval', async () => {
    const circle: Payment & { self?: object } = { amount: 7 };
    circle.self = circle;
    const at = scene({ tool: { needsApproval: large }, hooks: { beforeToolCall: makeLarge } });
    const call = at.pay({ input: circle });
    await at.pass(0);
    expect([call.result?.error?.code, at.runs]).toEqual(['not_permitted', []]);
  });

  it('R-22.1 nor does it hold up a tool that never needs one, and has a budget to pass', async () => {
    const circle: { self?: object } = {};
    circle.self = circle;
    const budget = createBudget({ calls: 5, per: 'tenant' });
    const at = scene({ tool: { needsApproval: false }, budget });
    const call = at.pay({ input: circle });
    await at.pass(0);
    expect([call.result?.status, at.runs.length]).toEqual(['success', 1]);
  });

  it('R-22.2 an input that is endless once it is written is refused, and holds nobody up', async () => {
    let endless: object = {};
    for (let depth = 0; depth < 60; depth++) endless = { a: endless, b: endless };
    const at = scene();
    const call = at.pay({ input: endless });
    await at.pass(0);
    expect([call.result?.error?.terminal, at.runs]).toEqual([true, []]);
  });
});
