import { Observable, catchError, takeUntil, throwError, type Subscriber, type Subscription } from 'rxjs';
import { held } from '../work/held.ts';

/**
 * `takeUntil` a limit that errors, with three things added that ask for.
 *
 * The limit is subscribed to once the source has started: what settles at once needs no timer, and a result of the
 * limit's own instant still counts when it takes some steps more. The source is unsubscribed before the error is
 * emitted: `takeUntil` has it the other way round, and whoever gets a timeout could start the next attempt while the
 * last one has not been aborted. And a teardown that throws costs nobody the limit's error: it is reported as RxJS
 * reports what nobody handles.
 *
 * @param makeLimit called when the source is about to start; what it gives never emits, and errors when time is over
 */
export const limitedBy =
  (makeLimit: () => Observable<never>) =>
  <T>(source: Observable<T>): Observable<T> =>
    new Observable((subscriber) => {
      const limit$ = makeLimit();
      let work: Subscription | undefined;
      let limit: Subscriber<never> | undefined;
      const armed$ = new Observable<never>((own) => {
        limit = own;
      });
      source
        .pipe(
          held((own) => (work = own)),
          takeUntil(armed$),
          catchError((error: unknown) => {
            try {
              work?.unsubscribe();
            } catch (thrown) {
              throwError(() => thrown).subscribe();
            }
            throw error;
          }),
        )
        .subscribe(subscriber);
      if (!subscriber.closed) limit$.subscribe(limit);
    });
