import { Observable, defer } from 'rxjs';
import type { BreakerOptions, RetryPolicy } from '../contract/policy.ts';
import type { Runtime } from '../contract/runtime.ts';
import type { ToolOutput } from '../contract/output.ts';
import { checkKeys } from '../policy/check.ts';
import { liveRuntime } from '../runtime.ts';
import { AttemptSignal } from './work/attempt-signal.ts';
import { attemptTimeout } from './attempt-timeout.ts';
import { createBreaker, type Breaker } from './breaker/breaker.ts';
import { circuitBreaker } from './circuit-breaker.ts';
import { startWork } from './work/output.ts';
import { retryBackoff } from './retry-backoff.ts';

/** What guarded work is given. */
export interface GuardContext {
  /** Fresh for each attempt, and aborted when the attempt is over before the work is. */
  readonly signal: AbortSignal;
  /** Counted from 1. */
  readonly attempt: number;
}

/** Which guards there are. One that is left out is not there; at least one is needed. */
export interface GuardOptions {
  /** A hard limit on each attempt, in milliseconds; see `attemptTimeout`. */
  readonly timeoutMs?: number;
  /**
   * A breaker that is shared with other calls to the same dependency, or the options of one for all that this guard
   * guards; see `createBreaker`.
   */
  readonly breaker?: Breaker | BreakerOptions;
  /** What differs from the interactive profile; `{}` for the profile itself; see `retryBackoff`. */
  readonly retry?: Partial<RetryPolicy>;
}

/** An operator that guards a stream; `from` guards work. */
export interface Guard {
  <T>(source: Observable<T>): Observable<T>;
  /**
   * Guards work that takes an `AbortSignal`, as `abortable(work).pipe(guard)` would, but makes the signal only if the
   * work asks for it, and counts the attempts.
   *
   * @param work gives a value, a Promise, an Observable or an AsyncIterable; called once for each attempt
   * @example
   * guard({ timeoutMs: 2_000, retry: {} }).from(({ signal }) => fetch('https://example.com', { signal }));
   */
  from<T>(work: (context: GuardContext) => ToolOutput<T>): Observable<T>;
  /** The breaker, to watch or to switch. */
  readonly breaker: Breaker | undefined;
}

/** What one attempt at guarded work is given. The signal is made only if the work asks for it. */
class WorkContext implements GuardContext {
  readonly attempt: number;
  readonly #own: AttemptSignal;

  constructor(attempt: number, own: AttemptSignal) {
    this.attempt = attempt;
    this.#own = own;
  }

  get signal(): AbortSignal {
    return this.#own.signal;
  }
}

/** The attempts of one subscription at work: each subscription to what this gives is one more. */
const attemptsAt = <T>(work: (context: GuardContext) => ToolOutput<T>): Observable<T> => {
  let attempts = 0;
  return new Observable((subscriber) => {
    const own = new AttemptSignal();
    const context = new WorkContext(++attempts, own);
    startWork(subscriber, () => work(context), own);
  });
};

const isBreaker = (breaker: Breaker | BreakerOptions): breaker is Breaker =>
  typeof (breaker as Partial<Breaker>).admit === 'function';

/**
 * Retries, a circuit breaker and a hard timeout as one operator: `pipe(attemptTimeout(timeoutMs),
 * circuitBreaker(breaker), retryBackoff(retry))`, each where it was asked for.
 *
 * ```
 * first attempt                             --------         hangs
 * second attempt                                  -#         fails
 * third attempt                                      -a-|    succeeds
 * guard({ timeoutMs: 4, breaker, retry })   ----------a-|    with backoffs of 2 ms
 * ```
 *
 * Emits what each attempt emits. Attempts that fail count for the breaker one by one, and a retry that the breaker does
 * not admit ends it.
 *
 * @param options which guards there are: `{ timeoutMs, breaker, retry }`
 * @param runtime where time and chance come from
 * @throws RangeError for an option out of its range; (as the stream's error) the last failure, `timeout`, or
 * `circuit_open` with `retryAfterMs`
 *
 * @example
 * const guarded = guard({ timeoutMs: 2_000, breaker: { failureThreshold: 3 }, retry: { maxAttempts: 4 } });
 * search$.pipe(guarded).subscribe((found) => console.log(found));
 * guarded.breaker?.state$.subscribe(({ type }) => console.log(type)); // 'closed', later perhaps 'open'
 */
export function guard(options: GuardOptions, runtime: Runtime = liveRuntime): Guard {
  checkKeys('a guard', options, ['timeoutMs', 'breaker', 'retry']);
  const { timeoutMs, breaker: given, retry } = options;
  if (timeoutMs === undefined && given === undefined && retry === undefined) {
    throw new RangeError('a guard must have timeoutMs, breaker or retry, and has none of them');
  }
  const breaker = given === undefined || isBreaker(given) ? given : createBreaker(given, runtime);
  const guards = [
    ...(timeoutMs === undefined ? [] : [attemptTimeout(timeoutMs, runtime)]),
    ...(breaker === undefined ? [] : [circuitBreaker(breaker)]),
    ...(retry === undefined ? [] : [retryBackoff(retry, runtime)]),
  ];
  const guarded = <T>(source: Observable<T>): Observable<T> =>
    guards.reduce((stream, guardOne) => guardOne(stream), source);
  const from = <T>(work: (context: GuardContext) => ToolOutput<T>): Observable<T> =>
    defer(() => guarded(attemptsAt(work)));
  return Object.assign(guarded, { from, breaker });
}
