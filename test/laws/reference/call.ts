import { EMPTY, catchError, concat, defer, endWith, ignoreElements, map, of, takeUntil, tap, type Observable } from 'rxjs';
import type { RetryPolicy } from '../../../src/contract/policy.ts';
import type { Runtime } from '../../../src/contract/runtime.ts';
import { CIRCUIT_OPEN, TIMEOUT, abortable, attemptTimeout, circuitBreaker, retryBackoff, type Meaning, type ReferenceBreaker } from './operators.ts';

/** How a call ended, as its result says it. */
export interface Outcome {
  readonly status: string;
  readonly attempts: number;
  readonly value?: unknown;
  readonly error?: unknown;
}
/** The caller's own end of a call. */
export const CANCELED: Error = new Error('canceled');
/** What a call is guarded by. */
export interface Guards {
  readonly timeoutMs: number;
  readonly retry: Partial<RetryPolicy>;
  readonly breaker: ReferenceBreaker;
  readonly read: (error: unknown) => Meaning;
  /** When the turn of which it is a part is over: no retry starts then. */
  readonly deadlineMs?: number;
  readonly aborted$?: Observable<unknown>;
}

/** for a failure. */
const statusOf = (error: unknown, attempts: number, { retriable }: Meaning, pushedBack: boolean): string => {
  if (attempts === 0) return 'circuit_open';
  if (!retriable) return 'error';
  if (attempts > 1 && !pushedBack) return 'retry_exhausted';
  return error === TIMEOUT && attempts === 1 ? 'timeout' : 'retriable_error';
};

/** a call is its attempts, and ends with a value whatever becomes of them. The output is the last value of the attempt that succeeds. */
export const call = (work: (signal: AbortSignal) => Observable<unknown>, guards: Guards, runtime: Runtime): Observable<Outcome> =>
  defer(() => {
    const { timeoutMs, retry, breaker, read, deadlineMs, aborted$ = EMPTY } = guards;
    let attempts = 0;
    let canceled = false;
    let pushedBack = false;
    let value: unknown;
    let lastFailure: unknown;
    const attempt$ = abortable((signal) => {
      attempts++;
      value = undefined;
      return work(signal);
    }).pipe(tap((next) => (value = next)), attemptTimeout(timeoutMs, runtime), tap({ error: (error: unknown) => (lastFailure = error) }), circuitBreaker(breaker, read));
    // the breaker that this very failure has opened would not admit a retry.
    const mayRetry = (error: unknown): Meaning => ({ ...read(error), retriable: read(error).retriable && breaker.memory().type !== 'open' });
    const outcome$ = attempt$.pipe(
      retryBackoff(retry, runtime, mayRetry, deadlineMs, (byPushback) => (pushedBack = byPushback)),
      ignoreElements(),
      endWith(0),
      map((): Outcome => ({ status: 'success', attempts, value })),
      catchError((thrown: unknown) => {
        // A retry that was not admitted was not made: the failure is the one before it.
        const error = thrown === CIRCUIT_OPEN ? (lastFailure ?? thrown) : thrown;
        return of<Outcome>({ status: statusOf(error, attempts, read(error), pushedBack), attempts, error });
      }),
    );
    const ended$ = outcome$.pipe(takeUntil(aborted$.pipe(tap(() => (canceled = true)))));
    return concat(ended$, defer(() => (canceled ? of<Outcome>({ status: 'error', attempts, error: CANCELED }) : EMPTY)));
  });
