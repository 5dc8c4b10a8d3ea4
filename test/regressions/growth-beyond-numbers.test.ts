// Was: a delay or cooldown of zero that grew beyond the greatest number became NaN, since 0 * Infinity is NaN. Now:
// what is zero stays zero.
import { describe, expect, it } from 'vitest';
import { createBreaker } from '../../src/operators/breaker/breaker.ts';
import { backoffDelayMs, retryPolicy } from '../../src/policy/retry/backoff.ts';
import { fail, handClock } from '../support.ts';

describe('growth beyond all numbers', () => {
  it('R-2.1 a delay of zero stays zero after a thousand retries', () => {
    for (const strategy of ['exponential', 'full_jitter'] as const) {
      expect(
        backoffDelayMs(retryPolicy({ strategy, initialDelayMs: 0, maxAttempts: 5_000 }), 4_000, 0, () => 0.5),
      ).toBe(0);
    }
  });

  it('R-3.5 a cooldown of zero cannot become one without end', () => {
    const clock = handClock();
    const breaker = createBreaker({ failureThreshold: 1, cooldownMs: 0, cooldownMultiplier: 1_000 }, clock.runtime);
    for (let i = 0; i < 200; i++) fail(breaker);
    expect(breaker.state.type).toBe('half_open');
  });
});
