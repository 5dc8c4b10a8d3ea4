import { Observable, type Subscription } from 'rxjs';
import { held } from './held.ts';

/**
 * A stream of somebody else's, whose teardown is its own affair: what it throws then would keep us from what comes
 * next, as from telling who waits how it ended.
 *
 * ```
 * source                    ---a---    its teardown throws
 * source, torn down alone   ---a-!     nobody hears of it
 * ```
 */
export const tornDownAlone = <T>(source: Observable<T>): Observable<T> =>
  new Observable((subscriber) => {
    let work: Subscription | undefined;
    // Added first: it may be unsubscribed while it starts.
    subscriber.add(() => {
      try {
        work?.unsubscribe();
      } catch {
        // Its own.
      }
    });
    source.pipe(held((own) => (work = own))).subscribe({
      next: (value) => subscriber.next(value),
      error: (error: unknown) => subscriber.error(error),
      complete: () => subscriber.complete(),
    });
  });
