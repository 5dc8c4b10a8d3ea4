import { describe, expect, it } from 'vitest';
import type { ToolPolicy, ToolResultEnvelope } from 'spillway';
import { marbles } from '../marbles.ts';
import { World, envelope, fails, typed } from '../call/kit.ts';

const down = Object.assign(new Error('unavailable'), { status: 503 });
const request = (maxAttempts: number, maxElapsedMs: number) =>
  envelope('t', { transport: { dedupeMode: 'disabled', retryBudget: { maxAttempts, maxElapsedMs } } });
const policy: ToolPolicy = { breaker: { failureThreshold: 100, failureRate: Infinity } };

describe('TR-7 the retry budget is spent', () => {
  it(
    'TR-7 repeated 503: retry_exhausted, attempts capped, and the breaker sees each failure',
    marbles((m) => {
      const world = new World(m);
      const tried = world.scripted('t', [fails(10, down)], policy);
      const layer = world.layer([tried], { profile: 'resilient' });
      const result = world.call(layer, request(4, 30_000));
      expect(result).toMatchObject({ status: 'retry_exhausted', attempts: 4, error: { retriable: true } });
      expect(result.retriedBy).toHaveLength(3);
      expect(tried.starts).toHaveLength(4);
      expect(layer.breakers.get('t').state).toMatchObject({ type: 'closed', consecutiveFailures: 4, failures: 4 });
      // Nothing hangs: no timer is left, and it took no longer than its waits.
      expect(world.runtime.timers).toBe(0);
      expect(result.durationMs).toBeLessThanOrEqual(40 + 200 + 400 + 800);
    }),
  );

  it(
    'TR-7 time is a budget as well: no attempt starts at or after it',
    marbles((m) => {
      const world = new World(m);
      const tried = world.scripted('t', [fails(600, down)], {
        ...policy,
        retry: { strategy: 'constant', initialDelayMs: 0, jitterPercent: 0 },
      });
      const result = world.call(world.layer([tried]), request(100, 2_000));
      expect(tried.starts).toEqual([0, 600, 1_200, 1_800]);
      expect(result).toMatchObject({ status: 'retry_exhausted', attempts: 4, durationMs: 2_400 });
    }),
  );

  it(
    'TR-7 one attempt only is no retry: a retriable error, not exhausted',
    marbles((m) => {
      const world = new World(m);
      expect(
        world.call(world.layer([world.scripted('t', [fails(0, down)], policy)]), request(1, 30_000)),
      ).toMatchObject({ status: 'retriable_error', attempts: 1 });
    }),
  );

  it(
    'TR-7 a layer’s shared budget ends it too, with a code of its own',
    marbles((m) => {
      const world = new World(m);
      const tried = world.scripted('t', [fails(0, down)], {
        ...policy,
        retry: { strategy: 'constant', initialDelayMs: 0, jitterPercent: 0 },
      });
      const layer = world.layer([tried], { retryBudget: { ratio: 0, minPerSecond: 0.3 } });
      const trace = world.watch(layer.trace$).events;
      const results: ToolResultEnvelope[] = [
        world.call(layer, request(100, 30_000)),
        world.call(layer, request(100, 30_000)),
      ];
      expect(results.map(({ status }) => status)).toEqual(['retry_exhausted', 'retriable_error']);
      expect(typed(trace, 'decision').at(-1)).toMatchObject({ code: 'budget_exhausted' });
      expect(tried.starts).toHaveLength(3 + 2);
    }),
  );
});
