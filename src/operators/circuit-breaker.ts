import { Subscriber, type Observable } from 'rxjs';
import { ToolExecutionError } from '../contract/tool-error.ts';
import { toToolExecutionError } from '../entrance/tool.ts';
import { breakerOutcome } from '../policy/breaker-outcome.ts';
import type { BreakerOutcome } from '../policy/breaker.ts';
import { classify } from '../policy/classify.ts';
import type { Breaker, GivenPermit } from './breaker.ts';
import { DirectStream } from './direct-stream.ts';

/** The error of a call that was not admitted. */
export const circuitOpenError = (retryAfterMs: number): ToolExecutionError =>
  new ToolExecutionError('circuit_open', 'The circuit breaker is open; the call was not made', { retryAfterMs });

type Outcome = (error: unknown) => BreakerOutcome;

/** A classifier that throws says nothing about the dependency. */
const meaningOf = (error: unknown, outcome: Outcome): BreakerOutcome => {
  try {
    return outcome(error);
  } catch {
    return 'ignored';
  }
};

/** Tells a permit how its attempt failed. */
export const settlePermit = (permit: GivenPermit | undefined, outcome: BreakerOutcome, error: unknown): void => {
  if (outcome === 'failure') permit?.failure(error);
  else if (outcome === 'success') permit?.success();
  else permit?.ignore();
};

const settle = (permit: GivenPermit, error: unknown, outcome: Outcome | undefined): void => {
  if (outcome !== undefined) return settlePermit(permit, meaningOf(error, outcome), error);
  const typed = toToolExecutionError(error);
  // An error without a hint need not be read once more for one.
  settlePermit(permit, breakerOutcome(typed, classify(typed).classification), typed.retryAfterMs === undefined ? undefined : error);
};

/** Tells a permit how its attempt ended. */
class PermittedSubscriber<T> extends Subscriber<T> {
  readonly #subscriber: Subscriber<T>;
  readonly #permit: GivenPermit;
  readonly #outcome: Outcome | undefined;
  #gaveValue = false;

  constructor(subscriber: Subscriber<T>, permit: GivenPermit, outcome: Outcome | undefined) {
    // Not chained to it here: where the subscriber has gone, this would be unsubscribed before it is made.
    // RxJS's operators have subscribers of their own, behind a function that it does not export.
    // oxlint-disable-next-line typescript/no-deprecated
    super();
    this.#subscriber = subscriber;
    this.#permit = permit;
    this.#outcome = outcome;
  }

  protected override _next(value: T): void {
    this.#gaveValue = true;
    this.#subscriber.next(value);
  }

  protected override _error(error: unknown): void {
    settle(this.#permit, error, this.#outcome);
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
  return <T>(source: Observable<T>): Observable<T> =>
    new DirectStream((subscriber) => {
      const permit = breaker.admit();
      if (!permit.admitted) return subscriber.error(circuitOpenError(permit.retryAfterMs));
      // Whoever heard of the breaker's change may have unsubscribed.
      if (subscriber.closed) return permit.release();
      const permitted = new PermittedSubscriber(subscriber, permit, outcome);
      subscriber.add(permitted);
      source.subscribe(permitted);
    });
}
