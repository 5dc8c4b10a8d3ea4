import { defer, throwError } from 'rxjs';
import { describe, expect, it } from 'vitest';
import type { RetryPolicy } from '../../src/contract/policy.ts';
import type { Runtime } from '../../src/contract/runtime.ts';
import { ToolExecutionError } from '../../src/contract/tool-error.ts';
import { retryBackoff } from '../../src/operators/retry-backoff.ts';
import { runtimeOn } from '../../src/testing/runtime-on.ts';
import { marbles } from '../marbles.ts';
import { counting, permanent, transient } from '../support.ts';

const threeMs: Partial<RetryPolicy> = { strategy: 'constant', initialDelayMs: 3, jitterPercent: 0, maxAttempts: 3 };
/** Waits for a minute are within this policy; its own delays are 100 ms. */
const patient: Partial<RetryPolicy> = {
  strategy: 'constant',
  initialDelayMs: 100,
  jitterPercent: 0,
  maxAttempts: 2,
  maxTotalTimeMs: 600_000,
};

const asked = (retryAfterMs: number): ToolExecutionError =>
  new ToolExecutionError('execution_error', 'slow down', { status: 429, retryAfterMs });
const answered = (headers: object): Error => Object.assign(new Error('too many requests'), { status: 429, headers });

describe('R-2.2 chance', () => {
  it(
    'R-2.2 the same seed gives the same delays, another seed others',
    marbles((m) => {
      const starts = (seed: number): number[] => {
        const at: number[] = [];
        const source = defer(() => {
          at.push(m.scheduler.now());
          return throwError(() => transient);
        });
        source.pipe(retryBackoff({}, runtimeOn(m.scheduler, seed))).subscribe({ error: () => undefined });
        return at;
      };
      const [one, same, other] = [starts(7), starts(7), starts(8)];
      m.flush();
      expect(one).toHaveLength(5);
      expect(same).toStrictEqual(one);
      expect(other).not.toStrictEqual(one);
      const delays = one.slice(1).map((at, index) => at - (one[index] ?? 0));
      for (const [index, base] of [100, 200, 400, 800].entries())
        expect(Math.abs((delays[index] ?? 0) - base)).toBeLessThanOrEqual(base / 10);
    }),
  );
});

describe('R-2.3 total time', () => {
  it(
    'R-2.3 SI-T 2.4 attempts of 600 ms start at 0, 600, 1200 and 1800, and there is no fifth',
    marbles((m) => {
      const source = m.cold<string>('600ms #', undefined, transient);
      const subs = ['^ 599ms !', '600ms ^ 599ms !', '1200ms ^ 599ms !', '1800ms ^ 599ms !'];
      const expected = '2400ms #';
      m.expect(
        source.pipe(
          retryBackoff({ strategy: 'constant', initialDelayMs: 0, jitterPercent: 0 }, runtimeOn(m.scheduler)),
        ),
      ).toBeObservable(expected, undefined, transient);
      m.expect(source).toHaveSubscriptions(subs);
    }),
  );

  it(
    'R-2.3 no attempt starts at the very end of the time: it ends at the failure, not after the wait',
    marbles((m) => {
      const source = m.cold<string>('--#', undefined, transient);
      const subs = '                 ^-!  ';
      const expected = '             --#  ';
      //         2 taken + 3 to wait = 5
      m.expect(source.pipe(retryBackoff({ ...threeMs, maxTotalTimeMs: 5 }, runtimeOn(m.scheduler)))).toBeObservable(
        expected,
        undefined,
        transient,
      );
      m.expect(source).toHaveSubscriptions(subs);
    }),
  );

  it(
    'R-2.3 an attempt may start a millisecond before the end, and may then run past it',
    marbles((m) => {
      const source = m.cold<string>('--#', undefined, transient);
      const subs = ['                ^-!    ', '-----^-!'];
      const expected = '             -------#';
      m.expect(source.pipe(retryBackoff({ ...threeMs, maxTotalTimeMs: 6 }, runtimeOn(m.scheduler)))).toBeObservable(
        expected,
        undefined,
        transient,
      );
      m.expect(source).toHaveSubscriptions(subs);
    }),
  );

  it(
    'R-2.3 the time is counted from the first start, not from each failure',
    marbles((m) => {
      const source = m.cold<string>('--#', undefined, transient);
      const subs = ['                ^-!    ', '-----^-!'];
      const expected = '             -------#';
      m.expect(
        source.pipe(retryBackoff({ ...threeMs, maxAttempts: 9, maxTotalTimeMs: 10 }, runtimeOn(m.scheduler))),
      ).toBeObservable(expected, undefined, transient);
      m.expect(source).toHaveSubscriptions(subs);
    }),
  );
});

