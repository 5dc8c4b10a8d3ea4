import { Subscriber, throwError, type Unsubscribable } from 'rxjs';

/** RxJS's own way with what nobody handles: it throws on a timer, or as its `config` says. */
const report = (thrown: unknown): void => void throwError(() => thrown).subscribe();

/** What may be told: an observer, or the functions that `subscribe` was given. */
interface Told<T> {
  next?: ((value: T) => void) | null | undefined;
  error?: ((error: unknown) => void) | null | undefined;
  complete?: (() => void) | null | undefined;
}

/**
 * Tells an observer that is no subscriber, as RxJS's own would: what it throws is nobody's but its own. One object and not two, and what ends with
 * it is in a field: RxJS's list for that is made, and walked by an iterator, for each subscription.
 */
export class Consumer<T> extends Subscriber<T> {
  readonly #observer: Told<T>;
  /** What is unsubscribed with it. */
  inner: Unsubscribable | undefined;

  constructor(observer: Told<T>) {
    // RxJS's operators have subscribers of their own, behind a function that it does not export.
    // oxlint-disable-next-line typescript/no-deprecated
    super();
    this.#observer = observer;
  }

  protected override _next(value: T): void {
    try {
      this.#observer.next?.(value);
    } catch (thrown) {
      report(thrown);
    }
  }

  protected override _error(error: unknown): void {
    try {
      if (typeof this.#observer.error === 'function') this.#observer.error(error);
      else report(error);
    } catch (thrown) {
      report(thrown);
    } finally {
      this.unsubscribe();
    }
  }

  protected override _complete(): void {
    try {
      this.#observer.complete?.();
    } catch (thrown) {
      report(thrown);
    } finally {
      this.unsubscribe();
    }
  }

  override unsubscribe(): void {
    const { inner } = this;
    if (this.closed || inner === undefined) return super.unsubscribe();
    this.inner = undefined;
    // What was begun ends before what was added after it, and finds this closed.
    this.closed = true;
    // Nothing else stops it before its teardowns run.
    // oxlint-disable-next-line typescript/no-deprecated
    this.isStopped = true;
    try {
      inner.unsubscribe();
    } finally {
      this.closed = false;
      super.unsubscribe();
    }
  }
}

/** Has `inner` unsubscribed with `subscriber`. */
export const endWith = (subscriber: Subscriber<unknown>, inner: Unsubscribable): void => {
  if (subscriber instanceof Consumer && subscriber.inner === undefined && !subscriber.closed) subscriber.inner = inner;
  else subscriber.add(inner);
};
