import {
  createSpillway,
  tool,
  type AnyTool,
  type DedupeStore,
  type Spillway,
  type ToolContext,
  type ToolPolicy,
  type TraceEvent,
} from 'spillway';
import type { VerifyAnswer } from 'spillway/contract';
import { memoryStore } from 'spillway/stores/memory';
import { virtualRuntime, type VirtualRuntime } from 'spillway/testing';
import { describe, expect, it } from 'vitest';
import { typed } from './kit.ts';

const LEASE_MS = 1_000;
const REQUEST = { toolName: 'pay', input: { amount: 7 }, idempotencyKey: 'k1', session: 's' };

interface Process {
  readonly layer: Spillway;
  readonly trace: TraceEvent[];
  readonly ran: number;
}

const process = (
  runtime: VirtualRuntime,
  store: DedupeStore,
  pay: (context: ToolContext) => unknown,
  verify?: () => unknown,
  policy: ToolPolicy = {},
  others: readonly AnyTool[] = [],
): Process => {
  let ran = 0;
  const payment = tool({
    name: 'pay',
    policy: {
      effects: 'mutating',
      dedupe: { leaseMs: LEASE_MS },
      verify: { settleMs: 0, maxAttempts: 1 },
      retry: { maxAttempts: 1 },
      ...policy,
    },
    execute: (_input: unknown, context): unknown => {
      ran++;
      return pay(context);
    },
    ...(verify === undefined ? {} : { verify: () => verify() as VerifyAnswer }),
  });
  const layer = createSpillway({ tools: [payment, ...others], runtime, store });
  const trace: TraceEvent[] = [];
  layer.trace$.subscribe((event) => trace.push(event));
  return {
    layer,
    trace,
    get ran() {
      return ran;
    },
  };
};

/** A store in which a process that died has left its claim, whose lease has passed. */
const leftBehind = async (): Promise<{ readonly runtime: VirtualRuntime; readonly store: DedupeStore }> => {
  const runtime = virtualRuntime();
  const store = memoryStore({ runtime });
  // Its own time stands still from the moment on in which its tool runs.
  const dead = process(virtualRuntime(), store, () => new Promise(() => undefined));
  void dead.layer.execute(REQUEST);
  await runtime.advance(LEASE_MS + 1);
  expect(dead.ran).toBe(1);
  return { runtime, store };
};

const asked = async (runtime: VirtualRuntime, { layer }: Process) => {
  const result = layer.execute(REQUEST);
  await runtime.advance(20);
  return result;
};

describe('a claim that a dead process has left', () => {
  it.each([
    ['a tool', {}],
    ['a safety-critical tool', { safetyCritical: true }],
  ])('R-18.4 %s that took effect is a success, and is remembered as one', async (_what, policy) => {
    const { runtime, store } = await leftBehind();
    const next = process(
      runtime,
      store,
      () => 'paid twice',
      () => ({ done: true, output: 'paid' }),
      policy,
    );
    expect(await asked(runtime, next)).toMatchObject({
      status: 'success',
      verified: 'done',
      attempts: 0,
      output: { content: 'paid' },
    });
    expect(await asked(runtime, next)).toMatchObject({
      fromCache: true,
      verified: 'done',
      output: { content: 'paid' },
    });
    expect(next.ran).toBe(0);
    expect(typed(next.trace, 'verified')).toMatchObject([{ attempt: 0, finding: 'done' }]);
  });

  it.each([
    ['a tool', {}],
    ['a safety-critical tool', { safetyCritical: true }],
  ])('R-18.4 %s that did not take effect runs', async (_what, policy) => {
    const { runtime, store } = await leftBehind();
    const next = process(
      runtime,
      store,
      () => 'paid',
      () => ({ done: false }),
      policy,
    );
    expect(await asked(runtime, next)).toMatchObject({ status: 'success', attempts: 1, output: { content: 'paid' } });
    expect(await asked(runtime, next)).toMatchObject({ fromCache: true });
    expect(next.ran).toBe(1);
  });

  it('R-18.4 what cannot be known is refused, and asked for anew by the next call', async () => {
    const { runtime, store } = await leftBehind();
    let knows = false;
    const next = process(
      runtime,
      store,
      () => 'paid',
      () => (knows ? { done: true } : 'unknown'),
    );
    expect(await asked(runtime, next)).toMatchObject({
      verified: 'unknown',
      error: { code: 'duplicate_in_flight', uncertain: true, retriable: true },
    });
    knows = true;
    await runtime.advance(LEASE_MS);
    expect(await asked(runtime, next)).toMatchObject({ status: 'success', verified: 'done' });
    expect(next.ran).toBe(0);
  });

  it('R-18.4 what cannot be known runs where the resource checks the key', async () => {
    const { runtime, store } = await leftBehind();
    const next = process(
      runtime,
      store,
      () => 'paid',
      () => 'unknown',
      { enforcesKey: true },
    );
    expect(await asked(runtime, next)).toMatchObject({ status: 'success', attempts: 1 });
  });

  it('R-18.4 an alternative that cannot be verified is in no doubt where no note says that it began', async () => {
    const { runtime, store } = await leftBehind();
    const other: AnyTool = { name: 'pay_elsewhere', policy: { effects: 'mutating' }, execute: () => 1 };
    const policy = { alternatives: ['pay_elsewhere'] };
    const next = process(
      runtime,
      store,
      () => 'paid',
      () => ({ done: false }),
      policy,
      [other],
    );
    expect(await asked(runtime, next)).toMatchObject({ status: 'success', attempts: 1 });
    expect(next.ran).toBe(1);
  });

  it('R-18.4 a call that is canceled while it asks is uncertain, and leaves the claim as it was', async () => {
    const { runtime, store } = await leftBehind();
    const next = process(
      runtime,
      store,
      () => 'paid',
      () => new Promise(() => undefined),
    );
    const abort = new AbortController();
    const result = next.layer.execute(REQUEST, { signal: abort.signal });
    await runtime.advance(10);
    abort.abort();
    await runtime.advance(20);
    expect(await result).toMatchObject({ error: { code: 'canceled', uncertain: true } });
    await runtime.advance(LEASE_MS);
    const last = process(
      runtime,
      store,
      () => 'paid',
      () => ({ done: true }),
    );
    expect(await asked(runtime, last)).toMatchObject({ verified: 'done', attempts: 0 });
  });
});

