import type { Observable } from 'rxjs';
import type { BreakerOptions, RetryPolicy } from '../contract/policy.ts';
import type { Runtime } from '../contract/runtime.ts';
import type { ToolOutput } from '../contract/output.ts';
import { retryPolicy } from '../policy/backoff.ts';
import { checkKeys, checkNumber, positiveDuration } from '../policy/check.ts';
import { liveRuntime } from '../runtime.ts';
import { createBreaker, type Breaker } from './breaker.ts';
import { DirectStream } from './direct-stream.ts';
import { queueOf } from './expiry.ts';
import { GuardRun, type GuardContext, type GuardTerms, type Guarded } from './guard-run.ts';

/** Which guards there are. One that is left out is not there; at least one is needed. */
export interface GuardOptions {
  /** A hard limit on each attempt, in milliseconds; see `attemptTimeout`. */
  readonly timeoutMs?: number;
  /** A breaker that is shared with other calls to the same dependency, or the options of one for all that this guard guards; see `createBreaker`. */
  readonly breaker?: Breaker | BreakerOptions;
  /** What differs from the interactive profile; `{}` for the profile itself; see `retryBackoff`. */
  readonly retry?: Partial<RetryPolicy>;
}

/** An operator that guards a stream; `from` guards work. */
export interface Guard {
  <T>(source: Observable<T>): Observable<T>;
  /**
   * Guards work that takes an `AbortSignal`, as `abortable(work).pipe(guard)` would, but makes the signal only if the work asks for it.
   *
   * @param work gives a value, a Promise, an Observable or an AsyncIterable; called once for each attempt
   * @example
   * guard({ timeoutMs: 2_000, retry: {} }).from(({ signal }) => fetch('https://example.com', { signal }));
   */
  from<T>(work: (context: GuardContext) => ToolOutput<T>): Observable<T>;
  /** The breaker, to watch or to switch. */
  readonly breaker: Breaker | undefined;
}

const isBreaker = (breaker: Breaker | BreakerOptions): breaker is Breaker => typeof (breaker as Partial<Breaker>).admit === 'function';

/**
 * Retries, a circuit breaker and a hard timeout as one operator: the same as `attemptTimeout(timeoutMs)`, `circuitBreaker(breaker)` and
 * `retryBackoff(retry)` in one pipe, with one subscriber for an attempt.
 *
 * Emits what each attempt emits. Attempts that fail count for the breaker one by one, and a retry that the breaker does not admit ends it.
 *
 * @param options which guards there are: `{ timeoutMs, breaker, retry }`
 * @param runtime where time and chance come from
 * @throws RangeError for an option out of its range; (as the stream's error) the last failure, `timeout`, or `circuit_open` with `retryAfterMs`
 *
 * @example
 * const guarded = guard({ timeoutMs: 2_000, breaker: { failureThreshold: 3 }, retry: { maxAttempts: 4 } });
 * search$.pipe(guarded).subscribe((found) => console.log(found));
 * guarded.breaker?.state$.subscribe(({ type }) => console.log(type)); // 'closed', later perhaps 'open'
 */
export function guard(options: GuardOptions, runtime: Runtime = liveRuntime): Guard {
  checkKeys('a guard', options, ['timeoutMs', 'breaker', 'retry']);
  const { timeoutMs, breaker: given, retry } = options;
  if (timeoutMs === undefined && given === undefined && retry === undefined) throw new RangeError('a guard must have timeoutMs, breaker or retry, and has none of them');
  if (timeoutMs !== undefined) checkNumber('timeoutMs', timeoutMs, positiveDuration);
  const breaker = given === undefined || isBreaker(given) ? given : createBreaker(given, runtime);
  const terms: GuardTerms = { timeouts: timeoutMs === undefined ? undefined : queueOf(timeoutMs, runtime), breaker, retry: retry === undefined ? undefined : retryPolicy(retry), runtime };
  const guarded = <T>(what: Guarded<T>): Observable<T> => new DirectStream((subscriber) => new GuardRun(terms, what, subscriber).start());
  return Object.assign(<T>(source: Observable<T>): Observable<T> => guarded(source), {
    from: <T>(work: (context: GuardContext) => ToolOutput<T>): Observable<T> => guarded(work),
    breaker,
  });
}
