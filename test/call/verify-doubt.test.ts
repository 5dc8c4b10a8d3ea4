import { tool, type DedupeStore } from 'spillway';
import { memoryStore } from 'spillway/stores/memory';
import { virtualRuntime } from 'spillway/testing';
import { describe, expect, it } from 'vitest';
import { LEASE_MS, REQUEST, asked, process } from './paying-process.ts';

const broken = async (): Promise<never> => {
  await Promise.resolve();
  throw new Error('it broke off');
};

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

  it('R-18.4 a replayed failure whose work had stopped is certain once nothing is found of it', async () => {
    const runtime = virtualRuntime();
    const store = memoryStore({ runtime });
    let answer: unknown = 'unknown';
    const one = process(runtime, store, broken, () => answer, { verify: { settleMs: 5, maxAttempts: 1 } });
    const first = await asked(runtime, one);
    expect(first).toMatchObject({ verified: 'unknown', error: { uncertain: true } });
    expect(first.error?.modelText).toContain('may have');
    answer = { done: false };
    const other = process(runtime, store, broken, () => answer, { verify: { settleMs: 5, maxAttempts: 1 } });
    const replayed = await asked(runtime, other);
    expect(replayed).toMatchObject({ status: first.status, fromCache: true, verified: 'not_done', attempts: 0 });
    expect(replayed.error).toMatchObject({ code: first.error?.code, message: first.error?.message });
    expect(replayed.error?.uncertain).toBeUndefined();
    expect(replayed.error?.modelText).not.toContain('may have');
    // What comes late is found by the next who asks.
    answer = { done: true, output: 'paid' };
    expect(await asked(runtime, other)).toMatchObject({ status: 'success', verified: 'done' });
    expect([one.ran, other.ran]).toEqual([1, 0]);
  });

  it('R-18.4 a replayed failure stays uncertain where its work had not stopped', async () => {
    const runtime = virtualRuntime();
    const store = memoryStore({ runtime });
    const policy = { timeoutMs: 5, verify: { settleMs: 0, maxAttempts: 1, timeoutMs: 2 } };
    const deaf = (): Promise<never> => new Promise(() => undefined);
    const one = process(runtime, store, deaf, () => ({ done: false }), policy);
    expect(await asked(runtime, one)).toMatchObject({ verified: 'unknown', error: { uncertain: true } });
    expect(await asked(runtime, one)).toMatchObject({
      fromCache: true,
      verified: 'unknown',
      error: { uncertain: true },
    });
  });

  it('R-18.4 a replayed failure of an alternative is not settled by what the tool before it says', async () => {
    const runtime = virtualRuntime();
    const store = memoryStore({ runtime });
    const refused = (): never => {
      throw Object.assign(new Error('no such account'), { status: 404 });
    };
    const other = tool({
      name: 'other',
      policy: { effects: 'mutating', retry: { maxAttempts: 1 }, verify: { settleMs: 0, maxAttempts: 1 } },
      execute: () => Promise.reject(new Error('it broke off')),
      verify: () => 'unknown' as const,
    });
    const policy = { alternatives: ['other'] };
    const one = process(runtime, store, refused, () => ({ done: false }), policy, [other]);
    expect(await asked(runtime, one)).toMatchObject({ toolName: 'other', error: { uncertain: true } });
    expect(await asked(runtime, one)).toMatchObject({ fromCache: true, toolName: 'other', error: { uncertain: true } });
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

  it('R-18.4 a call whose own work runs on is not settled by the record of who has its key now', async () => {
    const runtime = virtualRuntime();
    const store = memoryStore({ runtime });
    let answer: unknown = 'unknown';
    const one = process(
      runtime,
      store,
      () => new Promise(() => undefined),
      () => answer,
      { timeoutMs: 20_000 },
    );
    const first = one.layer.execute(REQUEST);
    await runtime.advance(5);
    for await (const { key } of store.byTool('pay')) await store.delete(key);
    const other = process(runtime, store, broken, () => answer);
    expect(await asked(runtime, other)).toMatchObject({ verified: 'unknown', error: { uncertain: true } });
    answer = { done: false };
    await runtime.advance(4 * LEASE_MS);
    expect(await first).toMatchObject({ verified: 'unknown', error: { uncertain: true } });
  });
});
