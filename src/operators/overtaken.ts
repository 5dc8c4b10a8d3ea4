import { Observable, map, type Subscription, type TeardownLogic } from 'rxjs';

/**
 * The source, until `watch` overtakes it with an error. The source is unsubscribed first and the error told after that, so that the signal
 * of an attempt is aborted before what follows it can start.
 *
 * @param watch called when the source has been subscribed to and has not settled yet; what it gives is torn down with the stream
 */
export const overtaken = <T>(source: Observable<T>, watch: (overtake: (error: unknown) => void) => TeardownLogic): Observable<T> =>
  new Observable((subscriber) => {
    let attempt: Subscription | undefined;
    new Observable<T>((own) => {
      attempt = own;
      return source.subscribe(own);
    })
      // Gives the attempt a subscription of its own.
      .pipe(map((value) => value))
      .subscribe(subscriber);
    // What settles synchronously needs no timer.
    if (subscriber.closed) return undefined;
    return watch((error) => {
      try {
        attempt?.unsubscribe();
      } finally {
        subscriber.error(error);
      }
    });
  });
