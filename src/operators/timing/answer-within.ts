import { catchError, defaultIfEmpty, map, merge, of, take, type Observable, type ObservableNotification } from 'rxjs';
import type { Runtime } from '../../contract/runtime.ts';
import { tornDownAlone } from '../work/torn-down-alone.ts';
import { expiry } from './expiry.ts';

/**
 * The first that somebody else's answer gives, a value, an error or its end; `undefined` where it gives nothing within
 * the time.
 *
 * ```
 * answer               -----a
 * answerWithin(3)      ---(u|)     undefined
 * answerWithin(8)      -----(n|)   the notification of a
 * ```
 *
 * @param timeoutMs how long it may take
 * @param runtime where time comes from
 */
export const answerWithin = <T>(
  answer$: Observable<T>,
  timeoutMs: number,
  runtime: Runtime,
): Observable<ObservableNotification<T> | undefined> =>
  merge(
    // As `materialize` would, which takes a kilobyte along.
    answer$.pipe(
      tornDownAlone,
      take(1),
      map((value): ObservableNotification<T> => ({ kind: 'N', value })),
      catchError((error: unknown) => of<ObservableNotification<T>>({ kind: 'E', error })),
      defaultIfEmpty<ObservableNotification<T>, ObservableNotification<T>>({ kind: 'C' }),
    ),
    expiry(timeoutMs, runtime).pipe(map(() => undefined)),
  ).pipe(take(1));
