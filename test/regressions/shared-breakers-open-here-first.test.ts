// Was: a breaker that had opened was closed again by its next call while the shared store did not hold it yet. Now: it
// stays open here for its cooldown, told to others or not.
import { firstValueFrom } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { createSpillway, tool, type DedupeStore, type Spillway } from 'spillway';
import { memoryStore } from 'spillway/stores/memory';
import { virtualRuntime, type VirtualRuntime } from 'spillway/testing';

const world = (change: (memory: DedupeStore, runtime: VirtualRuntime) => Partial<DedupeStore>) => {
  const runtime = virtualRuntime();
  const memory = memoryStore({ runtime, sweepMs: Infinity });
  let runs = 0;
  const made = (store: DedupeStore): Spillway =>
    createSpillway({
      tools: [
        tool({
          name: 't',
          policy: { retry: { maxAttempts: 1 } },
          execute: () => {
            runs++;
            throw new Error('ECONNRESET');
          },
        }),
      ],
      store,
      runtime,
      shareBreakers: true,
    });
  const layer = made({ ...memory, ...change(memory, runtime) });
  const call = async (of = layer, ms = 1): Promise<string> => {
    const result = of.execute({ toolName: 't' });
    await runtime.advance(ms);
    return (await result).status;
  };
  return { runtime, layer, other: made(memory), call, runs: () => runs };
};

describe('R-3.10 a breaker opens here first', () => {
  it('R-3.10 a store that cannot be told leaves our own open, for its cooldown', async () => {
    const { call, runs, runtime, layer } = world((memory) => ({
      setIfNotExists: () => Promise.reject(new Error('ECONNREFUSED')),
      get: memory.get,
    }));
    for (let failure = 0; failure < 5; failure++) await call();
    for (let n = 0; n < 20; n++) expect(await call()).toBe('circuit_open');
    expect([runs(), layer.breakers.get('t').state.type]).toEqual([5, 'open']);
    await runtime.advance(30_000);
    expect(await call()).toBe('retriable_error');
    expect(runs()).toBe(6);
  });

  it('R-3.10 nor does a store that is slow to be told', async () => {
    const { call, runs, other, runtime } = world((memory, clock) => ({
      setIfNotExists: (claim, over) => firstValueFrom(clock.after(20)).then(() => memory.setIfNotExists(claim, over)),
    }));
    for (let failure = 0; failure < 5; failure++) await call();
    for (let n = 0; n < 40; n++) expect(await call()).toBe('circuit_open');
    expect(await call(other)).toBe('circuit_open');
    expect(runs()).toBe(5);
    await runtime.advance(30_000);
    expect(await call(other, 100)).toBe('retriable_error');
  });

  it('R-3.8 one that a person disabled here admits, whatever the others say', async () => {
    const { call, runs, other, layer } = world(() => ({}));
    for (let failure = 0; failure < 5; failure++) await call(other);
    expect(await call()).toBe('circuit_open');
    layer.breakers.get('t').disable();
    expect(await call()).toBe('retriable_error');
    expect(runs()).toBe(6);
  });
});
