import { EMPTY, catchError, startWith, switchMap, type Observable } from 'rxjs';
import type { Runtime } from '../contract/runtime.ts';
import { checkNumber, positiveDuration } from '../policy/check.ts';
import { liveRuntime } from '../runtime.ts';
import { timeoutError } from './attempt-timeout.ts';
import { overdue } from './timing/expiry.ts';
import { limitedBy } from './timing/limited-by.ts';

/**
 * A limit on silence: errors when `activity$` has been quiet for `idleTimeoutMs`. It never extends a hard
 * limit: put `attemptTimeout` outside.
 *
 * ```
 * source                      -----------------b|
 * activity$                   --a---a---------a--
 * idleTimeout(6, activity$)   ------------#          six milliseconds after the second activity
 * ```
 *
 * @param idleTimeoutMs the longest silence in milliseconds, above 0
 * @param activity$ what resets it; its end and its errors reset nothing
 * @param runtime where time comes from
 * @throws RangeError for a limit out of range; (as the stream's error) `timeout`, transient and uncertain
 *
 * @example
 * download$.pipe(idleTimeout(5_000, progress$), attemptTimeout(60_000));
 */
export function idleTimeout(
  idleTimeoutMs: number,
  activity$: Observable<unknown>,
  runtime: Runtime = liveRuntime,
): <T>(source: Observable<T>) => Observable<T> {
  checkNumber('idleTimeoutMs', idleTimeoutMs, positiveDuration);
  return limitedBy(() => silence(idleTimeoutMs, activity$, runtime));
}

/** Errors once nothing has been active for so long. */
export const silence = (idleTimeoutMs: number, activity$: Observable<unknown>, runtime: Runtime): Observable<never> =>
  activity$.pipe(
    // Activity that failed is activity that ended.
    catchError(() => EMPTY),
    startWith(undefined),
    switchMap(() =>
      overdue(idleTimeoutMs, runtime, () => timeoutError(idleTimeoutMs, 'Tool made no progress, timeout')),
    ),
  );
