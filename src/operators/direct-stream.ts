import { Observable, Subscriber, config, type Observer, type Subscription } from 'rxjs';
import { Consumer } from './consumer.ts';

/**
 * A stream that hands a subscriber straight to what begins it. Between operators RxJS would wrap that in a function, look for an operator of its own
 * and keep what it gave, which here is nothing: with four streams in a row that is a fifth of a call.
 */
export class DirectStream<T> extends Observable<T> {
  readonly begin: (subscriber: Subscriber<T>) => void;

  /** @param begin begins a subscription; what is to end with it is added to the subscriber */
  constructor(begin: (subscriber: Subscriber<T>) => void) {
    super(begin);
    this.begin = begin;
  }

  override subscribe(observerOrNext?: Partial<Observer<T>> | ((value: T) => void) | null, error?: ((error: unknown) => void) | null, complete?: (() => void) | null): Subscription {
    if (observerOrNext instanceof Subscriber) return into(this, observerOrNext as Subscriber<T>);
    // Older ways of RxJS, for those who switched them on.
    // oxlint-disable-next-line typescript/no-deprecated
    if (config.useDeprecatedNextContext || config.useDeprecatedSynchronousErrorHandling) return super.subscribe(observerOrNext as (value: T) => void, error, complete);
    if (typeof observerOrNext !== 'object' || observerOrNext === null) return into(this, new Consumer({ next: observerOrNext, error, complete }));
    // A Subject, a subscriber of another copy of RxJS, or one like it.
    if ('isStopped' in observerOrNext || 'add' in observerOrNext) return super.subscribe(observerOrNext);
    return into(this, new Consumer(observerOrNext));
  }
}

/** No method of the stream: a private one would be noted on each that is made, and be none of a Proxy's. */
const into = <T>(stream: DirectStream<T>, subscriber: Subscriber<T>): Subscription => {
  try {
    stream.begin(subscriber);
  } catch (thrown) {
    subscriber.error(thrown);
  }
  return subscriber;
};
