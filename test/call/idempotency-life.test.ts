import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { liveRuntime, type Runtime, type ToolPolicy } from 'spillway';
import { gate, places, records, watched } from '../spec/tr-02-stores.ts';

/** Of one that lives by being renewed. */
const RENEWED_MS = 1_500;
const renewed: ToolPolicy = { dedupe: { leaseMs: RENEWED_MS } };

describe.each(places())('records on %s', (_name, placeOf) => {
  it('R-9.4 overlapping calls run once; duplicates that are refused, canceled or in conflict free nothing', async () => {
    const place = await placeOf();
    const running = gate();
    let runs = 0;
    const execute = async (): Promise<string> => {
      runs++;
      await running.opened;
      return 'once';
    };
    const [here, there] = [
      watched(await place.open(), execute, renewed),
      watched(await place.open(), execute, renewed),
    ];
    const first = here.call({ params: { n: 1 } });
    await expect.poll(() => runs).toBe(1);
    for (const { call, layer } of [here, there]) {
      expect((await call({ mode: 'bestEffort', params: { n: 1 } })).error?.code).toBe('duplicate_in_flight');
      expect((await call({ params: { n: 2 } })).error?.code).toBe('conflict');
      const abort = new AbortController();
      const leaving = call({ params: { n: 1 }, signal: abort.signal });
      await sleep(20);
      abort.abort();
      expect((await leaving).error).toMatchObject({ code: 'canceled' });
      // What runs is left alone by a person's broom, too.
      expect(await layer.flush({ all: true })).toBe(0);
    }
    await sleep(RENEWED_MS + 50);
    const last = there.call({ params: { n: 1 } });
    await sleep(50);
    running.open();
    expect([(await first).fromCache, (await last).fromCache]).toEqual([false, true]);
    expect(await here.call({ params: { n: 1 } })).toMatchObject({ fromCache: true, output: { content: 'once' } });
    expect(runs).toBe(1);
  });

  it('R-10.2 after its time to live three that come at once run once', async () => {
    const place = await placeOf();
    let runs = 0;
    const execute = async (): Promise<number> => {
      await sleep(20);
      return ++runs;
    };
    const brief: ToolPolicy = { dedupe: { doneTtlMs: 1_500 } };
    const layers = [watched(await place.open(), execute, brief), watched(await place.open(), execute, brief)];
    await layers[0]?.call();
    await sleep(1_550);
    const results = await Promise.all([0, 1, 0].map(async (n) => layers[n]?.call()));
    expect(results.map((result) => result?.output?.content)).toEqual([2, 2, 2]);
    expect(runs).toBe(2);
  });

  it('R-10.2 a client whose clocks are ten minutes ahead, or behind, steals nothing', async () => {
    const place = await placeOf();
    const running = gate();
    let runs = 0;
    const execute = async (): Promise<string> => {
      runs++;
      await running.opened;
      return 'once';
    };
    const first = watched(await place.open(), execute, renewed).call();
    await expect.poll(() => runs).toBe(1);
    const others = [];
    for (const aheadMs of [600_000, -600_000]) {
      const runtime: Runtime = {
        ...liveRuntime,
        now: () => liveRuntime.now() + aheadMs,
        wallNow: () => liveRuntime.wallNow() + aheadMs,
      };
      const other = watched(await place.open(), execute, {}, { runtime });
      expect((await other.call({ mode: 'bestEffort' })).error?.code).toBe('duplicate_in_flight');
      others.push(other.call());
    }
    await sleep(RENEWED_MS + 50);
    running.open();
    for (const result of await Promise.all([first, ...others])) expect(result.output?.content).toBe('once');
    expect(runs).toBe(1);
  });

  it('R-10.1 fences of a key only grow: over results, failures, clearing, forgetting and take-overs', async () => {
    const place = await placeOf();
    const fences: number[] = [];
    let fails = false;
    const { call, layer } = watched(
      await place.open(),
      (_input, { fence = 0 }) => {
        fences.push(fence);
        if (fails) throw Object.assign(new Error('no'), { status: 503 });
        return fence;
      },
      { breaker: false },
    );
    for (let round = 0; round < 6; round++) {
      fails = round % 2 === 1;
      await call({ mode: 'bestEffort' });
      if (!fails) await layer.flush({ all: true });
    }
    expect(fences).toHaveLength(6);
    expect(fences.toSorted((a, b) => a - b)).toEqual(fences);
    expect(new Set(fences).size).toBe(6);
  });

  it('R-9.4 what never ran leaves no record: a breaker that is open, a hook that says no', async () => {
    const place = await placeOf();
    const store = await place.open();
    let runs = 0;
    let allowed = false;
    const { call, layer, steps } = watched(
      store,
      () => ++runs,
      {},
      { hooks: { beforeToolCall: () => (allowed ? undefined : { block: 'not yet' }) } },
    );
    expect((await call()).error?.code).toBe('blocked');
    layer.breakers.get('t').forceOpen();
    allowed = true;
    expect((await call()).status).toBe('circuit_open');
    await expect.poll(() => records(store)).toEqual([]);
    layer.breakers.get('t').reset();
    expect(await call()).toMatchObject({ fromCache: false, output: { content: 1 } });
    expect(steps()).toEqual(['claimed', 'released', 'claimed', 'released', 'claimed', 'recorded']);
  });

  it('R-9.4 a canceled call is refused, uncertain, to everyone until it is cleared', async () => {
    const place = await placeOf();
    let runs = 0;
    const execute = (): unknown => (++runs === 1 ? new Promise(() => undefined) : runs);
    const [here, there] = [watched(await place.open(), execute), watched(await place.open(), execute)];
    const abort = new AbortController();
    const first = here.call({ signal: abort.signal });
    await expect.poll(() => runs).toBe(1);
    abort.abort();
    expect(await first).toMatchObject({ error: { code: 'canceled', uncertain: true } });
    await sleep(50);
    for (const { call } of [here, there])
      for (const mode of ['enforced', 'bestEffort'] as const)
        expect(await call({ mode })).toMatchObject({
          attempts: 0,
          error: { code: 'canceled', terminal: true, uncertain: true },
        });
    expect(await there.layer.flush({ session: 's' })).toBe(1);
    expect(await there.call()).toMatchObject({ fromCache: false, output: { content: 2 } });
  });
});
