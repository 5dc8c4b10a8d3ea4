import { Subject, from, isObservable, map, type Observable, type ObservableNotification } from 'rxjs';
import type { FailureNotification, GuidanceRule, RecoveryDecision } from '../contract/recovery.ts';
import type { Runtime } from '../contract/runtime.ts';
import { answerWithin } from '../operators/timing/answer-within.ts';
import { isPromiseLike } from '../operators/work/output.ts';
import { QuietStream } from '../operators/work/quiet-stream.ts';
import { checkNumber, given, positiveDuration } from '../policy/check.ts';
import type { Experience } from '../policy/recovery/experience.ts';
import { objection, type Objection } from '../policy/recovery/objection.ts';
import { decideRecovery } from '../policy/recovery/decide.ts';

/**
 * Decides about a failure, at once or later. It can refuse more than the rules do, and never less: what it cannot order
 * (a retry that or `safetyCritical` forbids, an alternative that gets round a refusal or repeats what may have
 * been done), and what it does not decide, the default decides.
 */
export type ErrorHandler = (
  failure: FailureNotification,
) => RecoveryDecision | Observable<RecoveryDecision> | PromiseLike<RecoveryDecision>;

/** How failures are decided about. */
export interface ErrorHandlerOptions {
  /**
   * Decides in place of the default. One that throws, answers nothing or too late is replaced by the default. Default:
   * `decideRecovery`.
   */
  readonly errorHandler?: ErrorHandler;
  /** How long an answer that comes later is waited for. Default 5,000. */
  readonly errorHandlerTimeoutMs?: number;
  /** Rules that forbid, force or rank strategies. Default: none. */
  readonly guidance?: readonly GuidanceRule[];
  /**
   * Remembers what was tried on similar failures, of `createExperience`; the default decision heeds it.
   * Default: none.
   */
  readonly experience?: Experience;
}

const ANSWER_TIMEOUT_MS = 5_000;

/** What turns failures into decisions. */
export interface Recovery {
  readonly failures$: Observable<FailureNotification>;
  /** Emits a failure about which there is nothing to decide. */
  tell(failure: FailureNotification): void;
  /**
   * For an answer that comes later: `renewed` gives the same failure at that time, and `timer` is what bounds the wait.
   */
  recover(
    failure: FailureNotification,
    renewed: () => FailureNotification,
    timer: Runtime,
  ): RecoveryDecision | Observable<RecoveryDecision>;
}

/** What of an error the rules are asked about. */
const DECISIVE = ['kind', 'executed', 'uncertain', 'retryAfterMs'] as const;

/**
 * A failure as a host is shown it. What the host wrote into it would otherwise be what the rules are asked about
 * afterwards: a handler could so order what they forbid.
 */
const sealed = (failure: FailureNotification): FailureNotification => {
  const { error } = failure;
  try {
    for (const name of DECISIVE)
      Object.defineProperty(error, name, { value: error[name], writable: false, configurable: false });
  } catch {
    // The error is frozen already, or is a proxy, whose maker could give any answer anyway.
  }
  return Object.freeze({ ...failure, alternatives: Object.freeze([...failure.alternatives]) });
};

/** What the default decides, where the host's decision cannot stand. */
const overruled = (failure: FailureNotification, { rule, because }: Objection): RecoveryDecision => {
  const decision = decideRecovery(failure);
  const by = rule === undefined ? '' : ` by ${rule}`;
  return { ...decision, reason: `${decision.reason} (the error handler was overruled${by}: ${because})` };
};

const checked = (failure: FailureNotification, decision: RecoveryDecision): RecoveryDecision => {
  const objected = objection(failure, decision);
  if (objected !== undefined) return overruled(failure, objected);
  // The host may leave out the code; it decided.
  return { ...decision, code: decision.code ?? 'guidance', reason: decision.reason ?? '' };
};

/** @param renewed the failure as it stands when the answer comes */
const answered = (
  answer: ObservableNotification<RecoveryDecision> | undefined,
  renewed: FailureNotification,
  timeoutMs: number,
): RecoveryDecision => {
  if (answer === undefined) return overruled(renewed, { because: `it did not answer within ${timeoutMs} ms` });
  if (answer.kind === 'N') return checked(renewed, answer.value);
  return overruled(renewed, { because: answer.kind === 'E' ? 'it threw' : 'it answered nothing' });
};

/**
 * The error handler of a layer: emits each failure on `failures$`, and asks the host, or the pure default, what to do.
 * A host's handler that throws, answers nothing, too late or what it cannot order is overruled by the default, which
 * says so in its reason, and by which rule.
 */
export function createRecovery(options: ErrorHandlerOptions, runtime: Runtime): Recovery {
  const { errorHandler, errorHandlerTimeoutMs = ANSWER_TIMEOUT_MS, guidance, experience } = options;
  checkNumber('errorHandlerTimeoutMs', errorHandlerTimeoutMs, positiveDuration);
  const failures$ = new Subject<FailureNotification>();
  return {
    failures$: new QuietStream((subscriber) => failures$.subscribe(subscriber)),
    tell: (failure) => failures$.next(failure),
    recover: (told, renewed, timer) => {
      const evidence = experience?.evidence(told.toolName, told.error, runtime.now(), () => runtime.random());
      const known = given({ guidance, experience: evidence });
      const failure = sealed({ ...told, ...known });
      if (failures$.observed) failures$.next(failure);
      if (errorHandler === undefined) return decideRecovery(failure);
      try {
        const answer = errorHandler(failure);
        if (!isObservable(answer) && !isPromiseLike(answer)) return checked(failure, answer);
        return answerWithin(from(answer), errorHandlerTimeoutMs, timer).pipe(
          map((notification) => answered(notification, { ...renewed(), ...known }, errorHandlerTimeoutMs)),
        );
      } catch {
        return overruled(failure, { because: 'it threw' });
      }
    },
  };
}
