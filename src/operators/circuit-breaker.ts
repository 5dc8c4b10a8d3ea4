import { defer, tap, throwError, type Observable } from 'rxjs';
import { ToolExecutionError } from '../contract/tool-error.ts';
import { toToolExecutionError } from '../entrance/tool.ts';
import { breakerOutcome } from '../policy/breaker-outcome.ts';
import type { BreakerOutcome } from '../policy/breaker.ts';
import { classify } from '../policy/classify.ts';
import type { Breaker } from './breaker.ts';

/** The error of a call that was not admitted. */
export const circuitOpenError = (retryAfterMs: number): ToolExecutionError =>
  new ToolExecutionError('circuit_open', 'The circuit breaker is open; the call was not made', { retryAfterMs });

const outcomeOf = (error: unknown): BreakerOutcome => {
  const typed = toToolExecutionError(error);
  return breakerOutcome(typed, classify(typed).classification);
};

/** A classifier that throws says nothing about the dependency. */
const meaningOf = (error: unknown, outcome: (error: unknown) => BreakerOutcome): BreakerOutcome => {
  try {
    return outcome(error);
  } catch {
    return 'ignored';
  }
};

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
export function circuitBreaker(breaker: Breaker, outcome: (error: unknown) => BreakerOutcome = outcomeOf): <T>(source: Observable<T>) => Observable<T> {
  return <T>(source: Observable<T>): Observable<T> =>
    defer(() => {
      const permit = breaker.admit();
      if (!permit.admitted) {
        const { retryAfterMs } = permit;
        return throwError(() => circuitOpenError(retryAfterMs));
      }
      let gaveValue = false;
      const settle = (error: unknown): void => {
        const ended = meaningOf(error, outcome);
        if (ended === 'failure') permit.failure(error);
        else if (ended === 'success') permit.success();
        else permit.ignore();
      };
      return source.pipe(
        tap({
          next: () => (gaveValue = true),
          error: settle,
          complete: () => permit.success(),
          unsubscribe: () => (gaveValue ? permit.success() : permit.release()),
        }),
      );
    });
}
