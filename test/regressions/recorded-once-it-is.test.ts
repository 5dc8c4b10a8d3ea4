// Was: a canceled call told `recorded` before the store had been asked. Now: it tells what the store answered at once,
// and nothing of an answer that came late or never.
import { expect, it } from 'vitest';
import type { DedupeStore } from 'spillway';
import { memoryStore } from 'spillway/stores/memory';
import { virtualRuntime } from 'spillway/testing';
import { watched } from '../spec/tr-02-stores.ts';

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
