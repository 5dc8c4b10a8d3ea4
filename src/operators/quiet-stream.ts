import { Observable, type Observer, type Operator, type Subscriber, type Subscription } from 'rxjs';

/**
 * A stream for those who only watch, and what is piped from it. A subscriber that throws loses that value and nothing else happens: RxJS would
 * throw it again on a timer, and so end the process that is watched.
 */
export class QuietStream<T> extends Observable<T> {
  readonly #drop: () => void;

  constructor(subscribe: (subscriber: Subscriber<T>) => Subscription, drop: () => void = () => undefined) {
    super(subscribe);
    this.#drop = drop;
  }

  // What RxJS 7 applies every operator with; there is no other place to follow a pipe.
  // oxlint-disable-next-line typescript/no-deprecated
  override lift<R>(operator?: Operator<T, R>): Observable<R> {
    // oxlint-disable-next-line typescript/no-deprecated
    const lifted = super.lift(operator);
    return new QuietStream<R>((subscriber) => lifted.subscribe(subscriber), this.#drop);
  }

  override subscribe(observerOrNext?: Partial<Observer<T>> | ((value: T) => void) | null, error?: ((error: unknown) => void) | null, complete?: (() => void) | null): Subscription {
    // RxJS's own subscribers, of a pipe, handle what their consumers throw.
    if (typeof observerOrNext === 'object' && observerOrNext !== null && 'isStopped' in observerOrNext) return super.subscribe(observerOrNext);
    const observer = typeof observerOrNext === 'object' && observerOrNext !== null ? observerOrNext : { next: observerOrNext, error, complete };
    const guarded = (tell: () => void): void => {
      try {
        tell();
      } catch {
        this.#drop();
      }
    };
    return super.subscribe({
      next: (event) => guarded(() => observer.next?.(event)),
      error: (thrown: unknown) =>
        guarded(() => {
          if (typeof observer.error !== 'function') throw thrown;
          observer.error(thrown);
        }),
      complete: () => guarded(() => observer.complete?.()),
    });
  }
}