describe('R-2.4 Retry-After', () => {
  const cases: ReadonlyArray<readonly [string, unknown, number]> = [
    ['retryAfterMs of a typed error', asked(7_000), 7_000],
    ['a Retry-After of seconds', answered(new Headers({ 'Retry-After': '7' })), 7_000],
    ['a Retry-After in a plain object', answered({ 'retry-after': '7' }), 7_000],
    ['a Retry-After in a plain object, capitals and all', answered({ 'Retry-After': '7' }), 7_000],
    ['a Retry-After that is a number', answered({ 'retry-after': 7 }), 7_000],
    [
      'a Retry-After date, by the clock of the runtime',
      answered(new Headers({ 'Retry-After': 'Thu, 01 Jan 2026 00:00:07 GMT' })),
      7_000,
    ],
    [
      'a Retry-After date that is over: the backoff alone',
      answered(new Headers({ 'Retry-After': 'Thu, 01 Jan 2015 00:00:07 GMT' })),
      100,
    ],
    ['retry-after-ms', answered(new Headers({ 'retry-after-ms': '7' })), 100],
    ['retry-after-ms above the backoff', answered(new Headers({ 'retry-after-ms': '170' })), 170],
    [
      'retry-after-ms, which is more exact than Retry-After',
      answered(new Headers({ 'retry-after-ms': '1700', 'Retry-After': '2' })),
      1_700,
    ],
    ['a hint below the backoff, which it cannot shorten', asked(1), 100],
    ['a hint of zero', asked(0), 100],
    [
      'the hint of a response inside the error',
      Object.assign(new Error('busy'), { response: { status: 503, headers: new Headers({ 'Retry-After': '7' }) } }),
      7_000,
    ],
    ['the hint of a cause', new Error('wrapped', { cause: answered(new Headers({ 'Retry-After': '7' })) }), 7_000],
  ];
  it.each(cases)('R-2.4 the floor under the delay: %s', (_name, error, delayMs) =>
    marbles((m) => {
      const source = m.cold<string>('#', undefined, error);
      const runtime: Runtime = { ...runtimeOn(m.scheduler), wallNow: () => Date.UTC(2026, 0, 1) + m.scheduler.now() };
      m.expect(source.pipe(retryBackoff(patient, runtime))).toBeObservable(`${delayMs}ms #`, undefined, error);
      m.expect(source).toHaveSubscriptions(['(^!)', `${delayMs}ms (^!)`]);
    })(),
  );

  const refusals: ReadonlyArray<readonly [string, unknown]> = [
    ['negative', asked(-1)],
    ['not a number', asked(Number.NaN)],
    ['negative in a header', answered(new Headers({ 'Retry-After': '-1' }))],
    ['unreadable in a header', answered(new Headers({ 'Retry-After': 'soon' }))],
    ['unreadable milliseconds', answered(new Headers({ 'retry-after-ms': 'soon' }))],
    ['beyond the total time', asked(600_000)],
    ['endless', asked(Infinity)],
  ];
  it.each(refusals)('R-2.4 a hint that is %s ends it at once', (_name, error) =>
    marbles((m) => {
      const source = m.cold<string>('--#', undefined, error);
      const subs = '                 ^-!';
      const expected = '             --#';
      m.expect(source.pipe(retryBackoff(patient, runtimeOn(m.scheduler)))).toBeObservable(expected, undefined, error);
      m.expect(source).toHaveSubscriptions(subs);
    })(),
  );
});

