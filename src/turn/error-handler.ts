import { Subject, from, isObservable, map, materialize, merge, take, type Observable } from 'rxjs';
import type { FailureNotification, GuidanceRule, RecoveryDecision } from '../contract/recovery.ts';
import type { Runtime } from '../contract/runtime.ts';
import { expiry } from '../operators/expiry.ts';
import { isPromiseLike } from '../operators/output.ts';
import { QuietStream } from '../operators/quiet-stream.ts';
import { checkNumber, positiveDuration } from '../policy/check.ts';
import type { Experience } from '../policy/experience.ts';
import { decideRecovery } from '../policy/recovery.ts';

/** Decides about a failure, at once or later. What it cannot decide, the default decides. */
export type ErrorHandler = (failure: FailureNotification) => RecoveryDecision | Observable<RecoveryDecision> | PromiseLike<RecoveryDecision>;

export interface ErrorHandlerOptions {
  readonly errorHandler?: ErrorHandler;
  /** How long an answer that comes later is waited for. Default 5,000. */
  readonly errorHandlerTimeoutMs?: number;
  readonly guidance?: readonly GuidanceRule[];
  readonly experience?: Experience;
}

const ANSWER_TIMEOUT_MS = 5_000;

/** Why a decision of the host cannot be followed. Its limits are those that keep a call from running for ever, and all calls from multiplying an outage. */
const objection = (failure: FailureNotification, decision: RecoveryDecision): string | undefined => {
  const { attempt, maxAttempts, elapsedMs, maxTotalTimeMs, turnRemainingMs, budgetAvailable, alternatives, error } = failure;
  const { strategy, delayMs = 0, toolName } = decision ?? {};
  switch (strategy) {
    case 'retry':
      if (error.kind === 'canceled') return 'the call was canceled';
      if (attempt >= maxAttempts) return 'no attempts are left';
      if (!budgetAvailable) return 'the retries that all calls share are used up';
      if (typeof delayMs !== 'number' || !(delayMs >= 0 && delayMs < turnRemainingMs && elapsedMs + delayMs < maxTotalTimeMs)) return 'its delay does not fit the time left';
      return undefined;
    case 'alternative':
      if (turnRemainingMs <= 0) return 'the time is over';
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
  /** Tells a failure about which there is nothing to decide. */
  tell(failure: FailureNotification): void;
  /** For an answer that comes later: `renewed` gives the same failure at that time, and `timer` is what bounds the wait. */
  recover(failure: FailureNotification, renewed: () => FailureNotification, timer: Runtime): RecoveryDecision | Observable<RecoveryDecision>;
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
    // The host may leave out the code; it decided.
    return because === undefined ? { ...decision, code: decision.code ?? 'guidance', reason: decision.reason ?? '' } : overruled(failure, because);
  };
  const later = (renewed: () => FailureNotification, answer$: Observable<RecoveryDecision>, timer: Runtime): Observable<RecoveryDecision> => {
    const answered$ = answer$.pipe(take(1), materialize());
    return merge(answered$, expiry(errorHandlerTimeoutMs, timer).pipe(map(() => undefined))).pipe(
      take(1),
      map((answer) => {
        if (answer === undefined) return overruled(renewed(), `it did not answer within ${errorHandlerTimeoutMs} ms`);
        if (answer.kind === 'N') return checked(renewed(), answer.value);
        return overruled(renewed(), answer.kind === 'E' ? 'it threw' : 'it answered nothing');
      }),
    );
  };
  return {
    failures$: new QuietStream((subscriber) => failures$.subscribe(subscriber)),
    tell: (failure) => failures$.next(failure),
    recover: (told, renewed, timer) => {
      const evidence = experience?.evidence(told.toolName, told.error, runtime.now(), () => runtime.random());
      const known = { ...(guidance === undefined ? {} : { guidance }), ...(evidence === undefined ? {} : { experience: evidence }) };
      const failure = { ...told, ...known };
      if (failures$.observed) failures$.next(failure);
      if (errorHandler === undefined) return decideRecovery(failure);
      try {
        const answer = errorHandler(failure);
        if (!isObservable(answer) && !isPromiseLike(answer)) return checked(failure, answer);
        return later(() => ({ ...renewed(), ...known }), from(answer), timer);
      } catch {
        return overruled(failure, 'it threw');
      }
    },
  };
}
