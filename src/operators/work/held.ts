import { Observable, type Subscription } from 'rxjs';

/**
 * Hands over the subscription before the source begins. What `subscribe` returns comes too late for a source that
 * begins with work that may end it: an observer of that work may already want to unsubscribe.
 *
 * ```
 * source          (a)--b--|
 * held(hold)      (a)--b--|    hold is called, then a is emitted
 * ```
 */
export const held =
  (hold: (subscription: Subscription) => void) =>
  <T>(source: Observable<T>): Observable<T> =>
    new Observable((subscriber) => {
      hold(subscriber);
      source.subscribe(subscriber);
    });
