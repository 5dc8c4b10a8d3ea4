// Was: a call whose outcome the store refused looked at the other call's record for as long as that one ran, though its
// caller had gone. Now: it tells its own outcome and leaves nothing.
import { describe, expect, it } from 'vitest';
import type { DedupeStore } from 'spillway';
import { memoryStore } from 'spillway/stores/memory';
import { virtualRuntime } from 'spillway/testing';
import { watched, type Watched } from '../spec/tr-02-stores.ts';
import { counting } from '../support.ts';

/** The call’s outcome is refused, since another holds the key by then and runs for an hour. */
const world = (): Watched & {
  readonly runtime: ReturnType<typeof counting>;
  readonly virtual: ReturnType<typeof virtualRuntime>;
} => {
  const virtual = virtualRuntime();
  const runtime = counting(virtual);
  const memory = memoryStore({ runtime: virtual, sweepMs: Infinity });
  const store: DedupeStore = {
    ...memory,
    compareAndSet: (key) => {
      const reading = memory.get(key) as {
        readonly record: { readonly tool: string; readonly idempotencyKey: string; readonly request: object };
      };
      memory.delete(key);
      memory.setIfNotExists({
        ...reading.record,
        key,
        request: { ...reading.record.request, requestId: 'other' },
        leaseMs: 3_600_000,
        ttlMs: 3_600_000,
      } as never);
      return undefined;
    },
  };
  return { ...watched(store, () => 'mine', {}, { runtime }), runtime, virtual };
};

describe('RSC-1 a call whose outcome was refused', () => {
  it('RSC-1 canceled while it waits for the other: told its own outcome at once, and nothing is left', async () => {
    const { call, steps, virtual, runtime } = world();
    const abort = new AbortController();
    const result = call({ signal: abort.signal });
    await virtual.advance(500);
    expect(steps()).toEqual(['claimed', 'superseded']);
    abort.abort();
    expect(await result).toMatchObject({ status: 'success', fromCache: false, output: { content: 'mine' } });
    expect(runtime.timers).toBe(0);
  });

  it('RSC-1 canceled when it hears of it', async () => {
    const { call, layer, virtual, runtime } = world();
    const abort = new AbortController();
    layer.trace$.subscribe((event) => {
      if (event.type === 'dedupe' && event.step === 'superseded') abort.abort();
    });
    expect(await call({ signal: abort.signal })).toMatchObject({ output: { content: 'mine' } });
    await virtual.advance(500);
    expect(runtime.timers).toBe(0);
  });
});
