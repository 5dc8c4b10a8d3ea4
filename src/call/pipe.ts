import {
  NEVER,
  Observable,
  catchError,
  defer,
  filter,
  isObservable,
  map,
  mergeMap,
  of,
  switchMap,
  take,
  takeUntil,
  type Subscription,
} from 'rxjs';
import type { ToolExecutionError } from '../contract/tool-error.ts';
import { toToolExecutionError } from '../errors/tool.ts';
import { held } from '../operators/work/held.ts';
import { withAlternatives } from './alternatives.ts';
import type { CallContext, CallSite } from './context.ts';
import type { Call } from './request.ts';
import { settlingDoubt } from './attempt/doubt.ts';
import { approvedFirst } from './attempt/gates.ts';
import { SETTLED } from './state.ts';
import { callSteps, type CallStep } from './steps.ts';
import { endedBy } from './decide.ts';
import { refused, refusedCall } from './failure.ts';
import type { HookRunner } from '../layer/hooks.ts';
import { idempotentCall, sayingRecord } from './idempotency.ts';
import { listenForCancellation } from './cancellation.ts';
import type { GuardedTool } from '../layer/registry.ts';
import type { Layer } from '../layer/services.ts';
import type { CallOutcome } from './result.ts';
import { breakerAtStart } from './attempt/admission.ts';
import { attemptsAt } from './attempt/retries.ts';

/** A call of a layer's that has not begun: `outcome$` is `callOutcome` of its context. */
export interface MadeCall {
  readonly context: CallContext;
  readonly outcome$: Observable<CallOutcome>;
}

/**
 * A layer as turns and undoings have it. Its own copy of the package makes their calls, also where their plan is of
 * another copy: who waits for a key in this process is known to one copy.
 */
export interface CallingLayer extends Layer {
  readonly makeCall: (site: CallSite, call: Call, guarded?: GuardedTool, malformed?: ToolExecutionError) => MadeCall;
}

/**
 * One call under the whole order, outermost first: `traced(switches(prepareCall(validate(approval(dedupe(`
 * `alternatives(retry(verify(breaker(attemptHooks(attemptTimeout(provider))))))))))))`. The first four are `begin` and
 * `callSteps`, the next three `acting`; those of an attempt are in `attemptsAt`.
 * Emits exactly one outcome; a tool's failure is a value in it. Unsubscribing cancels it.
 *
 * ```
 * first attempt      --#
 * backoff of 2 ms      --
 * second attempt         ----(a|)
 * call               --------(s|)     one outcome: success, with the output of the second attempt
 * ```
 *
 * ```
 * first attempt      --#
 * second attempt         ----(a|)
 * caller aborts      ------!
 * call               ------(c|)       canceled, once the second attempt was aborted
 * ```
 */
export const callOutcome = (
  context: CallContext,
  tool?: GuardedTool,
  malformed?: ToolExecutionError,
): Observable<CallOutcome> =>
  new Observable((subscriber) => {
    let work: Subscription | undefined;
    subscriber.add(() => {
      context.leave();
      work?.unsubscribe();
      abandon(context);
    });
    const outcome$ = defer(() => {
      begin(context, tool);
      // A subscriber of that event may have ended the call.
      return context.isOver ? NEVER : outcomeOf(context, tool, malformed);
    }).pipe(held((own) => (work = own)));
    // `takeUntil` would tell the end before the work is taken down.
    const ended$ = endings(context, (ending) => {
      work?.unsubscribe();
      subscriber.next(delivered(context, endedOutcome(context, ending)));
      subscriber.complete();
    });
    outcome$
      .pipe(
        takeUntil(ended$),
        map((outcome) => delivered(context, outcome)),
      )
      .subscribe(subscriber);
  });

const begin = (context: CallContext, tool: GuardedTool | undefined): void => {
  const { layer, startedAtMs, call } = context;
  layer.retryBudget?.recordCall(startedAtMs);
  layer.running.add(context);
  // Nothing is looked up for an event that nobody hears.
  if (!context.observed) return;
  const guarded = tool ?? layer.registry.get(call.toolName);
  context.mode = guarded === undefined ? 'on' : layer.switches.modeOf(guarded.mode);
  const breaker = guarded === undefined ? undefined : breakerAtStart(context, guarded);
  context.events.started(breaker, context.mode, guarded === undefined ? undefined : layer.inForce.introduce(guarded));
};

