import {
  EMPTY,
  NEVER,
  catchError,
  concatMap,
  defer,
  filter,
  finalize,
  map,
  merge,
  of,
  repeat,
  switchMap,
  take,
  tap,
  throwError,
  type Observable,
} from 'rxjs';
import type { ApprovalAnswer, ApprovalRecord, ApprovalRequest } from '../contract/gate/approval.ts';
import type { ToolOutput } from '../contract/output.ts';
import { isToolExecutionError } from '../contract/tool-error.ts';
import { toToolExecutionError } from '../errors/tool.ts';
import type { RegisterPlace, RegisterTerms } from '../operators/dedupe/register.ts';
import { expiry } from '../operators/timing/expiry.ts';
import { oneAtATime } from '../operators/timing/one-at-a-time.ts';
import { fromOutput } from '../operators/work/output.ts';
import { tornDownAlone } from '../operators/work/torn-down-alone.ts';
import { readAnswer, requestOf } from '../policy/gate/approval.ts';
import { EXPIRED, expired, malformed, refusedBy, unasked } from './refusals.ts';
import type { GateSite, GateSubject } from '../layer/gate-port.ts';
import { answered, closed, stood, type Question, type Stood } from './questions.ts';

/** How one call waits for a person. */
export interface Wait {
  readonly site: GateSite;
  readonly subject: GateSubject;
  readonly question: Question;
  /** Asks a person here; without it the store is where answers come from. */
  readonly ask: ((request: ApprovalRequest) => ToolOutput<ApprovalAnswer>) | undefined;
  /** The question stands when its call is canceled. */
  readonly keeps: boolean;
  readonly pollMs: number;
  /** Whether the call may get what another came to, and run nothing. */
  readonly isKnown: () => Observable<boolean>;
  /** The question that was told last in the trace, and what became of it. */
  readonly told: { id?: string; step?: string; sinceMs?: number };
}

const termsOf = ({ dedupe, runtime }: GateSite): RegisterTerms => ({
  store: () => dedupe.store(),
  runtime: runtime.background ?? runtime,
  storeTimeoutMs: dedupe.storeTimeoutMs,
});

/** Tells a step of a question once, whoever looks at it how often. */
const tell = (
  { site, subject, told }: Wait,
  { id, cause, by, reason }: ApprovalRecord,
  step: 'asked' | 'approved' | 'denied' | 'expired' | 'withdrawn',
): void => {
  if (told.id === id && told.step === step) return;
  const nowMs = site.runtime.now();
  if (told.id !== id) told.sinceMs = nowMs;
  Object.assign(told, { id, step });
  subject.context.emit({
    type: 'approval',
    step,
    approvalId: id,
    cause,
    ...(step === 'asked' && subject.context.site.time && { holdsTurn: true as const }),
    ...(step === 'asked' ? {} : { waitedMs: nowMs - (told.sinceMs ?? nowMs) }),
    ...(by === undefined || step === 'asked' ? {} : { by }),
    ...(reason === undefined || step === 'asked' ? {} : { message: reason }),
  });
};

/** Asks the host's person, and puts what they say into the store. Emits once it is there; completes where they pass. */
const person = (wait: Wait, record: ApprovalRecord): Observable<unknown> => {
  const { ask, site, question } = wait;
  if (ask === undefined) return EMPTY;
  return defer(() => fromOutput<unknown>(ask(requestOf(record)))).pipe(
    tornDownAlone,
    take(1),
    catchError((error: unknown) => throwError(() => unasked(toToolExecutionError(error)))),
    map((given) => readAnswer(given)),
    concatMap((answer) =>
      answer === undefined ? throwError(malformed) : answered(termsOf(site), question.place, record.id, answer),
    ),
  );
};

/** Emits when the question may stand otherwise: the store says so, or it is time to look. */
const hints = ({ site, question, pollMs }: Wait): Observable<unknown> => {
  const { dedupe, runtime } = site;
  const poll$ = (runtime.background ?? runtime).after(pollMs).pipe(repeat());
  return merge(
    defer(() => dedupe.store().changes?.(question.place.key) ?? NEVER),
    poll$,
  );
};

