import { EMPTY, Observable, catchError, startWith, switchMap } from 'rxjs';
import type { Runtime } from '../contract/runtime.ts';
import { checkNumber, positiveDuration } from '../policy/check.ts';
import { liveRuntime } from '../runtime.ts';
import { timeoutError } from './attempt-timeout.ts';
import { expiry } from './expiry.ts';
import { LimitedSubscriber } from './limited-subscriber.ts';

/**
 * A limit on silence: errors when `activity$` has been quiet for `idleTimeoutMs`. It never extends a hard limit: put `attemptTimeout` outside.
 *
 * @param idleTimeoutMs the longest silence in milliseconds, above 0
 * @param activity$ what resets it
 * @throws RangeError for a limit out of range; (as the stream's error) `timeout`, transient and uncertain
 *
 * @example
 * download$.pipe(idleTimeout(5_000, progress$), attemptTimeout(60_000));
 */
export function idleTimeout(idleTimeoutMs: number, activity$: Observable<unknown>, runtime: Runtime = liveRuntime): <T>(source: Observable<T>) => Observable<T> {
  checkNumber('idleTimeoutMs', idleTimeoutMs, positiveDuration);
  return <T>(source: Observable<T>): Observable<T> =>
    new Observable((subscriber) => {
      const attempt = new LimitedSubscriber(subscriber);
      source.subscribe(attempt);
      if (attempt.closed) return;
      const silence = activity$
        .pipe(
          // Activity that failed is activity that ended.
          catchError(() => EMPTY),
          startWith(undefined),
          switchMap(() => expiry(idleTimeoutMs, runtime)),
        )
        .subscribe(() => attempt.overtake(timeoutError(idleTimeoutMs, 'Tool made no progress, timeout')));
      attempt.deadline = { cancel: () => silence.unsubscribe() };
    });
}