/** The call's outcome where nothing from outside ends the call. */
const outcomeOf = (
  context: CallContext,
  tool: GuardedTool | undefined,
  malformed: ToolExecutionError | undefined,
): Observable<CallOutcome> => {
  const step = callSteps(context, tool, malformed);
  const outcome$ = isObservable(step)
    ? step.pipe(
        switchMap((known) => acting(context, known)),
        take(1),
      )
    : acting(context, step);
  const { hooks } = context.layer;
  return hooks === undefined ? outcome$ : outcome$.pipe(mergeMap((outcome) => shownToHooks(hooks, context, outcome)));
};

/**
 * `approval(doubt(dedupe(alternatives(journal(retry(...))))))`; failures travel in the error channel up to
 * `withAlternatives`.
 */
const acting = (context: CallContext, step: CallStep): Observable<CallOutcome> =>
  step.act === 'refuse'
    ? refusedCall(context, step.error)
    : attemptsAt(context, step.guarded, step.input, step.alternatives).pipe(
        begunInJournal(context, step.guarded),
        withAlternatives(context),
        idempotentCall(context, step.guarded, step.key),
        settlingDoubt(context, step.guarded, step.input),
        approvedFirst(context, step.guarded, step.input, step.key),
      );

/** Where the turn can undo what the call does, the call is noted in the turn's journal before its first attempt. */
const begunInJournal =
  (context: CallContext, guarded: GuardedTool) =>
  (source: Observable<CallOutcome>): Observable<CallOutcome> => {
    const { undoLog } = context.site;
    if (undoLog === undefined) return source;
    return defer(() => {
      if (context.bare) {
        undoLog.passes(context, guarded);
        return source;
      }
      const kept$ = undoLog.begins(context, guarded);
      if (kept$ === undefined) return source;
      return kept$.pipe(
        take(1),
        map(() => source),
        catchError((error: unknown) => of(refused(context, toToolExecutionError(error)))),
        switchMap((then$) => (context.isOver ? NEVER : then$)),
      );
    });
  };

/** Shows a call without an attempt to the hooks, as attempt 0: they can still block what it would replay. */
const shownToHooks = (hooks: HookRunner, context: CallContext, outcome: CallOutcome): Observable<CallOutcome> => {
  if (context.hooked) return of(outcome);
  const subject = { context, guarded: context.resolved, input: context.input ?? context.call.input };
  return hooks.before(subject, 0).pipe(
    filter(() => !context.isOver),
    mergeMap((blocked) => {
      if (blocked !== undefined && outcome.error === undefined) return refusedCall(context, blocked);
      hooks.after(subject, 0, { durationMs: outcome.result.durationMs, result: outcome.result });
      return of(outcome);
    }),
  );
};

/**
 * Emits when the call's caller, its turn, its layer or its deadline ends it. `ended` is given the error first.
 */
const endings = (context: CallContext, ended: (ending: ToolExecutionError) => void): Observable<void> =>
  new Observable((subscriber) => {
    const listening = listenForCancellation(context, (ending) => context.end(ending));
    context.onEnd((ending) => {
      ended(ending);
      subscriber.next();
    });
    return listening === undefined ? undefined : () => listening.cancel();
  });

/** The call's own outcome where it had one by then; else what the call was ended with. */
const endedOutcome = (context: CallContext, ending: ToolExecutionError): CallOutcome => {
  const { state } = context;
  if (state.phase === 'concluding') return sayingRecord(context, state.outcome);
  const outcome = endedBy(context, ending);
  // The shadow hears of a timeout from `delivered`, as of any other outcome.
  if (ending.kind !== 'timeout') context.shadow?.cutShort('canceled');
  return outcome;
};

/** The outcome as the caller gets it: from here on the call is settled, and its last event is out. */
const delivered = (context: CallContext, outcome: CallOutcome): CallOutcome => {
  context.isDelivered = true;
  context.shadow?.end(outcome);
  context.advance(context.hasLeft ? context.state : SETTLED);
  context.events.settled(outcome.result);
  context.site.undoLog?.ends(context, outcome);
  if (context.hasLeft) context.late = true;
  else context.close();
  return outcome;
};

/** Ends a call whose caller has left before it got an outcome. */
const abandon = (context: CallContext): void => {
  if (context.isDelivered) return;
  context.isDelivered = true;
  context.shadow?.cutShort('canceled');
  context.emit({ type: 'abandoned' });
  context.site.undoLog?.ends(context);
  if (context.hasLeft) context.late = true;
  else context.close();
};
