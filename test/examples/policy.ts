// A policy of your own, and its marble tests: minutes of waiting in a few milliseconds, the same each time.
import { deepStrictEqual } from 'node:assert';
import { catchError, of, switchMap, type MonoTypeOperatorFunction } from 'rxjs';
import { TestScheduler } from 'rxjs/testing';
import {
  attemptTimeout,
  circuitBreaker,
  createBreaker,
  liveRuntime,
  retryBackoff,
  type Runtime,
  type ToolExecutionError,
} from 'spillway';
import { runtimeOn } from 'spillway/testing';

/** How we call the booking service: 2 s an attempt, three attempts a second apart, a rest after four failures. */
const bookingPolicy = <T>(runtime: Runtime = liveRuntime): MonoTypeOperatorFunction<T> => {
  const breaker = createBreaker({ failureThreshold: 4, cooldownMs: 60_000 }, runtime);
  const retry = {
    strategy: 'constant',
    initialDelayMs: 1_000,
    jitterPercent: 0,
    maxAttempts: 3,
    maxTotalTimeMs: 30_000,
  } as const;
  return (work$) => work$.pipe(attemptTimeout(2_000, runtime), circuitBreaker(breaker), retryBackoff(retry, runtime));
};

const law = (
  says: string,
  test: (helpers: Parameters<Parameters<TestScheduler['run']>[0]>[0], runtime: Runtime) => void,
): void => {
  const scheduler = new TestScheduler(deepStrictEqual);
  scheduler.run((helpers) => test(helpers, runtimeOn(scheduler)));
  console.log(`holds: ${says}`);
};
const down = Object.assign(new Error('down'), { status: 503 });
const kindOf = catchError(({ kind, status }: ToolExecutionError) => of(kind ?? status));

law('an answer passes as it comes', ({ cold, expectObservable }, runtime) => {
  const work = '  500ms (a|)';
  const expected = '500ms (a|)';
  expectObservable(cold(work).pipe(bookingPolicy(runtime))).toBe(expected);
});

law(
  'a service that hangs is asked three times, and ends as a timeout',
  ({ cold, expectObservable, expectSubscriptions }, runtime) => {
    const work$ = cold<string>('-');
    // 2 s, a second between, 2 s, a second between, 2 s.
    expectObservable(work$.pipe(bookingPolicy(runtime), kindOf)).toBe('8s (k|)', { k: 'timeout' });
    expectSubscriptions(work$.subscriptions).toBe(['^ 1999ms !', '3s ^ 1999ms !', '6s ^ 1999ms !']);
  },
);

law(
  'after four failures nobody is sent there for a minute',
  ({ cold, expectObservable, expectSubscriptions }, runtime) => {
    const policy = bookingPolicy<string>(runtime);
    const work$ = cold<string>('#', undefined, down);
    expectObservable(work$.pipe(policy, kindOf)).toBe('2s (k|)', { k: 503 });
    // The second caller's first attempt is the fourth failure; its retry is rejected without asking.
    const second$ = cold('5s (a|)').pipe(switchMap(() => work$.pipe(policy, kindOf)));
    expectObservable(second$).toBe('6s (k|)', { k: 'circuit_open' });
    expectSubscriptions(work$.subscriptions).toBe(['(^!)', '1s (^!)', '2s (^!)', '5s (^!)']);
  },
);
