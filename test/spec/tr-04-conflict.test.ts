import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { gate, places, watched } from './tr-02-stores.ts';

describe.each(places())('TR-4 on %s', (_name, placeOf) => {
  it('TR-4 the same key with other params is a conflict with an alarm, and never the other’s result', async () => {
    const place = await placeOf();
    let runs = 0;
    const { call, events } = watched(await place.open(), () => ++runs);
    expect((await call({ params: { to: 'NRT' } })).output?.content).toBe(1);
    for (const mode of ['enforced', 'bestEffort'] as const) {
      const other = await call({ mode, params: { to: 'HND' } });
      expect(other).toMatchObject({
        status: 'error',
        fromCache: false,
        attempts: 0,
        error: { code: 'conflict', terminal: true },
      });
      expect(other.output).toBeUndefined();
      expect(JSON.stringify(other)).not.toContain('HND');
    }
    expect(events.filter((event) => event.type === 'dedupe' && event.step === 'conflict')).toHaveLength(2);
    // It harms nobody: the first one's result stands.
    expect(await call({ params: { to: 'NRT' } })).toMatchObject({ fromCache: true, output: { content: 1 } });
    expect(runs).toBe(1);
  });

  it('TR-4 while the first runs, other params are a conflict as well, not a wait and not a 409', async () => {
    const place = await placeOf();
    const running = gate();
    let runs = 0;
    const execute = async (): Promise<number> => {
      const run = ++runs;
      await running.opened;
      return run;
    };
    const [here, there] = [watched(await place.open(), execute), watched(await place.open(), execute)];
    const first = here.call({ params: { n: 1 } });
    await expect.poll(() => runs).toBe(1);
    for (const mode of ['enforced', 'bestEffort'] as const)
      expect((await there.call({ mode, params: { n: 2 } })).error?.code).toBe('conflict');
    running.open();
    expect((await first).output?.content).toBe(1);
    expect(runs).toBe(1);
  });

  it('TR-4 after a failure and after a cancel the key still stands for the first params', async () => {
    const place = await placeOf();
    const { call } = watched(await place.open(), (input) => {
      if ((input as { n: number }).n === 1) throw Object.assign(new Error('no'), { status: 503 });
      return 'other';
    });
    expect((await call({ params: { n: 1 } })).status).toBe('retriable_error');
    for (const mode of ['enforced', 'bestEffort'] as const)
      expect((await call({ mode, params: { n: 2 } })).error?.code).toBe('conflict');
  });

  it('TR-4 the order of fields, -0, and volatile fields make no other params; case, type and white space do', async () => {
    const place = await placeOf();
    let runs = 0;
    const { call } = watched(await place.open(), () => ++runs, { dedupe: { volatile: ['asked'] } });
    const same = [
      { a: 1, A: 2, z: 0 },
      { A: 2, z: -0, a: 1 },
      { z: 0, a: 1, A: 2, clientTs: 5 },
      { a: 1, A: 2, z: 0, retryCount: 3, traceparent: 'x', asked: 'now' },
      { a: 1.0, A: 2, z: 0, gone: undefined },
    ];
    for (const params of same)
      expect(await call({ params })).toMatchObject({ status: 'success', output: { content: 1 } });
    for (const params of [
      { a: 1, A: 2, z: '0' },
      { a: 2, A: 1, z: 0 },
      { a: 1, A: 2 },
      { a: 1, A: 2, z: null },
      { a: 1, A: 2, z: 0, x: { clientTs: 1 } },
    ]) {
      expect((await call({ params })).error?.code).toBe('conflict');
    }
    expect(runs).toBe(1);
  });

  it('TR-4 computed keys: other params are another key, and both run', async () => {
    const place = await placeOf();
    let runs = 0;
    const { call } = watched(await place.open(), () => ++runs);
    expect(
      [
        await call({ key: '', params: { n: 1 } }),
        await call({ key: '', params: { n: 2 } }),
        await call({ key: '', params: { n: 1 } }),
      ].map(({ output }) => output?.content),
    ).toEqual([1, 2, 1]);
  });

  it('TR-4 R-9.3 no value crosses tenants, sessions, tools or namespaces; a computed key not actors either', async () => {
    const place = await placeOf();
    let runs = 0;
    const { call } = watched(await place.open(), () => ++runs);
    const contents: unknown[] = [];
    for (const other of [
      {},
      { tenant: 'a' },
      { tenant: 'b' },
      { session: 'x' },
      { tenant: 'x', session: 's' },
      { namespace: 'm' },
      { key: '' },
      { key: '', actor: 'bob' },
      { key: '', tenant: 'a' },
    ])
      contents.push((await call(other)).output?.content);
    expect(contents).toEqual(contents.map((_, n) => n + 1));
  });
});

describe('TR-4 properties', () => {
  it('TR-4 R-9.5 whatever two params are: equal ones replay, different ones conflict', async () => {
    const seed = Number(process.env['SEED'] ?? Date.now() % 1e9);
    const { memoryStore } = await import('spillway/stores/memory');
    // What no key can be made of is refused, and tested elsewhere.
    const fits = (value: unknown): boolean =>
      typeof value === 'number'
        ? !Number.isInteger(value) || Number.isSafeInteger(value)
        : typeof value !== 'object' || value === null || Object.values(value).every(fits);
    const clean = fc
      .jsonValue({ maxDepth: 4 })
      .filter((value) => !JSON.stringify(value).includes('\\ud') && fits(value));
    await fc.assert(
      fc.asyncProperty(clean, clean, async (one, other) => {
        const { call } = watched(memoryStore({ sweepMs: Infinity }), () => 'ran');
        const equal = JSON.stringify(sorted(one)) === JSON.stringify(sorted(other));
        expect((await call({ params: { value: one } })).fromCache).toBe(false);
        const second = await call({ params: { value: other } });
        expect(equal ? second.fromCache : second.error?.code).toBe(equal ? true : 'conflict');
      }),
      { seed, numRuns: 500 },
    );
  });
});

/** Fields in one order, -0 as 0: what JSON means. */
const sorted = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== 'object' || value === null) return value;
  return {
    fields: Object.entries(value)
      .toSorted(([a], [b]) => (a < b ? -1 : 1))
      .map(([name, inner]) => [`field ${name}`, sorted(inner)]),
  };
};
