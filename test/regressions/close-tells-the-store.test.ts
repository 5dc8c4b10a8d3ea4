// Was: `close()` was over before the store had heard what it canceled, so a process that ended then left keys taken for
// their lease. Now: it waits for the store, within a limit.
import { firstValueFrom } from 'rxjs';
import { expect, it } from 'vitest';
import type { DedupeStore } from 'spillway';
import { memoryStore } from 'spillway/stores/memory';
import { virtualRuntime } from 'spillway/testing';
import { asked, records, watched } from '../spec/tr-02-stores.ts';

it('R-4.4 close() is over when the store has been told, and does not wait for one that does not answer', async () => {
  for (const answers of [true, false]) {
    const runtime = virtualRuntime();
    const memory = memoryStore({ runtime, sweepMs: Infinity });
    const store: DedupeStore = {
      ...memory,
      compareAndSet: (key, version, outcome) =>
        answers
          ? firstValueFrom(runtime.after(50)).then(() => memory.compareAndSet(key, version, outcome))
          : new Promise<never>(() => undefined),
    };
    const { layer } = watched(store, () => new Promise(() => undefined), {}, { runtime });
    layer.call(asked()).subscribe();
    await runtime.advance(10);
    let closed = false;
    const closing = layer.close().then(() => (closed = true));
    await runtime.advance(49);
    expect(closed).toBe(false);
    await runtime.advance(answers ? 1 : 4_951);
    await closing;
    expect((await records(memory)).map(({ state }) => state)).toEqual([answers ? 'cancelled' : 'inflight']);
  }
});
