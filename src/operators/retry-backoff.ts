import { defer, map, retry, throwError, type Observable } from 'rxjs';
import type { RetryPolicy } from '../contract/policy.ts';
import type { Runtime } from '../contract/runtime.ts';
import { toToolExecutionError } from '../entrance/tool.ts';
import { backoffDelayMs, retryPolicy } from '../policy/backoff.ts';
import { classify } from '../policy/classify.ts';
import { decideRecovery } from '../policy/recovery.ts';
import { liveRuntime } from '../runtime.ts';

/**
 * Subscribes again after a transient failure, with jittered backoff, until attempts or time are used up.
 *
 * Emits what each attempt emits; values from before a failure stay emitted, as with RxJS's own `retry`. A permanent failure, an open
 * circuit breaker and a server that asked not to be asked again end it at once; `Retry-After` is a floor under each delay.
 * Unsubscribing during a backoff cancels its timer. Each subscription counts its own attempts.
 *
 * @param policy what differs from the interactive profile: exponential, 100 ms doubling to 800 ms, +-10 %, 5 attempts, 2 s in all (SI 2.1)
 * @param runtime where time and chance come from
 * @throws RangeError for an option out of its range; (as the stream's error) the last failure
 *
 * @example
 * search$.pipe(attemptTimeout(2_000), circuitBreaker(breaker), retryBackoff({ maxAttempts: 4 }));
 */
export function retryBackoff(policy: Partial<RetryPolicy> = {}, runtime: Runtime = liveRuntime): <T>(source: Observable<T>) => Observable<T> {
  const settings = retryPolicy(policy);
  return <T>(source: Observable<T>): Observable<T> =>
    defer(() => {
      const startedAtMs = runtime.now();
      let previousDelayMs: number | undefined;
      const delay = (thrown: unknown, attempt: number): Observable<unknown> => {
        const error = toToolExecutionError(thrown, () => runtime.wallNow());
        const nextDelayMs = backoffDelayMs(settings, attempt - 1, previousDelayMs, () => runtime.random());
        const decision = decideRecovery({
          toolName: '',
          callId: '',
          error,
          classification: classify(error).classification,
          breakerState: 'closed',
          attempt,
          maxAttempts: settings.maxAttempts,
          elapsedMs: runtime.now() - startedAtMs,
          maxTotalTimeMs: settings.maxTotalTimeMs,
          nextDelayMs,
          turnRemainingMs: Infinity,
          budgetAvailable: true,
          alternatives: [],
          required: true,
          effects: 'read',
          hasIdempotencyKey: false,
          retrySafe: true,
        });
        if (decision.strategy !== 'retry') return throwError(() => thrown);
        previousDelayMs = nextDelayMs;
        return runtime.after(decision.delayMs ?? 0).pipe(
          map(() => {
            // A timer can come late, behind a stalled event loop: no attempt starts once the time is over.
            if (runtime.now() - startedAtMs >= settings.maxTotalTimeMs) throw thrown;
          }),
        );
      };
      return source.pipe(retry({ delay }));
    });
}