describe('R-2.5 what is not retried', () => {
  const errors: ReadonlyArray<readonly [string, unknown]> = [
    ['a permanent failure', permanent],
    ['a rejection by a circuit breaker', new ToolExecutionError('circuit_open', 'resting', { retryAfterMs: 3 })],
    ['a cancellation', new ToolExecutionError('canceled', 'never mind')],
    ['an abort, as the platform words it', new DOMException('aborted', 'AbortError')],
    ['a hook’s no', new ToolExecutionError('blocked', 'no')],
  ];
  it.each(errors)('R-2.5 %s ends it at once', (_name, error) =>
    marbles((m) => {
      const source = m.cold<string>('-a#', undefined, error);
      const subs = '                 ^-!';
      const expected = '             -a#';
      m.expect(source.pipe(retryBackoff(threeMs, runtimeOn(m.scheduler)))).toBeObservable(expected, undefined, error);
      m.expect(source).toHaveSubscriptions(subs);
    })(),
  );
});

describe('R-2.7 cancellation', () => {
  it(
    'R-2.7 unsubscribing in a backoff cancels its timer at once, and no attempt follows',
    marbles((m) => {
      const source = m.cold<string>('--#       ', undefined, transient);
      const subs = '                 ^-!       ';
      const unsub = '                ^---!     ';
      const expected = '             ----------';
      const runtime = counting(runtimeOn(m.scheduler));
      const timers: number[] = [];
      // The timer would come at 12: looked at in the middle of the wait, when it cannot have gone by itself.
      const long = { ...threeMs, initialDelayMs: 10 };
      for (const atMs of [3, 5]) m.scheduler.schedule(() => timers.push(runtime.timers), atMs);
      m.expect(source.pipe(retryBackoff(long, runtime)), unsub).toBeObservable(expected);
      m.expect(source).toHaveSubscriptions(subs);
      m.flush();
      expect(timers).toEqual([1, 0]);
    }),
  );

  it(
    'R-2.7 unsubscribing in an attempt cancels it, and no attempt follows',
    marbles((m) => {
      const source = m.cold<string>('--#', undefined, transient);
      const subs = ['                ^-!    ', '-----^!'];
      const unsub = '                ^-----!';
      const expected = '             -------';
      m.expect(source.pipe(retryBackoff(threeMs, runtimeOn(m.scheduler))), unsub).toBeObservable(expected);
      m.expect(source).toHaveSubscriptions(subs);
    }),
  );
});

describe('R-2.9 options', () => {
  const wrong: ReadonlyArray<readonly [string, unknown]> = [
    ['strategy', 'linear'],
    ['initialDelayMs', -1],
    ['initialDelayMs', Number.NaN],
    ['initialDelayMs', Infinity],
    ['initialDelayMs', 2 ** 53],
    ['initialDelayMs', '100'],
    ['maxDelayMs', -1],
    ['maxDelayMs', Infinity],
    ['multiplier', 0],
    ['multiplier', Number.NaN],
    ['jitterPercent', -1],
    ['jitterPercent', 101],
    ['jitterPercent', Number.NaN],
    ['maxAttempts', 0],
    ['maxAttempts', 1.5],
    ['maxAttempts', Infinity],
    ['maxAttempts', Number.NaN],
    ['maxAttempts', null],
    ['maxTotalTimeMs', -1],
    ['maxTotalTimeMs', Infinity],
    ['maxTotalTimeMs', Number.NaN],
  ];
  it.each(wrong)('R-2.9 %s: %s is refused when the operator is made, by name, rule and value', (option, value) => {
    const make = (): unknown => retryBackoff({ [option]: value });
    expect(make).toThrow(RangeError);
    expect(make).toThrow(new RegExp(`^${option} must be .*, not "?${String(value).replace('+', '\\+')}`));
  });

  it('R-2.9 an option that does not exist is refused', () => {
    expect(() => retryBackoff(Object.fromEntries([['maxRetries', 3]]))).toThrow(/maxRetries/);
  });

  it('R-2.9 the greatest durations and both ends of each range are taken', () => {
    expect(() =>
      retryBackoff({
        initialDelayMs: 0,
        maxDelayMs: Number.MAX_SAFE_INTEGER,
        maxTotalTimeMs: Number.MAX_SAFE_INTEGER,
        jitterPercent: 100,
        maxAttempts: 1,
      }),
    ).not.toThrow();
    expect(() => retryBackoff({ jitterPercent: 0 })).not.toThrow();
  });
});
