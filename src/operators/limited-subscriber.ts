import { Subscriber } from 'rxjs';
import type { Expiry } from './expiry.ts';

/** Follows a source until a deadline overtakes it with an error. */
export class LimitedSubscriber<T> extends Subscriber<T> {
  /** To be set once the source is subscribed to: what settles synchronously needs no timer. */
  deadline: Expiry | undefined;
  readonly #subscriber: Subscriber<T>;

  constructor(subscriber: Subscriber<T>) {
    // RxJS's operators have subscribers of their own, behind a function that it does not export.
    // oxlint-disable-next-line typescript/no-deprecated
    super(subscriber);
    this.#subscriber = subscriber;
  }

  override unsubscribe(): void {
    if (this.closed) return;
    try {
      super.unsubscribe();
    } finally {
      this.deadline?.cancel();
    }
  }

  /** The source is unsubscribed first and the error told after that, so that the signal of an attempt is aborted before what follows it can start. */
  overtake(error: unknown): void {
    try {
      this.unsubscribe();
    } finally {
      this.#subscriber.error(error);
    }
  }
}
