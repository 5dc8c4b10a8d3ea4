import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import type { DedupeStore } from 'spillway';
import { virtualRuntime } from 'spillway/testing';
import { gate, places, watched, type Execute, type Watched } from '../spec/tr-02-stores.ts';

/** The lease of those who lose it. Those who must keep theirs have the default one, however busy the machine is. */
const LEASE_MS = 500;

/** A layer whose own time stands still while the store's goes on: a worker that was stopped, and does not know. */
const frozen = (store: DedupeStore, execute: Execute, leaseMs = LEASE_MS): Watched =>
  watched(store, execute, { dedupe: { leaseMs } }, { runtime: virtualRuntime() });

const lapsed = (): Promise<void> => sleep(LEASE_MS + 50);

describe.each(places())('leases on %s', (_name, placeOf) => {
  it('R-9.6 a late success of an owner that lost its lease changes nothing: everyone gets what the next one found', async () => {
    const place = await placeOf();
    const late = gate<string>();
    const slow = gate();
    const fences: number[] = [];
    const stuck = frozen(await place.open(), async (_input, { fence = 0 }) => {
      fences.push(fence);
      return late.opened;
    });
    const well = watched(await place.open(), async (_input, { fence = 0 }) => {
      fences.push(fence);
      await slow.opened;
      return 'second';
    });
    const first = stuck.call();
    await expect.poll(() => fences.length).toBe(1);
    await lapsed();
    const second = well.call();
    await expect.poll(() => fences.length).toBe(2);
    late.open('first');
    const third = well.call();
    await sleep(50);
    slow.open();
    const results = await Promise.all([first, second, third, well.call()]);
    expect(results.map(({ output }) => output?.content)).toEqual(['second', 'second', 'second', 'second']);
    expect(results.map(({ fromCache }) => fromCache)).toEqual([true, false, true, true]);
    expect(stuck.steps()).toEqual(['claimed', 'superseded', 'replayed']);
    expect(well.steps()).toContain('taken_over');
    expect(fences[1]).toBeGreaterThan(fences[0] ?? Infinity);
  });

  it('R-9.6 a late failure of an owner that lost its lease frees nothing', async () => {
    const place = await placeOf();
    const late = gate<never>();
    const slow = gate();
    let runs = 0;
    const stuck = frozen(await place.open(), () => {
      runs++;
      return late.opened;
    });
    const well = watched(await place.open(), async () => {
      runs++;
      await slow.opened;
      return 'second';
    });
    const first = stuck.call();
    await expect.poll(() => runs).toBe(1);
    await lapsed();
    const second = well.call();
    await expect.poll(() => runs).toBe(2);
    late.fail(Object.assign(new Error('late'), { status: 503 }));
    const third = well.call();
    const rejected = await well.call({ mode: 'bestEffort' });
    expect(rejected.error?.code).toBe('duplicate_in_flight');
    slow.open();
    const results = await Promise.all([first, second, third, well.call()]);
    expect(results.map(({ output }) => output?.content)).toEqual(['second', 'second', 'second', 'second']);
    expect(runs).toBe(2);
  });

  it('R-9.6 a late cancel of an owner that lost its lease cancels nothing', async () => {
    const place = await placeOf();
    let runs = 0;
    const stuck = frozen(await place.open(), () => {
      runs++;
      return new Promise(() => undefined);
    });
    const well = watched(await place.open(), () => {
      runs++;
      return 'second';
    });
    const abort = new AbortController();
    const first = stuck.call({ signal: abort.signal });
    await expect.poll(() => runs).toBe(1);
    await lapsed();
    expect((await well.call()).output?.content).toBe('second');
    abort.abort();
    expect(await first).toMatchObject({ error: { code: 'canceled', uncertain: true } });
    await sleep(50);
    expect(await well.call()).toMatchObject({ fromCache: true, output: { content: 'second' } });
    expect(runs).toBe(2);
  });

  it('R-10.1 a lease that passed unnoticed does no harm: its outcome counts as long as nobody took over', async () => {
    const place = await placeOf();
    const late = gate<string>();
    let runs = 0;
    const stuck = frozen(await place.open(), () => {
      runs++;
      return late.opened;
    });
    const first = stuck.call();
    await expect.poll(() => runs).toBe(1);
    await lapsed();
    late.open('late');
    expect(await first).toMatchObject({ status: 'success', fromCache: false, output: { content: 'late' } });
    expect(stuck.steps()).toEqual(['claimed', 'recorded']);
    const next = watched(await place.open(), () => ++runs);
    expect(await next.call()).toMatchObject({ fromCache: true, output: { content: 'late' } });
    expect(runs).toBe(1);
  });

  it('R-9.6 a worker that is gone blocks its key for its lease, neither less nor a day', async () => {
    const place = await placeOf();
    let runs = 0;
    // Long enough to be asked while it is valid.
    const dead = frozen(
      await place.open(),
      () => {
        runs++;
        return new Promise(() => undefined);
      },
      3_000,
    );
    void dead.call();
    await expect.poll(() => runs).toBe(1);
    const next = watched(await place.open(), () => ++runs);
    const busy = await next.call({ mode: 'bestEffort' });
    expect(busy.error?.code).toBe('duplicate_in_flight');
    const startedMs = performance.now();
    const results = await Promise.all([next.call(), next.call(), next.call()]);
    expect(performance.now() - startedMs).toBeLessThan(20_000);
    expect(results.map(({ output }) => output?.content)).toEqual([2, 2, 2]);
    expect(runs).toBe(2);
    expect(next.steps().filter((step) => step === 'taken_over')).toHaveLength(1);
  });

  it('R-9.6 a take-over on the word of an old read is refused, and the result that came meanwhile is replayed', async () => {
    const place = await placeOf();
    const late = gate<string>();
    let runs = 0;
    const stuck = frozen(await place.open(), () => {
      runs++;
      return late.opened;
    });
    const first = stuck.call();
    await expect.poll(() => runs).toBe(1);
    await lapsed();
    const store = await place.open();
    // Between what it read and what it does about it, the owner comes to its end.
    const slow: DedupeStore = {
      ...store,
      setIfNotExists: async (claim, over) => {
        if (over !== undefined) {
          late.open('in time');
          await first;
        }
        return store.setIfNotExists(claim, over);
      },
    };
    const next = watched(slow, () => ++runs);
    expect(await next.call()).toMatchObject({ fromCache: true, output: { content: 'in time' } });
    expect(next.steps()).toEqual(['replayed']);
    expect(runs).toBe(1);
  });

  it('R-2.5 a safety-critical tool is not run where another may have been: uncertain, and then it is cleared by hand', async () => {
    const place = await placeOf();
    let runs = 0;
    // Long enough to be asked while it is valid.
    const dead = frozen(
      await place.open(),
      () => {
        runs++;
        return new Promise(() => undefined);
      },
      3_000,
    );
    void dead.call();
    await expect.poll(() => runs).toBe(1);
    await lapsed();
    for (const enforcesKey of [false, true]) {
      const careful = watched(await place.open(), () => ++runs, {
        effects: 'mutating',
        safetyCritical: true,
        enforcesKey,
      });
      for (const mode of ['enforced', 'bestEffort'] as const)
        expect(await careful.call({ mode })).toMatchObject({ attempts: 0, error: { uncertain: true, terminal: true } });
    }
    expect(runs).toBe(1);
  });
});
