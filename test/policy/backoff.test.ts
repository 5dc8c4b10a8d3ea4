import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { RetryPolicy } from '../../src/contract/policy.ts';
import { backoffDelayMs, retryPolicy } from '../../src/policy/retry/backoff.ts';
import { RETRY_PROFILES } from '../../src/policy/profile.ts';
import { seededRandom } from '../../src/policy/random.ts';

const random = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });
const durationMs = fc.integer({ min: 0, max: 1e11 }).map((hundredths) => hundredths / 100);
const policies = (strategy: RetryPolicy['strategy']) =>
  fc
    .record({
      initialDelayMs: durationMs,
      maxDelayMs: durationMs,
      multiplier: fc.double({ min: 1, max: 1000, noNaN: true }),
      jitterPercent: fc.double({ min: 0, max: 100, noNaN: true }),
    })
    .map((part) => retryPolicy({ strategy, ...part }));
const retries = fc.nat({ max: 5_000 });
/** Room for the last bit of a product. */
const within = (value: number, low: number, high: number): boolean =>
  value >= low * (1 - 1e-12) && value <= high * (1 + 1e-12);

describe('R-2.1 the interval of each strategy', () => {
  it('R-2.1 exponential: the capped power, and jitterPercent to either side', () => {
    fc.assert(
      fc.property(policies('exponential'), retries, random, (policy, retry, draw) => {
        let base = policy.initialDelayMs;
        for (let i = 0; i < retry && base > 0 && base < policy.maxDelayMs && policy.multiplier > 1; i++)
          base *= policy.multiplier;
        base = Math.min(base, policy.maxDelayMs);
        const spread = policy.jitterPercent / 100;
        const delayMs = backoffDelayMs(policy, retry, undefined, () => draw);
        // Repeated multiplication and a power differ in their last digits.
        expect(within(delayMs, base * (1 - spread) * (1 - 1e-6) - 1e-9, base * (1 + spread) * (1 + 1e-6) + 1e-9)).toBe(
          true,
        );
        if (policy.jitterPercent > 0) expect(delayMs).toBeCloseTo(base * (1 + spread * (2 * draw - 1)), -3);
      }),
    );
  });

  it('R-2.1 constant: always the same, but for jitter', () => {
    fc.assert(
      fc.property(policies('constant'), retries, random, (policy, retry, draw) => {
        const base = Math.min(policy.initialDelayMs, policy.maxDelayMs);
        expect(
          within(
            backoffDelayMs(policy, retry, undefined, () => draw),
            base * (1 - policy.jitterPercent / 100),
            base * (1 + policy.jitterPercent / 100),
          ),
        ).toBe(true);
      }),
    );
  });

  it('R-2.1 full jitter: anything from nothing to the capped power', () => {
    const policy = RETRY_PROFILES.resilient;
    for (const [retry, top] of [
      [0, 200],
      [1, 400],
      [2, 800],
      [3, 1_600],
      [4, 3_200],
      [5, 4_000],
      [50, 4_000],
      [2_000, 4_000],
    ] as const) {
      expect(backoffDelayMs(policy, retry, undefined, () => 0)).toBe(0);
      expect(backoffDelayMs(policy, retry, undefined, () => 0.25)).toBe(top / 4);
      expect(backoffDelayMs(policy, retry, undefined, () => 1 - 2 ** -53)).toBeLessThanOrEqual(top);
    }
  });

  it('R-2.1 decorrelated: from the initial delay to three times the one before, capped, without more jitter', () => {
    fc.assert(
      fc.property(policies('decorrelated'), durationMs, random, (policy, previousMs, draw) => {
        const topMs = Math.min(policy.maxDelayMs, 3 * previousMs);
        const delayMs = backoffDelayMs(policy, 3, previousMs, () => draw);
        expect(within(delayMs, Math.min(policy.initialDelayMs, topMs), Math.max(topMs, 0))).toBe(true);
      }),
    );
    const policy = retryPolicy({ strategy: 'decorrelated', initialDelayMs: 100, maxDelayMs: 1_000, jitterPercent: 50 });
    expect(backoffDelayMs(policy, 0, undefined, () => 0.5)).toBe(200);
    expect(backoffDelayMs(policy, 1, 200, () => 0.5)).toBe(350);
    expect(backoffDelayMs(policy, 2, 1_000, () => 0.5)).toBe(550);
    expect(backoffDelayMs(policy, 2, 1_000, () => 0)).toBe(100);
  });

  it('R-2.1 delays are never rounded, and exactly delay x (1 + j x (2 x random - 1))', () => {
    expect(backoffDelayMs(RETRY_PROFILES.interactive, 0, undefined, () => 0.123_456)).toBe(
      100 * (1 + 0.1 * (2 * 0.123_456 - 1)),
    );
  });

  it('R-2.1 whatever the policy, a delay is a number, finite and not negative', () => {
    const any = fc
      .constantFrom('exponential', 'full_jitter', 'decorrelated', 'constant')
      .chain((strategy) => policies(strategy));
    fc.assert(
      fc.property(
        any,
        retries,
        fc.option(durationMs, { nil: undefined }),
        random,
        (policy, retry, previousMs, draw) => {
          const delayMs = backoffDelayMs(policy, retry, previousMs, () => draw);
          expect(Number.isFinite(delayMs) && delayMs >= 0).toBe(true);
        },
      ),
    );
  });
});

