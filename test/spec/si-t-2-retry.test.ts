import { describe, expect, it } from 'vitest';
import { marbles } from '../marbles.ts';
import { transient } from '../support.ts';
import { World, answers, fails, noBackoff, typed } from '../call/kit.ts';

/** Between one start and the next. */
const gaps = (starts: readonly number[]): number[] => starts.slice(1).map((at, i) => at - (starts[i] ?? NaN));

describe('SI-T 2 retry policy', () => {
  it('SI-T 2.1 exponential backoff delays are correct, in 20 runs', () => {
    const totals: number[] = [];
    for (let seed = 1; seed <= 20; seed++) {
      marbles((m) => {
        const world = new World(m, seed);
        const tried = world.scripted('flight_search', [fails(0, transient)], { breaker: false });
        const result = world.call(world.layer([tried]), 'flight_search');
        expect(result.attempts).toBe(5);
        expect(tried.starts).toHaveLength(5);
        [100, 200, 400, 800].forEach((delayMs, i) => {
          const gap = gaps(tried.starts)[i] ?? NaN;
          expect(gap).toBeGreaterThanOrEqual(delayMs * 0.9);
          expect(gap).toBeLessThanOrEqual(delayMs * 1.1);
        });
        totals.push(result.durationMs);
      })();
    }
    totals.sort((a, b) => a - b);
    expect(totals[0]).toBeGreaterThanOrEqual(1_350);
    // The 95th percentile of 20 is the nineteenth.
    expect(totals[18]).toBeLessThanOrEqual(1_650);
  });

  it(
    'SI-T 2.2 jitter is applied correctly',
    marbles((m) => {
      const world = new World(m);
      const tried = world.scripted('flight_search', [fails(0, transient)], {
        breaker: false,
        retry: { strategy: 'constant', initialDelayMs: 100, maxAttempts: 11 },
      });
      world.call(world.layer([tried]), 'flight_search');
      const delays = gaps(tried.starts);
      expect(delays).toHaveLength(10);
      for (const delay of delays) {
        expect(delay).toBeGreaterThanOrEqual(90);
        expect(delay).toBeLessThanOrEqual(110);
      }
      expect(new Set(delays).size).toBeGreaterThanOrEqual(8);
      const mean = delays.reduce((sum, delay) => sum + delay, 0) / delays.length;
      expect(Math.abs(mean - 100)).toBeLessThanOrEqual(5);
    }),
  );

  it(
    'SI-T 2.3 max attempts are respected',
    marbles((m) => {
      const world = new World(m);
      const tried = world.scripted('flight_search', [fails(0, transient)], { breaker: false });
      const layer = world.layer([tried]);
      const trace = world.watch(layer.trace$).events;
      expect(world.call(layer, 'flight_search')).toMatchObject({
        status: 'retry_exhausted',
        attempts: 5,
        error: { code: 'transport_error', message: 'connection reset' },
      });
      expect(tried.starts).toHaveLength(5);
      expect(typed(trace, 'decision').at(-1)).toMatchObject({ code: 'attempts_exhausted' });
      expect(world.runtime.timers).toBe(0);
    }),
  );

  it(
    'SI-T 2.4 max total time is respected: attempts of 600 ms start at 0, 600, 1200, 1800, and there is no fifth',
    marbles((m) => {
      const world = new World(m);
      const tried = world.scripted('flight_search', [fails(600, transient)], {
        breaker: false,
        retry: { ...noBackoff, maxTotalTimeMs: 2_000 },
      });
      const layer = world.layer([tried]);
      const trace = world.watch(layer.trace$).events;
      expect(world.call(layer, 'flight_search')).toMatchObject({
        status: 'retry_exhausted',
        attempts: 4,
        durationMs: 2_400,
      });
      expect(tried.starts).toStrictEqual([0, 600, 1_200, 1_800]);
      expect(typed(trace, 'decision').at(-1)).toMatchObject({ code: 'time_exhausted' });
    }),
  );

  it(
    'SI-T 2.5 tool-specific overrides work',
    marbles((m) => {
      const world = new World(m);
      const tried = world.scripted('custom_api', [fails(0, transient)], {
        retry: { initialDelayMs: 50, maxDelayMs: 2_000, maxAttempts: 3, jitterPercent: 0 },
      });
      const usual = world.scripted('flight_search', [fails(0, transient), answers(0)], { retry: { jitterPercent: 0 } });
      const layer = world.layer([tried, usual]);
      expect(world.call(layer, 'custom_api')).toMatchObject({ attempts: 3, status: 'retry_exhausted' });
      expect(tried.starts).toStrictEqual([0, 50, 150]);
      world.call(layer, 'flight_search');
      expect(gaps(usual.starts)).toStrictEqual([100]);
    }),
  );
});
