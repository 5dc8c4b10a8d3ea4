import { NEVER, catchError, defer, of, switchMap, throwError, type Observable } from 'rxjs';
import type { RecoveryDecision } from '../contract/recovery.ts';
import type { ToolExecutionError } from '../contract/tool-error.ts';
import { isOf } from '../errors/structure.ts';
import { classify } from '../policy/recovery/classify.ts';
import type { CallContext } from './context.ts';
import { decide, unattempted } from './decide.ts';
import { modelTextOf } from './model-words.ts';
import { failureResult, reportOf, type CallOutcome, type Failure } from './result.ts';

/** What a call's stream errors with inside: a failure about which it is decided. At the boundary it becomes a value. */
export class FailedCall {
  readonly failure: Failure;
  readonly decision: RecoveryDecision;
  /** Alternatives that may still follow. */
  readonly untried: readonly string[];

  constructor(failure: Failure, decision: RecoveryDecision, untried: readonly string[]) {
    this.failure = failure;
    this.decision = decision;
    this.untried = untried;
  }
}

/** A failure as a value: where the error channel ends. */
export const asOutcome = (context: CallContext, thrown: unknown): CallOutcome => {
  // Anything else is a defect of ours, which must not look like a tool's failure.
  if (!isOf(thrown, FailedCall)) throw thrown;
  return {
    result: failureResult(context.history, thrown.failure, modelTextOf(context, thrown.failure)),
    error: thrown.failure.error,
  };
};

/** A failure before any attempt at a tool: decided like any other, but never tried again. */
export const refused = (
  context: CallContext,
  error: ToolExecutionError,
  alternatives: readonly string[] = [],
): Observable<never> =>
  defer(() => {
    const { classification, rule } = classify(error);
    context.emit({ type: 'rejected', error: reportOf(error), classification, rule });
    if (context.isOver) return NEVER;
    const failure: Failure = { error, classification };
    return decide(context, failure, { circumstances: { ...unattempted, maxAttempts: 0, alternatives } }).pipe(
      switchMap((decision) => {
        // A refusal does not end a row of retries, so the result does not say `retry_exhausted`.
        const final = decision.code === 'attempts_exhausted' ? failure : { ...failure, code: decision.code };
        return throwError(() => new FailedCall(final, decision, alternatives));
      }),
    );
  });

/** A call that is refused, as the outcome that its caller gets. */
export const refusedCall = (context: CallContext, error: ToolExecutionError): Observable<CallOutcome> =>
  refused(context, error).pipe(catchError((thrown: unknown) => of(asOutcome(context, thrown))));
