import { Observable } from 'rxjs';

/**
 * Ends a stream from outside: when `cut$` errors, the source is unsubscribed first and the error passed on after, so that what the source does
 * in its teardown comes before what the error leads to.
 *
 * @example
 * work$.pipe(cutOff(throwError(() => new Error('enough')).pipe(delay(1_000))));
 */
export function cutOff(cut$: Observable<never>): <T>(source: Observable<T>) => Observable<T> {
  return <T>(source: Observable<T>): Observable<T> =>
    new Observable<T>((subscriber) => {
      const work = source.subscribe({
        next: (value) => subscriber.next(value),
        error: (error: unknown) => subscriber.error(error),
        complete: () => subscriber.complete(),
      });
      subscriber.add(work);
      if (subscriber.closed) return;
      subscriber.add(
        cut$.subscribe({
          error: (error: unknown) => {
            work.unsubscribe();
            subscriber.error(error);
          },
        }),
      );
    });
}
