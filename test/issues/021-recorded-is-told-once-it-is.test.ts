import { expect, it } from 'vitest';
import type { DedupeStore } from 'spillway';
import { memoryStore } from 'spillway/stores/memory';
import { virtualRuntime } from 'spillway/testing';
import { watched } from '../spec/tr-02-stores.ts';

/** A canceled call told `recorded` before the store had been asked. */
it.each([
  ['takes it', undefined, ['claimed', 'recorded']],
  ['refuses it', (): undefined => undefined, ['claimed', 'superseded']],
  ['gives no answer', () => new Promise<never>(() => undefined), ['claimed']],
  ['answers later', () => Promise.resolve(undefined), ['claimed']],
] as const)('TRC-2 the cancel of a call that ran, when the store %s', async (_what, compareAndSet, expected) => {
  const runtime = virtualRuntime();
  const memory = memoryStore({ runtime, sweepMs: Infinity });
  const store: DedupeStore = { ...memory, ...(compareAndSet === undefined ? {} : { compareAndSet }) };
  const { call, steps } = watched(store, () => new Promise(() => undefined), {}, { runtime });
  const abort = new AbortController();
  const result = call({ signal: abort.signal });
  await runtime.advance(10);
  abort.abort();
  expect((await result).error).toMatchObject({ code: 'canceled', uncertain: true });
  await runtime.advance(200_000);
  expect(steps()).toEqual(expected);
});
