import { Observable, type Observer, type Operator, type Subscriber, type Subscription, type TeardownLogic } from 'rxjs';

/** An observer whose own failures reach `drop` and nobody else. */
const isolated = <T>({ next, error, complete }: Partial<Observer<T>>, drop: () => void): Observer<T> => {
  const quietly =
    <A extends unknown[]>(tell: ((...told: A) => void) | null | undefined) =>
    (...told: A): void => {
      try {
        tell?.(...told);
      } catch {
        drop();
      }
    };
  return { next: quietly(next), error: error ? quietly(error) : drop, complete: quietly(complete) };
};

/** RxJS's own subscribers, of a pipe, handle what their consumers throw. */
const isSubscriber = (observer: object): boolean => 'isStopped' in observer;

/**
 * A stream for those who only watch, and what is piped from it. A subscriber that throws loses that value and nothing
 * else happens: RxJS would throw it again on a timer, and so end the process that is watched.
 */
export class QuietStream<T> extends Observable<T> {
  readonly #drop: () => void;

  constructor(subscribe: (subscriber: Subscriber<T>) => TeardownLogic, drop: () => void = () => undefined) {
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

  override subscribe(
    observerOrNext?: Partial<Observer<T>> | ((value: T) => void) | null,
    error?: ((error: unknown) => void) | null,
    complete?: (() => void) | null,
  ): Subscription {
    if (typeof observerOrNext === 'object' && observerOrNext !== null) {
      if (isSubscriber(observerOrNext)) return super.subscribe(observerOrNext);
      // Methods of the observer are called on it.
      const observer = observerOrNext;
      const bound = {
        next: observer.next?.bind(observer),
        error: observer.error?.bind(observer),
        complete: observer.complete?.bind(observer),
      };
      return super.subscribe(isolated(bound as Partial<Observer<T>>, this.#drop));
    }
    return super.subscribe(isolated({ next: observerOrNext, error, complete } as Partial<Observer<T>>, this.#drop));
  }
}

/** Where such a stream comes from. As a `Subject`, whose `next` makes a closure and an iterator for each value. */
export class QuietSource<T> {
  /** Replaced and never changed: whoever comes or goes while a value is delivered does so for the next one. */
  #subscribers: ReadonlyArray<Subscriber<T>> = [];
  #completed = false;

  get observed(): boolean {
    return this.#subscribers.length > 0;
  }

  add(subscriber: Subscriber<T>): void {
    if (this.#completed) return subscriber.complete();
    this.#subscribers = [...this.#subscribers, subscriber];
    subscriber.add(() => {
      this.#subscribers = this.#subscribers.filter((other) => other !== subscriber);
    });
  }

  next(value: T): void {
    const subscribers = this.#subscribers;
    // No iterator: it is asked for each event of each call.
    for (let place = 0; place < subscribers.length; place++) subscribers[place]?.next(value);
  }

  complete(): void {
    const subscribers = this.#subscribers;
    this.#completed = true;
    this.#subscribers = [];
    for (const subscriber of subscribers) subscriber.complete();
  }
}
