// Was: a process that went on for one that had died, or for a fleet's worker that had, took its own certain failure for
// that of the whole call: an alternative paid again, and the payment was told as not made. Now: that doubt stays.
import { describe, expect, it } from 'vitest';
import { createSpillway, plan, tool, type AnyTool, type Spillway, type ToolPolicy } from 'spillway';
import { createBudget } from 'spillway/gates';
import { memoryStore } from 'spillway/stores/memory';
import { virtualRuntime } from 'spillway/testing';
import { handFleet } from '../fleet/by-hand.ts';

const away = (): Error => Object.assign(new Error('unavailable'), { status: 503 });
const lost = (): Error => Object.assign(new Error('socket hang up'), { code: 'ECONNRESET' });
const unsent = (): Error => Object.assign(new Error('refused'), { code: 'ECONNREFUSED' });
const throws = (error: () => Error) => (): never => {
  throw error();
};

const POLICY: ToolPolicy = {
  effects: 'mutating',
  enforcesKey: true,
  alternatives: ['other'],
  dedupe: { leaseMs: 1_000 },
  retry: { maxAttempts: 2, initialDelayMs: 20_000, maxDelayMs: 20_000, maxTotalTimeMs: 50_000 },
};

/** A payment, and another way to pay, as one process has them. */
const payments = (ran: string[], who: string, pays: () => unknown, more: Partial<AnyTool> = {}): AnyTool[] => [
  tool({
    name: 'pay',
    policy: POLICY,
    ...(more as object),
    execute: () => {
      ran.push(`${who} pays`);
      return pays();
    },
  }),
  tool({
    name: 'other',
    policy: { effects: 'mutating' },
    execute: () => {
      ran.push(`${who} pays elsewhere`);
      return who === 'A' ? new Promise(() => undefined) : 'paid';
    },
  }),
];

/** What the second process came to, whose predecessor died while it paid as it did. */
const takenOver = async (died: () => unknown, pays: () => unknown, more: Partial<AnyTool> = {}) => {
  const runtime = virtualRuntime();
  const store = memoryStore({ runtime });
  const ran: string[] = [];
  const request = { toolName: 'pay', input: {}, idempotencyKey: 'k' };
  const layer = (own: typeof runtime, tools: AnyTool[]): Spillway => createSpillway({ runtime: own, store, tools });
  // Its own time stands still from now on.
  const stopped = virtualRuntime();
  void layer(stopped, payments(ran, 'A', died, more)).execute(request);
  await stopped.advance(21_000);
  await runtime.advance(1_001);
  const result = layer(runtime, payments(ran, 'B', pays, more)).execute(request);
  await runtime.advance(120_000);
  return { ran, result: await result };
};

const never = (): Promise<never> => new Promise(() => undefined);

describe('doubt about what a process did that died', () => {
  it('R-2.5 stays where its key was taken over, and no alternative pays again', async () => {
    const { ran, result } = await takenOver(never, throws(away));
    expect(result.error).toMatchObject({ uncertain: true });
    expect(ran).toStrictEqual(['A pays', 'B pays', 'B pays']);
  });

  it('R-18.4 of an alternative that may have paid nothing is known by the key of the tool before it', async () => {
    const { ran, result } = await takenOver(throws(away), () => 'paid', { verify: () => ({ done: false }) });
    expect(ran).toStrictEqual(['A pays', 'A pays', 'A pays elsewhere']);
    expect(result).toMatchObject({ verified: 'unknown', error: { uncertain: true } });
  });
});

it('R-9.6 stays where the taken key is lost before anything was asked of the tool', async () => {
  const runtime = virtualRuntime();
  const store = memoryStore({ runtime });
  const ran: string[] = [];
  const request = { toolName: 'pay', input: {}, idempotencyKey: 'k' };
  const stopped = virtualRuntime();
  const first = createSpillway({ runtime: stopped, store, tools: payments(ran, 'A', never) });
  void first.execute(request);
  await stopped.advance(10);
  await runtime.advance(1_001);
  // What it has taken over is gone when it renews it.
  const losing = Object.assign(Object.create(store) as typeof store, { renew: () => undefined });
  const tools = payments(ran, 'B', () => 'paid', { verify: never });
  const result = createSpillway({ runtime, store: losing, tools }).execute(request);
  await runtime.advance(120_000);
  expect((await result).error).toMatchObject({ code: 'store_unavailable', uncertain: true });
  expect(ran).toStrictEqual(['A pays']);
});

const trip = plan.from([{ id: 'n', tool: 'pay', input: {} }], { timeoutMs: 120_000 });

/** What became of a turn that moved while a retry was waited for. */
const moved = async (first: () => Error, second: () => unknown, budget?: ReturnType<typeof createBudget>) => {
  const world = handFleet();
  const ran: string[] = [];
  const before = budget === undefined ? {} : { budget: createBudget({ calls: 5, per: 'tenant' }) };
  const a = world.worker('A', payments(ran, 'A', throws(first)), before);
  const b = world.worker('B', payments(ran, 'B', second), budget === undefined ? {} : { budget });
  await world.fleet.submit('t', trip);
  await a.give('t');
  a.machine.kill();
  await b.give('t');
  await world.runtime.advance(100_000);
  const left = budget?.left();
  await world.runtime.advance(100);
  return { ran, node: world.result('t')?.nodes[0], left: await left };
};

describe('what is known of attempts before a turn moved', () => {
  it('R-17.4 doubt stays, and no alternative pays again', async () => {
    const { ran, node } = await moved(lost, throws(away));
    expect(node?.result?.error).toMatchObject({ uncertain: true });
    expect(ran).toStrictEqual(['A pays', 'B pays']);
  });

  it('R-17.4 where no attempt left it open, the alternative pays', async () => {
    const { ran } = await moved(unsent, throws(away));
    expect(ran).toStrictEqual(['A pays', 'B pays', 'B pays elsewhere']);
  });

  it.each([
    ['that never ran is no call, and the next one is', unsent],
    ['that ran is one, and the next one is no further', away],
  ])('R-22.6 a first attempt %s', async (_, first) => {
    const budget = createBudget({ calls: 5, per: 'tenant' });
    const { left } = await moved(first, () => 'paid', budget);
    expect(left).toMatchObject([{ unit: 'calls', left: 4 }]);
  });
});
