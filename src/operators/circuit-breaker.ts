import { Observable, tap } from 'rxjs';
import { ToolExecutionError, type ErrorReader } from '../contract/tool-error.ts';
import { breakerOutcome } from '../policy/breaker/outcome.ts';
import type { BreakerOutcome } from '../policy/breaker/reducer.ts';
import { readAsCall } from '../policy/recovery/classify.ts';
import { liveRuntime } from '../runtime.ts';
import type { Breaker } from './breaker/breaker.ts';
import type { GivenPermit } from './breaker/permit.ts';
import { refusedBy } from './breaker/refusals.ts';

/** The error of a call that a breaker did not admit. */
export const circuitOpenError = (breaker: Breaker, retryAfterMs: number): ToolExecutionError =>
  refusedBy(
    breaker,
    new ToolExecutionError('circuit_open', 'The circuit breaker is open; the call was not made', { retryAfterMs }),
  );

/** Ends a permit as its attempt's failure counts. */
export const settlePermit = (permit: GivenPermit | undefined, outcome: BreakerOutcome, error: unknown): void => {
  if (outcome === 'failure') permit?.failure(error);
  else if (outcome === 'success') permit?.success();
  else if (outcome === 'answered') permit?.answered();
  else permit?.ignore(error);
};

/** Ends a permit by the error that its attempt failed with. */
type Settle = (permit: GivenPermit, thrown: unknown) => void;

const wallNow = (): number => liveRuntime.wallNow();

const settleAsRead =
  (read: ErrorReader): Settle =>
  (permit, thrown) => {
    const { error, classification, rule } = read(thrown, wallNow);
    // One without a hint need not be read once more for it, by the breaker's own clock. A refusal has one.
    settlePermit(
      permit,
      breakerOutcome(error, classification, rule),
      error.retryAfterMs === undefined ? undefined : thrown,
    );
  };

const settleBy =
  (outcome: (error: unknown) => BreakerOutcome): Settle =>
  (permit, thrown) => {
    let meaning: BreakerOutcome;
    try {
      meaning = outcome(thrown);
    } catch {
      // A classifier that throws says nothing about the dependency.
      meaning = 'ignored';
    }
    settlePermit(permit, meaning, thrown);
  };

/**
 * Guards a stream with a breaker: each subscription asks for admission, and tells how it ended.
 *
 * ```
 * source                   --#      a transient failure, the fifth in a row
 * circuitBreaker(breaker)  --#
 * breaker.state$           c-o      closed, and open from that instant on
 * the next subscription       #     `circuit_open` at once; the source is not subscribed to
 * ```
 *
 * Emits what the source emits. An error of the source passes through, once it is counted: transient is a failure,
 * permanent but answered by the dependency a success, and what never reached it says nothing. Completion is a success.
 * Unsubscribing gives the permit back uncounted, except after a value: `firstValueFrom` unsubscribes before completion,
 * so then it is a success.
 *
 * @param breaker of `createBreaker`; share one among the calls to one dependency
 * @param outcome what an error means to the breaker, when the default does not fit
 * @throws (as the stream's error) `circuit_open` with `retryAfterMs`, at once and without subscribing to the source,
 * when not admitted
 *
 * @example
 * fromFetch('https://example.com').pipe(circuitBreaker(breaker), retryBackoff());
 */
export function circuitBreaker(
  breaker: Breaker,
  outcome?: (error: unknown) => BreakerOutcome,
): <T>(source: Observable<T>) => Observable<T> {
  return circuitBreakerFor(readAsCall, breaker, outcome);
}

/** `circuitBreaker` with a reader of errors as an argument: `spillway/mini` gives one without tables. */
export function circuitBreakerFor(
  read: ErrorReader,
  breaker: Breaker,
  outcome?: (error: unknown) => BreakerOutcome,
): <T>(source: Observable<T>) => Observable<T> {
  const settle = outcome === undefined ? settleAsRead(read) : settleBy(outcome);
  return <T>(source: Observable<T>): Observable<T> =>
    new Observable((subscriber) => {
      const permit = breaker.admit();
      if (!permit.admitted) return subscriber.error(circuitOpenError(breaker, permit.retryAfterMs));
      // A listener of the breaker's change may have unsubscribed this stream.
      if (subscriber.closed) return permit.release();
      let standing: 'silent' | 'answered' | 'settled' = 'silent';
      const settling = (tell: () => void): void => {
        standing = 'settled';
        tell();
      };
      source
        .pipe(
          tap({
            next: () => {
              standing = 'answered';
              permit.progress?.();
            },
            error: (error: unknown) => settling(() => settle(permit, error)),
            complete: () => settling(() => permit.success()),
          }),
        )
        .subscribe(subscriber);
      // After the source's own teardown, and also when that throws.
      return () => {
        if (standing === 'answered') permit.success();
        else if (standing === 'silent') permit.release();
      };
    });
}
