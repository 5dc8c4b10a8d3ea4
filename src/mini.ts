/**
 * The three operators for where bytes count, without the tables of codes, names and words that say what an error means:
 * `spillway/mini`. Errors are read by their fields alone; see `retryBackoff`.
 */
import type { Observable } from 'rxjs';
import type { BreakerOptions, RetryPolicy } from './contract/policy.ts';
import type { Runtime } from './contract/runtime.ts';
import { readFields } from './errors/fields.ts';
import { createBreakerFor, type Breaker, type BreakerChange } from './operators/breaker/breaker.ts';
import { circuitBreakerFor } from './operators/circuit-breaker.ts';
import { retryBackoffFor } from './operators/retry-backoff.ts';
import type { BreakerOutcome } from './policy/breaker/reducer.ts';
import { liveRuntime } from './runtime.ts';

export type { BreakerStateName } from './contract/breaker-state.ts';
export type { Classification, ToolErrorKind } from './contract/error-kind.ts';
export type { BreakerOptions, RetryPolicy } from './contract/policy.ts';
export type { ToolOutput } from './contract/output.ts';
export type { Runtime } from './contract/runtime.ts';
export { ToolExecutionError, isToolExecutionError, type ToolExecutionErrorOptions } from './contract/tool-error.ts';
export { abortable } from './operators/work/abortable.ts';
export { attemptTimeout } from './operators/attempt-timeout.ts';
export type { Breaker, BreakerChange, BreakerState } from './operators/breaker/breaker.ts';
export type { Admission } from './operators/breaker/permit.ts';
export type { BreakerInput, BreakerOutcome } from './policy/breaker/reducer.ts';
export { liveRuntime } from './runtime.ts';

/**
 * The `retryBackoff` of `spillway`, which reads an error by its fields and those of its `cause`s: the status (400, 401,
 * 404 and their like are not tried again), `Retry-After`, an `AbortError`, and its maker's own word (`isRetryable`,
 * `retryable`, `x-should-retry`). It knows no codes, no other names and no words: what says only by them that it will
 * fail again is tried again, and throttling that AWS sends as a 400 is not. Where that matters, throw a
 * `ToolExecutionError` with a `classification`.
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
  return retryBackoffFor(readFields, policy, runtime);
}

/**
 * The `circuitBreaker` of `spillway`, which reads an error as this module's `retryBackoff` does.
 *
 * @param breaker of `createBreaker`; share one among the calls to one dependency
 * @param outcome what an error means to the breaker, when the default does not fit
 * @throws (as the stream's error) `circuit_open` with `retryAfterMs`, at once and without subscribing to the source,
 * when not admitted
 *
 * @example
 * fromFetch('https://example.com').pipe(circuitBreaker(breaker), retryBackoff());
 */
export function circuitBreaker(
  breaker: Breaker,
  outcome?: (error: unknown) => BreakerOutcome,
): <T>(source: Observable<T>) => Observable<T> {
  return circuitBreakerFor(readFields, breaker, outcome);
}

/**
 * The `createBreaker` of `spillway`, which reads the `Retry-After` of an error as this module's `retryBackoff` does.
 *
 * @param options when it opens and how it recovers; see `BreakerOptions` for each default
 * @param runtime where time and chance come from
 * @param onChange told of each change of state once the new state stands, in order and before those who watch `state$`;
 * what it throws is ignored
 * @throws RangeError for an option out of its range
 *
 * @example
 * const breaker = createBreaker({ failureThreshold: 3, cooldownMs: 10_000 });
 * breaker.state$.subscribe(({ type }) => console.log(type)); // 'closed', later perhaps 'open'
 */
export function createBreaker(
  options: BreakerOptions = {},
  runtime: Runtime = liveRuntime,
  onChange?: BreakerChange,
): Breaker {
  return createBreakerFor(readFields, options, runtime, onChange);
}
