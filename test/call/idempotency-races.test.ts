import { setTimeout as sleep } from 'node:timers/promises';
import { NEVER } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { createSpillway, tool, type TraceEvent } from 'spillway';
import { memoryStore } from 'spillway/stores/memory';
import { asked, gate, places, watched, type Watched } from '../spec/tr-02-stores.ts';

const LAYERS = 8;

const isUnprotected = (event: TraceEvent): boolean => event.type === 'dedupe' && event.step === 'unprotected';

describe.each(places())('races on %s', (_name, placeOf) => {
  it(
    'R-9.6 eight layers racing for 2,000 keys give 2,000 owners, and everyone the owner’s result',
    { timeout: 300_000 },
    async () => {
      const place = await placeOf();
      const ran: string[] = [];
      const layers: Watched[] = [];
      for (let n = 0; n < LAYERS; n++) {
        layers.push(
          watched(await place.open(), async (input) => {
            const { n: wanted } = input as { n: number };
            ran.push(`${wanted}`);
            await sleep(Math.random() * 5);
            return `${wanted} by ${n}`;
          }),
        );
      }
      const results: Array<readonly [number, Awaited<ReturnType<Watched['call']>>]> = [];
      // In waves, so that a busy machine answers in time.
      for (let from = 0; from < 2_000; from += 100) {
        const wave = layers
          .flatMap(({ call }) => Array.from({ length: 100 }, (_, n) => [call, from + n] as const))
          .toSorted(() => Math.random() - 0.5);
        results.push(
          ...(await Promise.all(
            wave.map(async ([call, n]) => [n, await call({ key: `k${n}`, params: { n } })] as const),
          )),
        );
      }
      expect(ran).toHaveLength(2_000);
      expect(new Set(ran).size).toBe(2_000);
      const answers = new Set(results.map(([n, { output, status }]) => `${n} ${status} ${String(output?.content)}`));
      expect(answers.size).toBe(2_000);
      expect(results.filter(([, { fromCache }]) => !fromCache)).toHaveLength(2_000);
    },
  );

  it('R-9.6 keys that are asked for, fail, are canceled and asked for again never run twice at once', async () => {
    const place = await placeOf();
    const running = new Map<number, Set<AbortSignal>>();
    const overlaps: number[] = [];
    const layers: Watched[] = [];
    for (let n = 0; n < 4; n++) {
      layers.push(
        watched(
          await place.open(),
          async (input, { signal }) => {
            const { n: key } = input as { n: number };
            const runs = running.get(key) ?? new Set();
            running.set(key, runs.add(signal));
            if (runs.size > 1) overlaps.push(key);
            // Told to stop, it counts no more: a record lives for 30 ms, which may pass before this function goes on.
            signal.addEventListener('abort', () => runs.delete(signal));
            try {
              await sleep(Math.random() * 10, undefined, { signal });
              if (Math.random() < 0.3) throw Object.assign(new Error('busy'), { status: 503 });
              return key;
            } finally {
              runs.delete(signal);
            }
          },
          { breaker: false, dedupe: { failedTtlMs: 5, doneTtlMs: 30 } },
          // However busy the machine: `bestEffort` runs unprotected where the store gives no answer in time.
          { storeTimeoutMs: 100_000 },
        ),
      );
    }
    const results = await Promise.all(
      Array.from({ length: 1_200 }, async (_, n) => {
        await sleep(Math.random() * 500);
        const abort = new AbortController();
        if (Math.random() < 0.2) setTimeout(() => abort.abort(), Math.random() * 10);
        return layers[n % layers.length]?.call({
          key: `k${n % 40}`,
          params: { n: n % 40 },
          mode: Math.random() < 0.3 ? 'bestEffort' : 'enforced',
          signal: abort.signal,
        });
      }),
    );
    // What the store did not answer for 100 s runs without it, and says so.
    const unprotected = layers.flatMap(({ events }) => events.filter(isUnprotected));
    expect(unprotected).toEqual([]);
    expect(overlaps).toEqual([]);
    for (const result of results) {
      expect(['success', 'retriable_error', 'error']).toContain(result?.status);
      expect(['busy', undefined]).toContain(
        result?.error === undefined || ['canceled', 'duplicate_in_flight'].includes(result.error.code)
          ? undefined
          : 'busy',
      );
    }
  });
});