describe('R-2.2 jitter', () => {
  it('R-2.2 SI-T 2.2 ten delays of 100 ms lie in [90, 110], at least eight of them distinct', () => {
    const draw = seededRandom(1);
    const delays = Array.from({ length: 10 }, () => backoffDelayMs(RETRY_PROFILES.interactive, 0, undefined, draw));
    expect(delays.every((delayMs) => delayMs >= 90 && delayMs <= 110)).toBe(true);
    expect(new Set(delays).size).toBeGreaterThanOrEqual(8);
  });

  it.each(['exponential', 'full_jitter', 'decorrelated', 'constant'] as const)(
    'R-2.2 at the cap delays still differ: %s',
    (strategy) => {
      const policy = retryPolicy({ strategy, initialDelayMs: 100, maxDelayMs: 800, jitterPercent: 10 });
      const draw = seededRandom(2);
      let previousMs: number | undefined;
      const delays = Array.from(
        { length: 1_000 },
        (_, retry) => (previousMs = backoffDelayMs(policy, 20 + retry, previousMs, draw)),
      );
      expect(new Set(delays).size).toBeGreaterThan(900);
    },
  );

  it('R-2.2 the same seed gives the same delays', () => {
    const delays = (seed: number): number[] => {
      const draw = seededRandom(seed);
      return Array.from({ length: 5 }, (_, retry) =>
        backoffDelayMs(RETRY_PROFILES.interactive, retry, undefined, draw),
      );
    };
    expect(delays(5)).toStrictEqual(delays(5));
    expect(delays(5)).not.toStrictEqual(delays(6));
  });
});

describe('R-2.1 profiles', () => {
  it('R-2.1 interactive and resilient, as the seeds say', () => {
    expect(retryPolicy()).toStrictEqual({
      strategy: 'exponential',
      initialDelayMs: 100,
      maxDelayMs: 800,
      multiplier: 2,
      jitterPercent: 10,
      maxAttempts: 5,
      maxTotalTimeMs: 2_000,
    });
    expect(RETRY_PROFILES.resilient).toMatchObject({
      strategy: 'full_jitter',
      initialDelayMs: 200,
      maxDelayMs: 4_000,
      multiplier: 2,
      maxAttempts: 4,
      maxTotalTimeMs: 30_000,
    });
    expect(retryPolicy({ maxAttempts: 2 }, RETRY_PROFILES.resilient)).toStrictEqual({
      ...RETRY_PROFILES.resilient,
      maxAttempts: 2,
    });
  });
});
