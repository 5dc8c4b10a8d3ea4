import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { RetryBudgetOptions } from '../../src/contract/policy.ts';
import { createRetryBudget } from '../../src/policy/retry/budget.ts';

/** The formula as it is written: every event kept, every window counted anew. */
class Naive {
  readonly #calls: number[] = [];
  readonly #retries: number[] = [];
  readonly #options: Required<RetryBudgetOptions>;

  constructor(options: Required<RetryBudgetOptions>) {
    this.#options = options;
  }
  call(now: number): void {
    this.#calls.push(now);
  }
  retry(now: number): void {
    this.#retries.push(now);
  }
  allowed(now: number): number {
    const { ratio, minPerSecond, windowMs } = this.#options;
    return ratio * this.#in(this.#calls, now) + (minPerSecond * windowMs) / 1000;
  }
  made(now: number): number {
    return this.#in(this.#retries, now);
  }
  #in(events: readonly number[], now: number): number {
    return events.filter((at) => at > now - this.#options.windowMs && at <= now).length;
  }
}

const options = fc.record({
  ratio: fc.constantFrom(0, 0.1, 0.2, 0.29, 0.5, 1, 3),
  minPerSecond: fc.constantFrom(0, 0.5, 1, 10, 100),
  windowMs: fc.constantFrom(1, 7, 1_000, 10_000, 60_000),
});
const steps = (
  passMs: fc.Arbitrary<number>,
): fc.Arbitrary<ReadonlyArray<readonly [number, 'call' | 'retry', number]>> =>
  fc.array(fc.tuple(passMs, fc.constantFrom('call' as const, 'retry' as const), fc.integer({ min: 1, max: 40 })), {
    maxLength: 60,
    size: 'max',
  });

/** Often about a window long, give or take a fraction of a millisecond. */
const fractions = fc
  .tuple(fc.constantFrom(0, 1, 6, 500, 999, 5_000, 9_999, 10_000, 59_999), fc.double({ min: 0, max: 2, noNaN: true }))
  .map(([ms, fraction]) => ms + fraction);

describe('R-2.6 the retry budget', () => {
  it('R-2.6 with whole milliseconds it is the formula, exactly', () => {
    const small = options.filter(({ windowMs }) => windowMs <= 10_000);
    fc.assert(
      fc.property(small, steps(fc.nat({ max: 6_000 })), (given, script) => {
        const [budget, naive] = [createRetryBudget(given), new Naive(given)];
        let now = 1_234;
        for (const [passMs, what, times] of script) {
          now += passMs;
          for (let i = 0; i < times; i++) {
            if (what === 'call') {
              budget.recordCall(now);
              naive.call(now);
              continue;
            }
            const available = budget.available(now);
            expect(available).toBe(naive.made(now) + 1 <= naive.allowed(now) + 1e-9);
            if (!available) break;
            budget.recordRetry(now);
            naive.retry(now);
          }
        }
      }),
    );
  });

  it('RET-4 at any instant, to any fraction, retries in the window are at most the formula', () => {
    fc.assert(
      fc.property(options, steps(fractions), (given, script) => {
        const [budget, naive] = [createRetryBudget(given), new Naive(given)];
        let now = 1_234.5;
        for (const [passMs, what, times] of script) {
          now += passMs;
          for (let i = 0; i < times; i++) {
            if (what === 'call') {
              budget.recordCall(now);
              naive.call(now);
            } else if (budget.available(now)) {
              budget.recordRetry(now);
              naive.retry(now);
              expect(naive.made(now)).toBeLessThanOrEqual(naive.allowed(now) + 1e-9);
            }
          }
        }
      }),
      { numRuns: 2_000 },
    );
  });

  it('R-2.6 a fresh layer has a hundred, and a hundred more a window later', () => {
    const budget = createRetryBudget();
    const spend = (now: number): number => {
      let spent = 0;
      for (; budget.available(now); spent++) budget.recordRetry(now);
      return spent;
    };
    expect(spend(0)).toBe(100);
    expect(spend(9_999)).toBe(0);
    expect(spend(10_000)).toBe(100);
    for (let i = 0; i < 1_000; i++) budget.recordCall(15_000);
    expect(spend(15_000)).toBe(200);
  });

  it('R-2.6 asking costs nothing', () => {
    const budget = createRetryBudget({ ratio: 0, minPerSecond: 1, windowMs: 1_000 });
    for (let i = 0; i < 10; i++) expect(budget.available(0)).toBe(true);
    budget.recordRetry(0);
    expect(budget.available(0)).toBe(false);
  });

  it('R-2.6 a million calls do not slow it down', () => {
    const budget = createRetryBudget();
    for (let i = 0; i < 1_000_000; i++) {
      budget.recordCall(i / 10);
      if (budget.available(i / 10) && i % 5 === 0) budget.recordRetry(i / 10);
    }
    expect(typeof budget.available(100_000)).toBe('boolean');
  });

  it.each([
    ['ratio', -1],
    ['ratio', Number.NaN],
    ['minPerSecond', -1],
    ['minPerSecond', Infinity],
    ['windowMs', 0],
    ['windowMs', Number.NaN],
    ['perSecond', 1],
  ])('R-2.9 %s: %s is refused', (option, value) => {
    expect(() => createRetryBudget({ [option]: value })).toThrow(RangeError);
    expect(() => createRetryBudget({ [option]: value })).toThrow(option);
  });
});
