import { Observable, Subject, catchError, defaultIfEmpty, map, merge, of, take } from 'rxjs';
import type { FailureNotification, GuidanceRule, RecoveryDecision } from '../contract/recovery.ts';
import type { Runtime } from '../contract/runtime.ts';
import { expiry } from '../operators/expiry.ts';
import { checkNumber, positiveDuration } from '../policy/check.ts';
import type { Experience } from '../policy/experience.ts';
import { decideRecovery } from '../policy/recovery.ts';

/** Decides about a failure, at once or later. What it cannot decide, the default decides. */
export type ErrorHandler = (failure: FailureNotification) => RecoveryDecision | Observable<RecoveryDecision>;

export interface ErrorHandlerOptions {
  readonly errorHandler?: ErrorHandler;
  /** How long an answer that comes later is waited for. Default 5,000. */
  readonly errorHandlerTimeoutMs?: number;
  readonly guidance?: readonly GuidanceRule[];
  readonly experience?: Experience;
}

const ANSWER_TIMEOUT_MS = 5_000;

/** Why a decision of the host cannot be followed. Its limits are those that keep a call from running for ever. */
const objection = (failure: FailureNotification, decision: RecoveryDecision): string | undefined => {
  const { attempt, maxAttempts, turnRemainingMs, alternatives, error } = failure;
  const { strategy, delayMs = 0, toolName } = decision ?? {};
  switch (strategy) {
    case 'retry':
      if (error.kind === 'canceled') return 'the call was canceled';
      if (attempt >= maxAttempts) return 'no attempts are left';
      if (!(delayMs >= 0 && delayMs < turnRemainingMs)) return 'its delay does not fit the time left';
      return undefined;
    case 'alternative':
      return toolName !== undefined && alternatives.includes(toolName) ? undefined : 'it names no alternative that is left';
    case 'partial':
    case 'escalate':
    case 'fail':
      return undefined;
    default:
      return 'it is no decision';
  }
};

/** What turns failures into decisions. */
export interface Recovery {
  readonly failures$: Observable<FailureNotification>;
  recover(failure: FailureNotification): RecoveryDecision | Observable<RecoveryDecision>;
}

/**
 * The error handler of a layer: tells each failure to those who listen, and asks the host, or the pure default, what to do.
 * A host's handler that throws, answers nothing, too late or what cannot be done is overruled by the default, which says so in its reason.
 */
export function createRecovery(options: ErrorHandlerOptions, runtime: Runtime): Recovery {
  const { errorHandler, errorHandlerTimeoutMs = ANSWER_TIMEOUT_MS, guidance, experience } = options;
  checkNumber('errorHandlerTimeoutMs', errorHandlerTimeoutMs, positiveDuration);
  const failures$ = new Subject<FailureNotification>();

  const overruled = (failure: FailureNotification, because: string): RecoveryDecision => {
    const decision = decideRecovery(failure);
    return { ...decision, reason: `${decision.reason} (the error handler was overruled: ${because})` };
  };
  const checked = (failure: FailureNotification, decision: RecoveryDecision): RecoveryDecision => {
    const because = objection(failure, decision);
    return because === undefined ? decision : overruled(failure, because);
  };
  const later = (failure: FailureNotification, answer$: Observable<RecoveryDecision>): Observable<RecoveryDecision> => {
    const timer = runtime.background ?? runtime;
    return merge(
      answer$.pipe(
        take(1),
        map((decision) => checked(failure, decision)),
        defaultIfEmpty(overruled(failure, 'it answered nothing')),
        catchError(() => of(overruled(failure, 'it threw'))),
      ),
      expiry(errorHandlerTimeoutMs, timer).pipe(map(() => overruled(failure, `it did not answer within ${errorHandlerTimeoutMs} ms`))),
    ).pipe(take(1));
  };
  return {
    failures$: failures$.asObservable(),
    recover: (told) => {
      const evidence = experience?.evidence(told.toolName, told.error, runtime.wallNow(), () => runtime.random());
      const failure = { ...told, ...(guidance === undefined ? {} : { guidance }), ...(evidence === undefined ? {} : { experience: evidence }) };
      if (failures$.observed) failures$.next(failure);
      if (errorHandler === undefined) return decideRecovery(failure);
      try {
        const answer = errorHandler(failure);
        return answer instanceof Observable ? later(failure, answer) : checked(failure, answer);
      } catch {
        return overruled(failure, 'it threw');
      }
    },
  };
}