describe('what a key leaves in doubt', () => {
  it('R-18.4 a canceled call under the key that took effect is a success', async () => {
    const runtime = virtualRuntime();
    const store = memoryStore({ runtime });
    const abort = new AbortController();
    let done = false;
    const one = process(
      runtime,
      store,
      () => new Promise(() => undefined),
      () => ({ done }),
    );
    const canceled = one.layer.execute(REQUEST, { signal: abort.signal });
    await runtime.advance(5);
    abort.abort();
    await runtime.advance(20);
    expect(await canceled).toMatchObject({ error: { code: 'canceled', uncertain: true } });
    expect(await asked(runtime, one)).toMatchObject({
      verified: 'unknown',
      error: { code: 'canceled', uncertain: true },
    });
    done = true;
    expect(await asked(runtime, one)).toMatchObject({ status: 'success', verified: 'done', attempts: 0 });
    expect(one.ran).toBe(1);
  });

  it('R-18.4 an uncertain failure that is replayed is looked into again', async () => {
    const runtime = virtualRuntime();
    const store = memoryStore({ runtime });
    let answer: unknown = 'unknown';
    const broken = (): never => {
      throw new Error('it broke off');
    };
    const one = process(runtime, store, broken, () => answer);
    expect(await asked(runtime, one)).toMatchObject({ verified: 'unknown', error: { uncertain: true } });
    answer = { done: true, output: 'paid' };
    expect(await asked(runtime, one)).toMatchObject({
      status: 'success',
      verified: 'done',
      output: { content: 'paid' },
    });
    expect(one.ran).toBe(1);
  });

  it('R-18.4 a failure that the store did not get is uncertain until it is found that it took effect', async () => {
    const runtime = virtualRuntime();
    const store = memoryStore({ runtime });
    const deaf: DedupeStore = {
      ...store,
      get: (key) => store.get(key),
      setIfNotExists: (claim, over) => store.setIfNotExists(claim, over),
      renew: (key, version, leaseMs) => store.renew(key, version, leaseMs),
      delete: (key, version) => store.delete(key, version),
      byTool: (name) => store.byTool(name),
      bySession: (name) => store.bySession(name),
      sweep: () => store.sweep(),
      compareAndSet: () => undefined,
    };
    const refused = (): never => {
      throw Object.assign(new Error('no such account'), { status: 404 });
    };
    const found = process(runtime, deaf, refused, () => ({ done: true, output: 'paid by another' }));
    const first = found.layer.execute(REQUEST);
    // It waits for whoever holds the key now, as long as that could be.
    await runtime.advance(2 * LEASE_MS);
    expect(await first).toMatchObject({
      status: 'success',
      verified: 'done',
      recorded: 'superseded',
      output: { content: 'paid by another' },
    });
    const none = process(runtime, deaf, refused, () => ({ done: false }));
    const other = none.layer.execute({ ...REQUEST, idempotencyKey: 'k2' });
    await runtime.advance(2 * LEASE_MS);
    // Another process may hold the key now, and be about to do it.
    expect(await other).toMatchObject({ verified: 'unknown', error: { uncertain: true } });
  });
});