describe('a memory store that is full', () => {
  it('R-10.2 of 25,001 records the first, which runs, is kept: no second run', async () => {
    const store = memoryStore();
    const running = gate();
    let runs = 0;
    const { call } = watched(store, (input) =>
      (input as { n: number }).n === 0 ? running.opened.then(() => ++runs) : 'quick',
    );
    const first = call({ key: 'first', params: { n: 0 } });
    for (let n = 1; n <= 25_001; n++) await call({ key: `k${n}`, params: { n } });
    expect((await call({ key: 'first', params: { n: 0 }, mode: 'bestEffort' })).error?.code).toBe(
      'duplicate_in_flight',
    );
    const waiting = call({ key: 'first', params: { n: 0 } });
    running.open();
    expect([(await first).fromCache, (await waiting).fromCache]).toEqual([false, true]);
    expect((await call({ key: 'k25001', params: { n: 25_001 } })).fromCache).toBe(true);
    expect(runs).toBe(1);
  });

  it('R-10.2 full of calls that run: enforced is refused, bestEffort runs unprotected, and the trace says that it is full', async () => {
    const store = memoryStore({ maxKeys: 2 });
    const layer = createSpillway({
      tools: [tool({ name: 't', execute: (input: unknown) => ((input as { n: number }).n < 2 ? NEVER : 'ran') })],
      store,
    });
    const told: string[] = [];
    layer.trace$.subscribe((event) => {
      if (event.type === 'store_changed') told.push(event.state);
      if (event.type === 'dedupe') told.push(event.step);
    });
    const running = [0, 1].map((n) => layer.call(asked({ key: `k${n}`, params: { n } })).subscribe());
    expect(await layer.execute(asked({ key: 'k2', params: { n: 2 } }))).toMatchObject({
      status: 'retriable_error',
      attempts: 0,
      error: { code: 'store_unavailable', message: expect.stringContaining('store full') as string },
    });
    expect(await layer.execute(asked({ key: 'k2', params: { n: 2 }, mode: 'bestEffort' }))).toMatchObject({
      status: 'success',
      output: { content: 'ran' },
    });
    for (const one of running) one.unsubscribe();
    expect(await layer.execute(asked({ key: 'k2', params: { n: 2 } }))).toMatchObject({
      status: 'success',
      fromCache: false,
    });
    expect(told).toEqual([
      'claimed',
      'claimed',
      'full',
      'unprotected',
      'recorded',
      'recorded',
      'claimed',
      'back',
      'recorded',
    ]);
    await layer.close();
  });

  it('R-9.4 a thousand that wait for one that is given back are served without looking a million times', async () => {
    const store = memoryStore();
    let looks = 0;
    const counted = {
      ...store,
      get: (key: string) => {
        looks++;
        return store.get(key);
      },
      setIfNotExists: (...args: Parameters<typeof store.setIfNotExists>) => {
        looks++;
        return store.setIfNotExists(...args);
      },
    };
    let allowed: (() => void) | undefined;
    const { call, layer } = watched(
      counted,
      () => 'ran',
      {},
      {
        hooks: {
          beforeToolCall: ({ attempt }) =>
            attempt === 1 && allowed === undefined
              ? new Promise((resolve) => {
                  allowed = () => resolve({ block: 'no' });
                })
              : undefined,
        },
      },
    );
    const all = Array.from({ length: 1_000 }, () => call());
    await expect.poll(() => allowed).toBeDefined();
    looks = 0;
    allowed?.();
    const results = await Promise.all(all);
    expect(results.filter(({ status }) => status === 'success')).toHaveLength(999);
    expect(looks).toBeLessThan(20_000);
    await layer.close();
  });
});
