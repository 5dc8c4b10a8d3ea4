import { catchError, defer, filter, map, of, reduce, repeat, switchMap, takeWhile, tap, type Observable } from 'rxjs';
import type { Runtime } from '../../contract/runtime.ts';
import type { ToolExecutionError } from '../../contract/tool-error.ts';
import type { VerifyContext } from '../../contract/settle/verify.ts';
import { toToolExecutionError } from '../../errors/tool.ts';
import { answerWithin } from '../../operators/timing/answer-within.ts';
import { attemptTimeout } from '../../operators/attempt-timeout.ts';
import { abortable } from '../../operators/work/abortable.ts';
import { lastValue } from '../../operators/work/last-value.ts';
import { findingOf, unknownSince, type VerifyReport, type ReadLookup } from '../../policy/settle/finding.ts';
import { given } from '../../policy/check.ts';
import type { GuardedTool } from '../../layer/registry.ts';
import type { Caller, Layer } from '../../layer/services.ts';
import type { Verification } from '../../layer/settle/verification.ts';
import type { CallContext } from '../context.ts';
import { fit, ownInput } from '../request.ts';
import { resourceKey, traceContextOf } from './tool-context.ts';

/** The work of attempts of which the last one ended while it was in doubt. */
interface Work {
  /** Emits once nothing of it is under way that can be seen: whether all of it has stopped. */
  readonly stopped$: Observable<boolean>;
  /** What it gave after all, when nobody waited any more. */
  readonly given: { readonly value: unknown } | undefined;
}

/** What is in doubt: whether an attempt of this tool with this input took effect. */
export interface Doubt {
  readonly guarded: GuardedTool;
  readonly input: unknown;
  readonly error: ToolExecutionError;
  /** Counted at this tool; 0 for one of another process. */
  readonly attempt: number;
  /** Of this process's own attempt. */
  readonly work?: Work | undefined;
}

/** Who asks, and on whose behalf. */
export interface Inquirer {
  readonly layer: Layer;
  readonly runtime: Runtime;
  /** Of the call that is in doubt. */
  readonly callKey: string;
  readonly fence?: number | undefined;
  readonly caller: Caller;
  /** Nobody waits for the answer any more. */
  isOver(): boolean;
  /** Tells what was found. */
  tell(found: VerifyReport & { readonly durationMs: number; readonly asked: number }, doubt: Doubt): void;
}

/** The output fits the tool's schema, or nothing is known: what is told as done must be usable as such. */
const fitting = ({ tool }: GuardedTool, found: VerifyReport): VerifyReport => {
  if (found.output === undefined) return found;
  const { value, problem } = fit(tool.output, found.output.value);
  if (problem !== undefined) return unknownSince(`it is done, and its output is malformed: ${problem}`);
  return { ...found, output: { value } };
};

/** Has another tool look. It is a call like any other, under that tool's own policy. */
const lookedUp = (
  { layer, callKey, caller }: Inquirer,
  { input }: Doubt,
  lookup: ReadLookup,
): Observable<VerifyReport> => {
  if (layer.registry.get(lookup.tool)?.effects !== 'read')
    return of(unknownSince(`${lookup.tool} does not declare effects: 'read'`));
  const facts = { input, callKey };
  return layer.lookUp(lookup.tool, lookup.input(facts), caller).pipe(
    map(({ result, error }) => {
      if (error === undefined) return lookup.read(result.output?.content, facts);
      return lookup.absent(error.status)
        ? ({ finding: 'not_done' } as const)
        : unknownSince(`${lookup.tool} could not say: ${error.message}`);
    }),
  );
};

const contextOf = (
  { callKey, fence, caller: { traceparent, tracestate, baggage } }: Inquirer,
  { error, attempt }: Doubt,
  signal: AbortSignal,
): VerifyContext => ({
  callKey,
  error,
  attempt,
  signal,
  ...given({ fence }),
  ...(traceparent === undefined ? {} : { traceContext: given({ traceparent, tracestate, baggage }) }),
});

