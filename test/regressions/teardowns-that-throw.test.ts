// Was: a teardown that threw kept a key claimed for as long as the process lived. Now: what became of it is recorded all the same.
import { dedupe } from 'spillway';
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
});
