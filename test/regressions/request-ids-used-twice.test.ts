// Was: a call took the record of another call with the same request id for its own. Now: only what it wrote itself is
// its own, and the other's outcome is replayed as such.
import { expect, it } from 'vitest';
import type { DedupeStore } from 'spillway';
import { memoryStore } from 'spillway/stores/memory';
import { virtualRuntime } from 'spillway/testing';
import { asked, watched } from '../spec/tr-02-stores.ts';

/** A client that asks again uses its request id again. */
it.each([
  ['own, the reply to it was lost', true, ['claimed', 'recorded'], 'first'],
  ['of another with the same request id', false, ['claimed', 'superseded', 'replayed'], 'second'],
] as const)(
  'R-9.6 an outcome that had to be written twice: the record is its %s',
  async (_what, own, expected, content) => {
    const runtime = virtualRuntime();
    const memory = memoryStore({ runtime, sweepMs: Infinity });
    let writes = 0;
    const store: DedupeStore = {
      ...memory,
      compareAndSet: async (key, version, outcome) => {
        writes++;
        if (writes > 1) return memory.compareAndSet(key, version, outcome);
        const payload = own ? outcome.payload : outcome.payload?.replace('first', 'second');
        await memory.compareAndSet(key, version, { ...outcome, ...(payload === undefined ? {} : { payload }) });
        throw new Error('ECONNRESET');
      },
    };
    const { layer, steps } = watched(store, () => 'first', {}, { runtime });
    const result = layer.execute(asked());
    await runtime.advance(10_000);
    expect((await result).output?.content).toBe(content);
    expect(steps()).toEqual(expected);
  },
);
