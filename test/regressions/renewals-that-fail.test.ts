// Was: renewals that a lost store refused were taken for a loss to another call, and the tool was aborted. Now:
// bestEffort goes on and says so, enforced stops and is uncertain.
import { firstValueFrom, map } from 'rxjs';
import { expect, it } from 'vitest';
import { memoryStore } from 'spillway/stores/memory';
import { virtualRuntime } from 'spillway/testing';
import { withTurns } from '../operators/with-turns.ts';
import { watched } from '../spec/tr-02-stores.ts';

it.each([
  ['rejects', () => Promise.reject(new Error('connect ECONNREFUSED'))],
  [
    'throws',
    (): never => {
      throw new Error('connect ECONNREFUSED');
    },
  ],
  ['hangs', () => new Promise<never>(() => undefined)],
])(
  'R-10.3 a store that %s while a call runs: bestEffort goes on and says so, enforced stops and is uncertain',
  async (_how, renew) => {
    for (const mode of ['bestEffort', 'enforced'] as const) {
      const runtime = virtualRuntime();
      const memory = memoryStore({ runtime, sweepMs: Infinity });
      let aborts = 0;
      const { call, steps, events } = watched(
        { ...memory, renew, compareAndSet: renew },
        (_input, { signal }) => {
          signal.addEventListener('abort', () => aborts++);
          return new Promise((resolve) => {
            runtime.after(20_000).subscribe(() => resolve('ok'));
          });
        },
        { dedupe: { leaseMs: 900 } },
        { runtime, storeTimeoutMs: 200 },
      );
      const result = call({ mode });
      await runtime.advance(30_000);
      if (mode === 'bestEffort')
        expect(await result).toMatchObject({ status: 'success', output: { content: 'ok' }, durationMs: 20_000 });
      else
        expect(await result).toMatchObject({
          status: 'retriable_error',
          attempts: 1,
          error: { code: 'store_unavailable', uncertain: true },
        });
      expect([steps(), aborts]).toEqual(
        mode === 'bestEffort' ? [['claimed', 'lease_lost', 'unprotected'], 0] : [['claimed', 'lease_lost'], 1],
      );
      expect(events.filter((event) => event.type === 'store_changed').map(({ state }) => state)).toEqual(['lost']);
    }
  },
);

it.each(['bestEffort', 'enforced'] as const)(
  'R-10.3 a store that hangs for longer than a lease, and may for longer still: %s is told that it did',
  async (mode) => {
    // There a deadline makes way for answers of its instant, and a lease's end does not.
    const runtime = withTurns(virtualRuntime());
    const memory = memoryStore({ runtime, sweepMs: Infinity });
    let isHung = false;
    const { call, events, steps } = watched(
      { ...memory, renew: (...args) => (isHung ? new Promise<never>(() => undefined) : memory.renew(...args)) },
      () => {
        isHung = true;
        return firstValueFrom(runtime.after(1_000).pipe(map(() => 'ok')));
      },
      { dedupe: { leaseMs: 400 } },
      { runtime },
    );
    const result = call({ mode });
    await runtime.advance(10_000);
    const { status } = await result;
    expect(status).toBe(mode === 'bestEffort' ? 'success' : 'retriable_error');
    expect(steps().slice(0, 2)).toEqual(['claimed', 'lease_lost']);
    expect(events.find((event) => event.type === 'dedupe' && event.step === 'lease_lost')).toMatchObject({
      message: 'the store did not answer',
    });
    expect(events.find((event) => event.type === 'store_changed')).toMatchObject({ state: 'lost' });
  },
);

it('R-9.6 renewals that fail once or twice in a lease cost nothing', async () => {
  const runtime = virtualRuntime();
  const memory = memoryStore({ runtime, sweepMs: Infinity });
  let beats = 0;
  const flaky = {
    ...memory,
    renew: (...args: Parameters<typeof memory.renew>) =>
      ++beats % 3 === 0 ? memory.renew(...args) : Promise.reject(new Error('ECONNRESET')),
  };
  const { call, steps } = watched(
    flaky,
    () =>
      new Promise((resolve) => {
        runtime.after(20_000).subscribe(() => resolve('ok'));
      }),
    { dedupe: { leaseMs: 900 } },
    { runtime },
  );
  const result = call();
  await runtime.advance(30_000);
  expect(await result).toMatchObject({ status: 'success', fromCache: false });
  expect(steps()).toEqual(['claimed', 'recorded']);
});