/** One question. */
const answered = (by: Inquirer, doubt: Doubt, { lookup }: Verification): Observable<VerifyReport> => {
  const { tool } = doubt.guarded;
  if (lookup !== undefined) return lookedUp(by, doubt, lookup);
  // The registry holds tools of any input; each has checked its own.
  return abortable<unknown>((signal) =>
    tool.verify?.(ownInput(doubt.input) as never, contextOf(by, doubt, signal)),
  ).pipe(lastValue, map(findingOf));
};

/** Asks until it is known, as often as the policy has it. */
const asked = (by: Inquirer, doubt: Doubt, verify: Verification, count: () => void): Observable<VerifyReport> => {
  const { runtime } = by;
  const { timeoutMs, maxAttempts, delayMs } = verify;
  return defer(() => {
    count();
    return answered(by, doubt, verify);
  }).pipe(
    attemptTimeout(timeoutMs, runtime),
    map((found) => fitting(doubt.guarded, found)),
    catchError((thrown: unknown) => of(unknownSince(`verify failed: ${toToolExecutionError(thrown).message}`))),
    repeat({ count: maxAttempts, delay: () => runtime.after(delayMs) }),
    takeWhile(({ finding }) => finding === 'unknown', true),
    reduce((_, found) => found),
  );
};

/** What the attempt itself gave, after its time: no answer from elsewhere knows better. */
const lateOf = ({ work, guarded }: Doubt): VerifyReport | undefined =>
  work?.given === undefined ? undefined : fitting(guarded, { finding: 'done', output: work.given });

/**
 * Finds out whether an attempt took effect: waits until its work has stopped, asks, and, where the answer is that it
 * did not, asks once more when an effect that is still on its way has had time to arrive. Emits what it found, once.
 *
 * ```
 * work that was aborted   ---|                 it took three more milliseconds to stop
 * verify                     --(n|)            not done
 * settleMs of 4                ----
 * verify                           --(d|)      done: a late effect
 * verification            -----------(d|)
 * ```
 */
export const verification = (by: Inquirer, doubt: Doubt, verify: Verification): Observable<VerifyReport> =>
  defer(() => {
    const { runtime } = by;
    const startedAtMs = runtime.now();
    let questions = 0;
    const ask = (): Observable<VerifyReport> => {
      const late = lateOf(doubt);
      return late === undefined ? asked(by, doubt, verify, () => questions++) : of(late);
    };
    const settled = (found: VerifyReport, hasStopped: boolean): Observable<VerifyReport> => {
      if (found.finding !== 'not_done') return of(found);
      if (found.isFinal === true) return of(lateOf(doubt) ?? found);
      if (!hasStopped) return of(unknownSince('it is not done yet, and its attempt has not stopped'));
      return verify.settleMs === 0 ? of(lateOf(doubt) ?? found) : runtime.after(verify.settleMs).pipe(switchMap(ask));
    };
    return stopped(doubt, verify, runtime).pipe(
      switchMap((hasStopped) => ask().pipe(switchMap((found) => settled(found, hasStopped)))),
      filter(() => !by.isOver()),
      tap((found) =>
        by.tell({ ...found, durationMs: Math.max(0, runtime.now() - startedAtMs), asked: questions }, doubt),
      ),
      // A listener of that event may have ended the call.
      filter(() => !by.isOver()),
    );
  });

const stopped = ({ work }: Doubt, { timeoutMs }: Verification, runtime: Runtime): Observable<boolean> =>
  work === undefined
    ? of(true)
    : answerWithin(work.stopped$, timeoutMs, runtime).pipe(map((answer) => answer?.kind === 'N' && answer.value));

/** A call that asks about its own attempts. */
export const inquirerOf = (context: CallContext): Inquirer => {
  const { layer, site, lease, call } = context;
  const { session, actor, tenant, callId: verifies } = call;
  const { traceparent, tracestate, baggage } = traceContextOf(context);
  return {
    layer,
    runtime: site.runtime,
    callKey: resourceKey(context),
    fence: lease?.fence,
    caller: given({ session, actor, tenant, traceparent, tracestate, baggage, verifies }),
    isOver: () => context.isOver,
    tell: ({ finding, message, durationMs, asked: questions }, { attempt }) => {
      context.verified = finding;
      const number = attempt === 0 ? 0 : context.attempts;
      const how = { attempt: number, finding, durationMs, asked: questions, ...given({ message }) };
      context.emit({ type: 'verified', ...how });
    },
  };
};
