import { Subscriber, type Observable } from 'rxjs';
import { ToolExecutionError, type ErrorReader } from '../contract/tool-error.ts';
import { breakerOutcome } from '../policy/breaker-outcome.ts';
import type { BreakerOutcome } from '../policy/breaker.ts';
import { readAsCall } from '../policy/classify.ts';
import { liveRuntime } from '../runtime.ts';
import type { Breaker, GivenPermit } from './breaker.ts';
import { DirectStream } from './direct-stream.ts';

/** The error of a call that was not admitted. */
export const circuitOpenError = (retryAfterMs: number): ToolExecutionError =>
  new ToolExecutionError('circuit_open', 'The circuit breaker is open; the call was not made', { retryAfterMs });

/** Tells a permit how its attempt failed. */
export const settlePermit = (permit: GivenPermit | undefined, outcome: BreakerOutcome, error: unknown): void => {
  if (outcome === 'failure') permit?.failure(error);
  else if (outcome === 'success') permit?.success();
  else permit?.ignore();
};

/** Tells a permit of the error that its attempt failed with. */
type Settle = (permit: GivenPermit, thrown: unknown) => void;

const wallNow = (): number => liveRuntime.wallNow();

const settleAsRead = (read: ErrorReader): Settle => (permit, thrown) => {
  const { error, classification } = read(thrown, wallNow);
  // One without a hint need not be read once more for it, by the breaker's own clock.
  settlePermit(permit, breakerOutcome(error, classification), error.retryAfterMs === undefined ? undefined : thrown);
};

const settleBy = (outcome: (error: unknown) => BreakerOutcome): Settle => (permit, thrown) => {
  let meaning: BreakerOutcome;
  try {
    meaning = outcome(thrown);
  } catch {
    // A classifier that throws says nothing about the dependency.
    meaning = 'ignored';
  }
  settlePermit(permit, meaning, thrown);
};

/** Tells a permit how its attempt ended. */
class PermittedSubscriber<T> extends Subscriber<T> {
  readonly #subscriber: Subscriber<T>;
  readonly #permit: GivenPermit;
  readonly #settle: Settle;
  #gaveValue = false;

  constructor(subscriber: Subscriber<T>, permit: GivenPermit, settle: Settle) {
    // Not chained to it here: where the subscriber has gone, this would be unsubscribed before it is made.
    // RxJS's operators have subscribers of their own, behind a function that it does not export.
    // oxlint-disable-next-line typescript/no-deprecated
    super();
    this.#subscriber = subscriber;
    this.#permit = permit;
    this.#settle = settle;
  }

  protected override _next(value: T): void {
    this.#gaveValue = true;
    this.#subscriber.next(value);
  }

  protected override _error(error: unknown): void {
    this.#settle(this.#permit, error);
    try {
      this.#subscriber.error(error);
    } finally {
      this.unsubscribe();
    }
  }

  protected override _complete(): void {
    this.#permit.success();
    try {
      this.#subscriber.complete();
    } finally {
      this.unsubscribe();
    }
  }

  override unsubscribe(): void {
    if (this.closed) return;
    try {
      super.unsubscribe();
    } finally {
      // Says nothing where the permit has ended.
      if (this.#gaveValue) this.#permit.success();
      else this.#permit.release();
    }
  }
}

/**
 * Guards a stream with a breaker: each subscription asks for admission, and tells how it ended.
 *
 * Emits what the source emits. An error of the source passes through, once it is counted: transient is a failure, permanent but answered by
 * the dependency a success, and what never reached it says nothing. Completion is a success. Unsubscribing gives the permit back uncounted,
 * except after a value: `firstValueFrom` unsubscribes before completion, so then it is a success.
 *
 * @param breaker of `createBreaker`; share one among the calls to one dependency
 * @param outcome what an error means to the breaker, when the default does not fit
 * @throws (as the stream's error) `circuit_open` with `retryAfterMs`, at once and without subscribing to the source, when not admitted
 *
 * @example
 * fromFetch('https://example.com').pipe(circuitBreaker(breaker), retryBackoff());
 */
export function circuitBreaker(breaker: Breaker, outcome?: (error: unknown) => BreakerOutcome): <T>(source: Observable<T>) => Observable<T> {
  return circuitBreakerReading(readAsCall, breaker, outcome);
}

/** The same, for who reads errors in another way. */
export function circuitBreakerReading(read: ErrorReader, breaker: Breaker, outcome?: (error: unknown) => BreakerOutcome): <T>(source: Observable<T>) => Observable<T> {
  const settle = outcome === undefined ? settleAsRead(read) : settleBy(outcome);
  return <T>(source: Observable<T>): Observable<T> =>
    new DirectStream((subscriber) => {
      const permit = breaker.admit();
      if (!permit.admitted) return subscriber.error(circuitOpenError(permit.retryAfterMs));
      // Whoever heard of the breaker's change may have unsubscribed.
      if (subscriber.closed) return permit.release();
      const permitted = new PermittedSubscriber(subscriber, permit, settle);
      subscriber.add(permitted);
      source.subscribe(permitted);
    });
}
