import { defer, retry, tap, throwError, type Observable } from 'rxjs';
import type { RetryPolicy } from '../contract/policy.ts';
import type { Runtime } from '../contract/runtime.ts';
import type { ErrorReader } from '../contract/tool-error.ts';
import { backoffDelayMs, retryPolicy } from '../policy/retry/backoff.ts';
import { readAsCall } from '../policy/recovery/classify.ts';
import { retryDelayMs, retryRefusal, type RetryQuestion } from '../policy/retry/refusal.ts';
import { liveRuntime } from '../runtime.ts';

/**
 * A stream shares no budget, and whoever retries it says that doing it twice does no harm. An open breaker is an error
 * of its own.
 */
const ALONE = {
  breakerState: 'closed',
  budgetAvailable: true,
  effects: 'read',
  hasIdempotencyKey: false,
  retrySafe: true,
} as const;

/**
 * Subscribes again after a transient failure, with jittered backoff, until attempts or time are used up.
 *
 * ```
 * first attempt       --#
 * backoff of 4 ms       ----
 * second attempt            --a|
 * retryBackoff(...)   --------a|
 * ```
 *
 * Emits what each attempt emits; values from before a failure stay emitted, as with RxJS's own `retry`. A permanent
 * failure, an open circuit breaker and a server that asked not to be asked again end it at once; `Retry-After` is a
 * floor under each delay. Unsubscribing during a backoff cancels its timer. Each subscription counts its own attempts.
 *
 * @param policy what differs from the interactive profile: exponential, 100 ms doubling to 800 ms, +-10 %, 5 attempts,
 * 2 s in all (SI 2.1)
 * @param runtime where time and chance come from
 * @throws RangeError for an option out of its range; (as the stream's error) the last failure
 *
 * @example
 * search$.pipe(attemptTimeout(2_000), circuitBreaker(breaker), retryBackoff({ maxAttempts: 4 }));
 */
export function retryBackoff(
  policy: Partial<RetryPolicy> = {},
  runtime: Runtime = liveRuntime,
): <T>(source: Observable<T>) => Observable<T> {
  return retryBackoffFor(readAsCall, policy, runtime);
}

/** `retryBackoff` with a reader of errors as an argument: `spillway/mini` gives one without tables. */
export function retryBackoffFor(
  read: ErrorReader,
  policy: Partial<RetryPolicy>,
  runtime: Runtime,
): <T>(source: Observable<T>) => Observable<T> {
  const settings = retryPolicy(policy);
  return <T>(source: Observable<T>): Observable<T> =>
    defer(() => source.pipe(retry({ delay: backoff(read, settings, runtime) })));
}

/**
 * What follows a failed attempt: the wait before the next one, or the failure when it was the last. It remembers what
 * one subscription has used up.
 */
const backoff = (
  read: ErrorReader,
  settings: RetryPolicy,
  runtime: Runtime,
): ((thrown: unknown, attempt: number) => Observable<unknown>) => {
  const { maxAttempts, maxTotalTimeMs } = settings;
  const startedAtMs = runtime.now();
  let previousDelayMs: number | undefined;
  return (thrown, attempt) => {
    const { error, classification } = read(thrown, () => runtime.wallNow());
    const nextDelayMs = backoffDelayMs(settings, attempt - 1, previousDelayMs, () => runtime.random());
    const elapsedMs = runtime.now() - startedAtMs;
    const failure: RetryQuestion = {
      error,
      classification,
      attempt,
      maxAttempts,
      maxTotalTimeMs,
      nextDelayMs,
      elapsedMs,
      ...ALONE,
    };
    if (error.kind === 'canceled' || retryRefusal(failure) !== undefined) return throwError(() => thrown);
    previousDelayMs = nextDelayMs;
    return runtime.after(retryDelayMs(failure)).pipe(
      tap(() => {
        // A timer can come late, behind a stalled event loop: no attempt starts once the time is over.
        if (runtime.now() - startedAtMs >= maxTotalTimeMs) throw thrown;
      }),
    );
  };
};
