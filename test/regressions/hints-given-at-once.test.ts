// Was: a store whose changes replay their last value was asked without a pause, and who waited never got an answer.
// Now: what is given at once is no change.
import { createSpillway, tool, type DedupeStore } from 'spillway';
import { memoryStore } from 'spillway/stores/memory';
import { virtualRuntime } from 'spillway/testing';
import { BehaviorSubject, firstValueFrom } from 'rxjs';
import { expect, it } from 'vitest';

it.each([
  ['at once', false],
  ['later', true],
])(
  'R-10.3 who waits for a key of a store that answers %s and whose changes replay gets its outcome',
  async (_when, later) => {
    const runtime = virtualRuntime();
    const memory = memoryStore({ runtime });
    let looks = 0;
    const get: DedupeStore['get'] = (key) => {
      if (++looks > 1_000) throw new Error('asked without a pause');
      return later ? Promise.resolve(memory.get(key)) : memory.get(key);
    };
    const store: DedupeStore = { ...memory, get, changes: () => new BehaviorSubject('now') };
    const slow = tool({ name: 'slow', execute: async () => firstValueFrom(runtime.after(1_000)) });
    const spillway = createSpillway({ runtime, store, tools: [slow] });
    const [leader, waiter] = [1, 2].map(() => spillway.execute({ toolName: 'slow', idempotencyKey: 'k' }));
    await runtime.advance(5_000);
    expect(await leader).toMatchObject({ status: 'success', fromCache: false });
    expect(await waiter).toMatchObject({ status: 'success', fromCache: true });
    expect(looks).toBeLessThan(20);
  },
);
