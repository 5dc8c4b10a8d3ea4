import {
  EMPTY,
  catchError,
  concat,
  defer,
  endWith,
  ignoreElements,
  map,
  of,
  takeUntil,
  tap,
  type Observable,
} from 'rxjs';
import type { Runtime } from '../../../src/contract/runtime.ts';
import {
  CIRCUIT_OPEN,
  TIMEOUT,
  abortable,
  attemptTimeout,
  circuitBreaker,
  type Meaning,
  type Read,
} from './operators.ts';
import { retryBackoff } from './retry.ts';
import type { Guards, Outcome } from './shapes.ts';

/** The caller's own end of a call. */
export const CANCELED: Error = new Error('canceled');

/** for a failure. */
const statusOf = (error: unknown, attempts: number, { retriable }: Meaning, byPushback: boolean): string => {
  if (attempts === 0) return 'circuit_open';
  if (!retriable) return 'error';
  if (attempts > 1 && !byPushback) return 'retry_exhausted';
  return error === TIMEOUT && attempts === 1 ? 'timeout' : 'retriable_error';
};

/** a call is its attempts, and ends with a value whatever becomes of them. Its output is the last value. */
export const call = (
  work: (signal: AbortSignal) => Observable<unknown>,
  guards: Guards,
  runtime: Runtime,
): Observable<Outcome> =>
  defer(() => {
    const { timeoutMs, retry, breaker, read, deadlineMs = Infinity, aborted$ = EMPTY } = guards;
    let [attempts, byPushback, canceled] = [0, false, false];
    let value: unknown;
    let lastFailure: unknown;
    const counted = (signal: AbortSignal): Observable<unknown> => {
      attempts++;
      value = undefined;
      return work(signal);
    };
    // the breaker that this very failure has opened would not admit a retry.
    const readOfRetry: Read = (error) => ({
      ...read(error),
      retriable: read(error).retriable && breaker.memory().type !== 'open',
    });
    const outcome$ = abortable(counted).pipe(
      tap((next) => (value = next)),
      attemptTimeout(timeoutMs, runtime),
      tap({ error: (error: unknown) => (lastFailure = error) }),
      circuitBreaker(breaker, read),
      retryBackoff(retry, runtime, readOfRetry, { deadlineMs, ended: (pushedBack) => (byPushback = pushedBack) }),
      ignoreElements(),
      endWith(0),
      map((): Outcome => ({ status: 'success', attempts, value })),
      catchError((thrown: unknown) => {
        // A retry that was not admitted was not made: the failure is the one before it.
        const error = thrown === CIRCUIT_OPEN ? (lastFailure ?? thrown) : thrown;
        return of<Outcome>({ status: statusOf(error, attempts, read(error), byPushback), attempts, error });
      }),
    );
    const ended$ = outcome$.pipe(takeUntil(aborted$.pipe(tap(() => (canceled = true)))));
    return concat(
      ended$,
      defer(() => (canceled ? of<Outcome>({ status: 'error', attempts, error: CANCELED }) : EMPTY)),
    );
  });
