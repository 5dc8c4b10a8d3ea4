// Was: a teardown that threw kept a key claimed for as long as the process lived, and a canceled call untold. Now:
// neither waits for what a teardown does.
import { createSpillway, dedupe, tool, type DedupeStore, type SpillwayOptions } from 'spillway';
import { memoryStore } from 'spillway/stores/memory';
import { virtualRuntime } from 'spillway/testing';
import { Observable } from 'rxjs';
import { describe, expect, it } from 'vitest';

const throwing$ = new Observable<never>(() => () => {
  throw new Error('torn down');
});

describe('a teardown that throws', () => {
  it('R-9.6 the key of a stream whose subscriber left is recorded all the same, and renewed no more', async () => {
    const runtime = virtualRuntime();
    const store = memoryStore({ runtime, sweepMs: Infinity });
    const subscription = throwing$.pipe(dedupe(store, 'k', {}, runtime)).subscribe();
    expect(() => subscription.unsubscribe()).toThrow('torn down');
    expect(await store.get('k')).toMatchObject({ record: { state: 'cancelled' } });
    expect(runtime.pending).toBe(0);
  });

  it('R-9.6 a stream that outlived its subscriber leaves a record, too, once nobody waits for it any more', async () => {
    const runtime = virtualRuntime();
    const store = memoryStore({ runtime, sweepMs: Infinity });
    const deduped$ = throwing$.pipe(dedupe(store, 'k', {}, runtime));
    const leader = deduped$.subscribe();
    const waiter = deduped$.subscribe();
    leader.unsubscribe();
    expect(await store.get('k')).toMatchObject({ record: { state: 'inflight' } });
    expect(() => waiter.unsubscribe()).toThrow('torn down');
    expect(await store.get('k')).toMatchObject({ record: { state: 'cancelled' } });
    expect(runtime.pending).toBe(0);
  });

  const memory = memoryStore();
  const waiting: DedupeStore = {
    ...memory,
    changes: () => throwing$,
  };
  it.each<[string, string, SpillwayOptions]>([
    ['R-11.1', 'prepareCall', { hooks: { prepareCall: () => throwing$ } }],
    ['R-11.1', 'beforeToolCall', { hooks: { beforeToolCall: () => throwing$ } }],
    ['R-6.1', 'the error handler', { errorHandler: () => throwing$ }],
    ['R-10.3', 'changes of the store', { store: waiting }],
  ])('%s a call that waits for %s ends when it is canceled', async (_rule, _what, options) => {
    const runtime = virtualRuntime();
    const caller = new AbortController();
    const failing = tool({ name: 'failing', execute: () => Promise.reject(new Error('busy')) });
    const spillway = createSpillway({
      runtime,
      tools: [failing, tool({ name: 'hanging', execute: () => new Promise(() => undefined) })],
      ...options,
    });
    const toolName = 'store' in options ? 'hanging' : 'failing';
    if ('store' in options) void spillway.execute({ toolName, idempotencyKey: 'k' });
    const result = spillway.execute({ toolName, idempotencyKey: 'k' }, { signal: caller.signal });
    await runtime.advance(1);
    caller.abort();
    expect((await result).error).toMatchObject({ code: 'canceled' });
    await expect(spillway.close()).resolves.toBeUndefined();
  });
});