/** People take minutes, and a store may be gone for some of them: it is asked again. */
const untilItAnswers = (error: unknown): Observable<never> => {
  if (isToolExecutionError(error) && error.kind === 'store_unavailable' && error.classification !== 'permanent')
    return EMPTY;
  throw error;
};

/** Waits while the question stands as it does; emits how it stands otherwise. Errors when its time is over. */
const otherwise = (wait: Wait, record: ApprovalRecord, leftMs: number): Observable<Stood> => {
  const { site, question } = wait;
  const over$ = expiry(leftMs, site.runtime).pipe(
    concatMap(() => {
      tell(wait, record, 'expired');
      return throwError(() => expired(question.ttlMs));
    }),
  );
  return merge(
    over$,
    merge(person(wait, record), hints(wait)).pipe(
      oneAtATime(() => stood(termsOf(site), question, record).pipe(catchError(untilItAnswers))),
    ),
  ).pipe(
    filter(({ standing }) => standing.act !== 'wait' || standing.record.id !== record.id),
    take(1),
  );
};

const followed = (
  wait: Wait,
  { standing, leftMs }: Stood,
  asking: { record?: ApprovalRecord },
): Observable<ApprovalRecord | undefined> => {
  if (standing.act === 'gone') {
    delete asking.record;
    return wait.isKnown().pipe(switchMap((known) => (known ? of(undefined) : asked(wait, asking))));
  }
  const { record } = standing;
  if (standing.act === 'wait') {
    Object.assign(asking, { record });
    tell(wait, record, 'asked');
    return otherwise(wait, record, leftMs).pipe(switchMap((next) => followed(wait, next, asking)));
  }
  delete asking.record;
  if (standing.act === 'pass') {
    tell(wait, record, 'approved');
    return of(record);
  }
  tell(wait, record, standing.because);
  return throwError(() =>
    standing.because === 'expired' ? expired(wait.question.ttlMs) : refusedBy(record, wait.site.trace.redactor.text),
  );
};

const asked = (wait: Wait, asking: { record?: ApprovalRecord }): Observable<ApprovalRecord | undefined> =>
  stood(termsOf(wait.site), wait.question, undefined).pipe(switchMap((first) => followed(wait, first, asking)));

/** Nobody waits for the answer any more: it is not to be used by a later call. Not waited for. */
const withdraw = (wait: Wait, record: ApprovalRecord): void => {
  const { site, question } = wait;
  tell(wait, record, 'withdrawn');
  const over = site.dedupe.writing();
  closed(termsOf(site), question.place, record, 'withdrawn').subscribe({ error: over, complete: over });
};

/**
 * Waits until a person has approved what a call is about to do: here, or anywhere, through the store. Unsubscribing
 * calls it off; what a layer that is closed, or a turn that goes on elsewhere, has asked still stands. Where another
 * call has used the answer, this one may get what that came to.
 *
 * ```
 * asked           a
 * person          ---------y
 * approvedFor     ---------(g|)
 * time to live    ---------------!     nobody answers: an error that says so
 * ```
 */
export const approvedFor = (wait: Wait): Observable<ApprovalRecord | undefined> =>
  defer(() => {
    const asking: { record?: ApprovalRecord } = {};
    const { context } = wait.subject;
    return asked(wait, asking).pipe(
      tap({
        error: (error: unknown) => {
          // A lost store says nothing about the question, which still stands; what has expired is over.
          if (!isToolExecutionError(error)) return;
          if (error.kind === 'store_unavailable' || error.code === EXPIRED) delete asking.record;
        },
      }),
      finalize(() => {
        if (asking.record !== undefined && !wait.keeps && !context.layer.closed && !context.isHandedOver)
          withdraw(wait, asking.record);
      }),
    );
  });

/** Uses an approval up; emits how long it would have counted yet, and `undefined` where it was not there any more. */
export const usedUp = (site: GateSite, place: RegisterPlace, record: ApprovalRecord): Observable<number | undefined> =>
  closed(termsOf(site), place, record, 'used');
