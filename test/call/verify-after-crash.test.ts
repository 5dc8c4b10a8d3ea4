import type { AnyTool, DedupeStore } from 'spillway';
import { memoryStore } from 'spillway/stores/memory';
import { virtualRuntime, type VirtualRuntime } from 'spillway/testing';
import { describe, expect, it } from 'vitest';
import { typed } from './kit.ts';
import { LEASE_MS, REQUEST, asked, process } from './paying-process.ts';

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

  it('R-18.4 a failure of who took a key over stays uncertain: the one before may be at it yet', async () => {
    const { runtime, store } = await leftBehind();
    let answer: unknown = { done: false };
    const broken = async (): Promise<never> => {
      answer = 'unknown';
      await Promise.resolve();
      throw new Error('it broke off');
    };
    const one = process(runtime, store, broken, () => answer);
    expect(await asked(runtime, one)).toMatchObject({ attempts: 1, verified: 'unknown', error: { uncertain: true } });
    answer = { done: false };
    expect(await asked(runtime, one)).toMatchObject({
      fromCache: true,
      verified: 'unknown',
      error: { uncertain: true },
    });
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
