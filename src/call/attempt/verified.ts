import { NEVER, catchError, switchMap, throwError, of, type Observable } from 'rxjs';
import { ToolExecutionError } from '../../contract/tool-error.ts';
import { isOf } from '../../errors/structure.ts';
import { FailedCall } from '../failure.ts';
import type { CallOutcome, SeenFailure } from '../result.ts';
import type { ToolExecution } from './execution.ts';
import { inquirerOf, verification } from './verification.ts';

/** A failed attempt that has been counted, and about which nothing is decided yet. */
export class CountedFailure {
  readonly failure: SeenFailure;
  /** How long the attempt took. */
  readonly latencyMs: number;

  constructor(failure: SeenFailure, latencyMs: number) {
    this.failure = failure;
    this.latencyMs = latencyMs;
  }
}

/** The error of what is known to have done nothing: certain, and the words are still true. */
export const certain = (error: ToolExecutionError): ToolExecutionError => {
  const { kind, message, code, status, retryAfterMs, classification, details, safeMessage, cause, stack } = error;
  const facts = { code, status, retryAfterMs, classification, details, safeMessage, cause };
  const known = new ToolExecutionError(kind, message, { ...facts, executed: true, uncertain: false });
  return Object.defineProperty(known, 'stack', { value: stack, configurable: true, writable: true });
};

/**
 * Asks whether an attempt that ended uncertain took effect, before anything is decided about it. Done: it is a success.
 * Not done: its failure is certain. Not known: it stays as it is.
 *
 * ```
 * attempt       ----#             its answer is lost
 * verify            --(d|)        it took effect
 * verified(...) ------(s|)        success, with the output that verify gave
 * ```
 */
export const verified =
  (execution: ToolExecution) =>
  (source: Observable<CallOutcome>): Observable<CallOutcome> => {
    const { context, guarded } = execution;
    const { verify } = guarded;
    if (verify === undefined) return source;
    return source.pipe(
      catchError((thrown: unknown): Observable<CallOutcome> => {
        if (isOf(thrown, FailedCall)) return throwError(() => thrown);
        const latencyMs = execution.attemptMs;
        const { work } = execution;
        const isAttempt = execution.isAttempting;
        const failure = execution.fail(thrown);
        if (context.isOver) return NEVER;
        const { error } = failure;
        if (!isAttempt || !error.uncertain) return throwError(() => new CountedFailure(failure, latencyMs));
        const doubt = { guarded, input: execution.input, error, attempt: execution.ownAttempts, work };
        return verification(inquirerOf(context), doubt, verify).pipe(
          switchMap(({ finding, output }) => {
            if (finding === 'done') return of(execution.foundDone(output?.value));
            if (finding !== 'not_done') return throwError(() => new CountedFailure(failure, latencyMs));
            execution.foundUndone();
            return throwError(() => new CountedFailure({ ...failure, error: certain(error) }, latencyMs));
          }),
        );
      }),
    );
  };
