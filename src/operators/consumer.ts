import { Subscriber, throwError, type TeardownLogic, type Unsubscribable } from 'rxjs';

/** RxJS's own way with what nobody handles: it throws on a timer, or as its `config` says. */
const unhandled = (thrown: unknown): void => void throwError(() => thrown).subscribe();

/** What may be told: an observer, or the functions that `subscribe` was given. */
interface Told<T> {
  next?: ((value: T) => void) | null | undefined;
  error?: ((error: unknown) => void) | null | undefined;
  complete?: (() => void) | null | undefined;
}

/** Whoever has gone is not kept by what goes on without him. */
const NOBODY: Told<unknown> = {};

/**
 * Tells an observer that is no subscriber, as RxJS's own would: what it throws is nobody's but its own. One object and not two, and what ends with
 * it is in a field: RxJS's list for that is made, and walked by an iterator, for each subscription.
 */
export class Consumer<T> extends Subscriber<T> {
  #observer: Told<T>;
  readonly #report: (thrown: unknown) => void;
  /** What is unsubscribed with it. */
  inner: Unsubscribable | undefined;

  /** @param report hears what the observer throws, and of an error that it has no function for */
  constructor(observer: Told<T>, report: (thrown: unknown) => void = unhandled) {
    // RxJS's operators have subscribers of their own, behind a function that it does not export.
    // oxlint-disable-next-line typescript/no-deprecated
    super();
    this.#observer = observer;
    this.#report = report;
  }

  protected override _next(value: T): void {
    try {
      const observer = this.#observer;
      // As RxJS asks: callers without types give `false` for none.
      if (observer.next) observer.next(value);
    } catch (thrown) {
      this.#report(thrown);
    }
  }

  protected override _error(error: unknown): void {
    try {
      const observer = this.#observer;
      if (observer.error) observer.error(error);
      else this.#report(error);
    } catch (thrown) {
      this.#report(thrown);
    } finally {
      this.unsubscribe();
    }
  }

  protected override _complete(): void {
    try {
      const observer = this.#observer;
      if (observer.complete) observer.complete();
    } catch (thrown) {
      this.#report(thrown);
    } finally {
      this.unsubscribe();
    }
  }

  /** From the second on it is RxJS's list after all: it knows their order, and what becomes of those that throw. */
  override add(teardown: TeardownLogic): void {
    const { inner } = this;
    this.inner = undefined;
    if (inner !== undefined) super.add(inner);
    super.add(teardown);
  }

  override unsubscribe(): void {
    const { inner } = this;
    this.#observer = NOBODY;
    if (this.closed || inner === undefined) return super.unsubscribe();
    this.inner = undefined;
    // Finds this closed, as it would from the list.
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
