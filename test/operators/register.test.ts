import { firstValueFrom, forkJoin } from 'rxjs';
import { isToolExecutionError, type DedupeStore } from 'spillway';
import { memoryStore } from 'spillway/stores/memory';
import { virtualRuntime } from 'spillway/testing';
import { describe, expect, it } from 'vitest';
import { changed, type RegisterChange, type RegisterReading } from '../../src/operators/dedupe/register.ts';

const place = { key: 'sw1:counter', tool: 'spillway/counter', ttlMs: 60_000 };

const counted = ({ payload = '0' }: RegisterReading): RegisterChange<number> => {
  const count = Number(payload) + 1;
  return { result: count, write: { payload: String(count), ttlMs: 60_000 } };
};

/** A store that answers later, so that writers come in each other's way. */
const slow = (store: DedupeStore, wait: () => Promise<unknown>): DedupeStore => ({
  ...store,
  get: async (key) => {
    await wait();
    return store.get(key);
  },
  setIfNotExists: async (claim, over) => {
    await wait();
    return store.setIfNotExists(claim, over);
  },
  compareAndSet: async (key, version, outcome) => {
    await wait();
    return store.compareAndSet(key, version, outcome);
  },
});

describe('a record that processes share', () => {
  it('R-22.7 is changed by each as if nobody else did', async () => {
    const runtime = virtualRuntime();
    const store = slow(memoryStore({ runtime }), () => firstValueFrom(runtime.after(1)));
    const terms = { store: () => store, runtime, storeTimeoutMs: 5_000 };
    const all = firstValueFrom(forkJoin(Array.from({ length: 20 }, () => changed(terms, place, counted))));
    await runtime.advance(10_000);
    expect((await all).toSorted((a, b) => a - b)).toEqual(Array.from({ length: 20 }, (_, place) => place + 1));
  });

  it('R-22.7 is not made by one who only looks', async () => {
    const runtime = virtualRuntime();
    const store = memoryStore({ runtime });
    const terms = { store: () => store, runtime, storeTimeoutMs: 5_000 };
    expect(await firstValueFrom(changed(terms, place, ({ payload }) => ({ result: payload })))).toBeUndefined();
    expect(await store.get(place.key)).toBeUndefined();
  });

  it('R-22.7 is taken over from a writer that died before it wrote', async () => {
    const runtime = virtualRuntime();
    const store = memoryStore({ runtime });
    const dies = { ...store, compareAndSet: () => new Promise<never>(() => undefined) };
    const terms = { runtime, storeTimeoutMs: 5_000 };
    changed({ ...terms, store: () => dies }, place, counted).subscribe({ error: () => undefined });
    await runtime.advance(0);
    expect(await firstValueFrom(changed({ ...terms, store: () => store }, place, counted))).toBe(1);
    await runtime.advance(10_000);
  });

  it('R-22.7 that others change without end is given up, and so is a store that does not answer', async () => {
    const runtime = virtualRuntime();
    const store = memoryStore({ runtime });
    const busy = { ...store, compareAndSet: () => undefined };
    const silent = { ...store, get: () => new Promise<never>(() => undefined) };
    for (const broken of [busy, silent]) {
      const ended = firstValueFrom(
        changed({ store: () => broken, runtime, storeTimeoutMs: 5_000 }, place, counted),
      ).catch((error: unknown) => error);
      await runtime.advance(60_000);
      const error = await ended;
      expect(isToolExecutionError(error) && error.kind).toBe('store_unavailable');
    }
  });
});
