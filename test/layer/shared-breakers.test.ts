import { describe, expect, it } from 'vitest';
import { createSpillway, tool, type DedupeStore, type Spillway } from 'spillway';
import { memoryStore } from 'spillway/stores/memory';
import { virtualRuntime } from 'spillway/testing';

/** Several layers, as in several processes, that share a store and a tool which can be up or down. */
const cluster = (
  size: number,
): {
  readonly layers: readonly Spillway[];
  readonly tool: { up: boolean; runs: number; hangs: boolean };
  readonly runtime: ReturnType<typeof virtualRuntime>;
  readonly store: DedupeStore;
} => {
  const runtime = virtualRuntime();
  const store = memoryStore({ runtime });
  const state = { up: false, runs: 0, hangs: false };
  const flaky = (): ReturnType<typeof tool> =>
    tool({
      name: 'flaky',
      policy: { retry: { maxAttempts: 1 }, timeoutMs: 5_000 },
      execute: async () => {
        state.runs++;
        if (state.hangs) await new Promise(() => undefined);
        if (!state.up) throw new Error('ECONNRESET');
        return 'ok';
      },
    });
  const layers = Array.from({ length: size }, () =>
    createSpillway({ tools: [flaky()], store, runtime, shareBreakers: true }),
  );
  return { layers, tool: state, runtime, store };
};

const call = async (layer: Spillway | undefined, runtime: ReturnType<typeof virtualRuntime>): Promise<string> => {
  const result = layer?.execute({ toolName: 'flaky' });
  await runtime.advance(0);
  return (await result)?.status ?? 'none';
};

describe('R-3.10 breakers of several processes', () => {
  it('R-3.10 what one process opens, every other sees at its next call', async () => {
    const { layers, tool: flaky, runtime } = cluster(3);
    for (let failure = 0; failure < 5; failure++) expect(await call(layers[0], runtime)).toBe('retriable_error');
    expect(flaky.runs).toBe(5);
    for (const layer of layers) expect(await call(layer, runtime)).toBe('circuit_open');
    expect(flaky.runs).toBe(5);
  });

  it('R-3.10 after the cooldown eight that ask at once make exactly one probe, and after a second good one each is admitted', async () => {
    const { layers, tool: flaky, runtime } = cluster(8);
    for (let failure = 0; failure < 5; failure++) await call(layers[0], runtime);
    await runtime.advance(30_000);
    flaky.up = true;
    const first = layers.map((layer) => layer.execute({ toolName: 'flaky' }));
    await runtime.advance(0);
    const statuses = (await Promise.all(first)).map(({ status }) => status);
    expect(flaky.runs).toBe(6);
    expect(statuses.filter((status) => status === 'success')).toHaveLength(1);
    expect(statuses.filter((status) => status === 'circuit_open')).toHaveLength(7);
    expect(await call(layers[5], runtime)).toBe('success');
    for (const layer of layers) expect(await call(layer, runtime)).toBe('success');
  });

  it('R-3.10 a bad probe opens it for all again, and the cooldown starts anew', async () => {
    const { layers, tool: flaky, runtime } = cluster(2);
    for (let failure = 0; failure < 5; failure++) await call(layers[0], runtime);
    await runtime.advance(30_000);
    expect(await call(layers[1], runtime)).toBe('retriable_error');
    await runtime.advance(29_000);
    expect(await call(layers[0], runtime)).toBe('circuit_open');
    flaky.up = true;
    await runtime.advance(1_000);
    expect(await call(layers[0], runtime)).toBe('success');
  });

  it('R-3.10 R-3.5 a probe holder that dies gives its place up at half-open’s deadline: open again, and probed after the cooldown', async () => {
    const { layers, tool: flaky, runtime, store } = cluster(2);
    let alive = true;
    const gone: DedupeStore['compareAndSet'] = (key, version, outcome) =>
      alive ? store.compareAndSet(key, version, outcome) : new Promise(() => undefined);
    const hanging = tool({
      name: 'flaky',
      policy: { retry: { maxAttempts: 1 }, timeoutMs: 5_000 },
      execute: () => new Promise(() => undefined),
    });
    const mortal = createSpillway({
      tools: [hanging],
      store: { ...store, compareAndSet: gone },
      runtime,
      shareBreakers: true,
    });
    for (let failure = 0; failure < 5; failure++) await call(layers[0], runtime);
    await runtime.advance(30_000);
    void mortal.execute({ toolName: 'flaky' });
    await runtime.advance(0);
    alive = false;
    flaky.up = true;
    for (const [ms, status] of [
      [0, 'circuit_open'],
      [59_999, 'circuit_open'],
      [1, 'circuit_open'],
      [29_999, 'circuit_open'],
      [1, 'success'],
    ] as const) {
      await runtime.advance(ms);
      expect(await call(layers[1], runtime)).toBe(status);
    }
    expect(flaky.runs).toBe(6);
  });

  it('R-3.10 a caller that leaves in the middle of a probe gives it back', async () => {
    const { layers, tool: flaky, runtime } = cluster(2);
    for (let failure = 0; failure < 5; failure++) await call(layers[0], runtime);
    await runtime.advance(30_000);
    flaky.hangs = true;
    const leaving = layers[0]?.call({ toolName: 'flaky' }).subscribe();
    await runtime.advance(10);
    expect(await call(layers[1], runtime)).toBe('circuit_open');
    leaving?.unsubscribe();
    flaky.hangs = false;
    flaky.up = true;
    expect(await call(layers[1], runtime)).toBe('success');
  });

  it('R-3.10 without the store each process goes by its own breaker, and the trace says so', async () => {
    const runtime = virtualRuntime();
    const lost = (): never => {
      throw new Error('connect ECONNREFUSED');
    };
    const down = tool({
      name: 'flaky',
      policy: { retry: { maxAttempts: 1 } },
      execute: () => Promise.reject(new Error('ECONNRESET')),
    });
    const layer = createSpillway({
      tools: [down],
      store: { ...memoryStore({ runtime }), get: lost, setIfNotExists: lost },
      runtime,
      shareBreakers: true,
    });
    const told: string[] = [];
    layer.trace$.subscribe((event) => told.push(event.type));
    for (let failure = 0; failure < 5; failure++) expect(await call(layer, runtime)).toBe('retriable_error');
    expect(await call(layer, runtime)).toBe('circuit_open');
    expect(told.filter((type) => type === 'store_changed')).toHaveLength(1);
  });
});
