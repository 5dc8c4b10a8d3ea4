import { Observable, Subscriber, type TeardownLogic } from 'rxjs';

/** Overtakes a source with an error. */
export type Overtake = (error: unknown) => void;

/**
 * The source, until it is overtaken by an error. The source is unsubscribed first and the error told after that, so that the signal
 * of an attempt is aborted before what follows it can start.
 *
 * @param begin called before the source is subscribed to; what it gives is called once that is done, unless the source has settled by then,
 * and gives what is torn down with the stream
 */
export const overtaken = <T>(source: Observable<T>, begin: () => (overtake: Overtake) => TeardownLogic): Observable<T> =>
  new Observable((subscriber) => {
    const watch = begin();
    // The attempt has a subscription of its own. RxJS's operators have the same, behind a function that it does not export.
    // oxlint-disable-next-line typescript/no-deprecated
    const attempt = new Subscriber<T>(subscriber);
    source.subscribe(attempt);
    // What settles synchronously needs no timer.
    if (subscriber.closed) return undefined;
    return watch((error) => {
      try {
        attempt.unsubscribe();
      } finally {
        subscriber.error(error);
      }
    });
  });
