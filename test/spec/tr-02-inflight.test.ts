import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { memoryStore } from 'spillway/stores/memory';
import { virtualRuntime } from 'spillway/testing';
import { gate, places, watched } from './tr-02-stores.ts';

it('TR-2 the first call takes 5 s: the second waits for it, at once and no longer', async () => {
  const runtime = virtualRuntime();
  let runs = 0;
  const slow = (): Promise<number> =>
    new Promise((resolve) => {
      runtime.after(5_000).subscribe(() => resolve(++runs));
    });
  const { call, steps, events } = watched(memoryStore({ runtime }), slow, {}, { runtime });
  const first = call();
  await runtime.advance(1_000);
  const second = call();
  await runtime.advance(3_999);
  expect(events.filter(({ type }) => type === 'settled')).toEqual([]);
  await runtime.advance(1);
  expect(await first).toMatchObject({
    status: 'success',
    fromCache: false,
    attempts: 1,
    durationMs: 5_000,
    output: { content: 1 },
  });
  expect(await second).toMatchObject({
    status: 'success',
    fromCache: true,
    attempts: 0,
    durationMs: 4_000,
    output: { content: 1 },
    cache: { matchedOn: 'inflight', ageMs: 0 },
  });
  expect(steps().toSorted()).toEqual(['claimed', 'recorded', 'replayed', 'waiting']);
  expect(runs).toBe(1);
});

describe.each(places())('TR-2 on %s', (_name, placeOf) => {
  it('TR-2 a duplicate before the first completes waits, in the same process and in another, and the tool runs once', async () => {
    const place = await placeOf();
    const running = gate();
    let runs = 0;
    const execute = async (): Promise<string> => {
      runs++;
      await running.opened;
      return 'once';
    };
    const [here, there] = [watched(await place.open(), execute), watched(await place.open(), execute)];
    const first = here.call();
    await expect.poll(() => runs).toBe(1);
    const others = [here.call(), there.call(), there.call()];
    await expect.poll(() => [...here.steps(), ...there.steps()].filter((step) => step === 'waiting').length).toBe(3);
    running.open();
    expect(await first).toMatchObject({
      status: 'success',
      fromCache: false,
      attempts: 1,
      output: { content: 'once' },
    });
    for (const result of await Promise.all(others)) {
      expect(result).toMatchObject({
        status: 'success',
        fromCache: true,
        attempts: 0,
        output: { content: 'once' },
        cache: { matchedOn: 'inflight' },
      });
    }
    expect(runs).toBe(1);
  });

  it('TR-2 a hundred duplicates of a call that fails all get its failure', async () => {
    const place = await placeOf();
    let runs = 0;
    const execute = async (): Promise<never> => {
      runs++;
      await sleep(50);
      throw Object.assign(new Error('no such airport'), { status: 404 });
    };
    const layers = [watched(await place.open(), execute), watched(await place.open(), execute)];
    const results = await Promise.all(Array.from({ length: 100 }, async (_, n) => layers[n % 2]?.call()));
    expect(runs).toBe(1);
    expect(
      new Set(results.map((result) => JSON.stringify([result?.status, result?.error?.code, result?.error?.message])))
        .size,
    ).toBe(1);
    expect(results.filter((result) => result?.fromCache === false)).toHaveLength(1);
  });

  it('TR-2 with dedupe disabled a duplicate does not wait: both run', async () => {
    const place = await placeOf();
    const running = gate();
    let runs = 0;
    const { call } = watched(await place.open(), async () => {
      const run = ++runs;
      if (run === 1) await running.opened;
      return run;
    });
    const first = call({ mode: 'disabled' });
    expect(await call({ mode: 'disabled' })).toMatchObject({ fromCache: false, output: { content: 2 } });
    running.open();
    expect(await first).toMatchObject({ fromCache: false, output: { content: 1 } });
  });

  it('TR-2 bestEffort fails at once while another runs, and touches nothing of it', async () => {
    const place = await placeOf();
    const running = gate();
    let runs = 0;
    const execute = async (): Promise<string> => {
      runs++;
      await running.opened;
      return 'once';
    };
    const [here, there] = [watched(await place.open(), execute), watched(await place.open(), execute)];
    const first = here.call({ mode: 'bestEffort' });
    await expect.poll(() => runs).toBe(1);
    for (const { call } of [here, there, here, there])
      expect(await call({ mode: 'bestEffort' })).toMatchObject({ attempts: 0, error: { code: 'duplicate_in_flight' } });
    const waiting = there.call();
    running.open();
    expect(await first).toMatchObject({ status: 'success', fromCache: false });
    expect(await waiting).toMatchObject({ status: 'success', fromCache: true, output: { content: 'once' } });
    expect(runs).toBe(1);
  });
});
