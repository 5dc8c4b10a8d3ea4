import { NEVER, Observable, Subscription, catchError, defer, isObservable, map, mergeMap, of, switchMap, take, takeUntil, tap } from 'rxjs';
import type { ToolExecutionError } from '../contract/tool-error.ts';
import { held } from '../operators/held.ts';
import { withAlternatives } from './alternatives.ts';
import type { CallContext } from './call-context.ts';
import { SETTLED } from './call-state.ts';
import { callSteps, type CallStep } from './call-steps.ts';
import { endedBy } from './decide.ts';
import { asOutcome, refused } from './failed-call.ts';
import type { HookRunner } from './hooks.ts';
import { listenOutside } from './outside.ts';
import type { GuardedTool } from './registry.ts';
import type { CallOutcome } from './result.ts';
import { attemptsAt } from './tool-attempts.ts';

/**
 * One call under the whole order, outermost first:
 * `traced(switches(prepareCall(validate(dedupe(alternatives(retry(breaker(attemptHooks(attemptTimeout(provider))))))))))`.
 * Emits exactly one outcome; a tool's failure is a value in it. Unsubscribing cancels it.
 *
 * ```
 * first attempt    --#
 * second attempt       ----a|
 * call             --------o|      one outcome, recorded where it has a key
 * canceled         ----!c|         or how it was ended from outside
 * ```
 */
export const callOutcome = (context: CallContext, tool?: GuardedTool, malformed?: ToolExecutionError): Observable<CallOutcome> =>
  new Observable((subscriber) => {
    let work: Subscription | undefined;
    subscriber.add(() => {
      context.leave();
      work?.unsubscribe();
      abandon(context);
    });
    const outcome$ = defer(() => {
      begin(context);
      // Whoever heard that may have ended the call.
      return context.isOver ? NEVER : outcomeOf(context, tool, malformed);
    }).pipe(held((own) => (work = own)));
    const ended$ = endings(context).pipe(
      tap((ending) => {
        work?.unsubscribe();
        subscriber.next(told(context, endedOutcome(context, ending)));
        subscriber.complete();
      }),
    );
    outcome$
      .pipe(
        takeUntil(ended$),
        map((outcome) => told(context, outcome)),
      )
      .subscribe(subscriber);
  });

const begin = (context: CallContext): void => {
  const { layer, startedAtMs } = context;
  layer.retryBudget?.recordCall(startedAtMs);
  layer.running.add(context);
  context.events.started();
};

/** How it ends by itself. */
const outcomeOf = (context: CallContext, tool: GuardedTool | undefined, malformed: ToolExecutionError | undefined): Observable<CallOutcome> => {
  const steps = callSteps(context, tool, malformed);
  const outcome$ = isObservable(steps) ? steps.pipe(switchMap((step) => acting(context, step)), take(1)) : acting(context, steps);
  const { hooks } = context.layer;
  const concluded$ = hooks === undefined ? outcome$ : outcome$.pipe(mergeMap((outcome) => heardByHooks(hooks, context, outcome)));
  return isObservable(steps)
    ? concluded$.pipe(
        mergeMap((outcome) => recorded(context, outcome)),
        outliving(context),
      )
    : concluded$;
};

/** One step; where it fails, the failure becomes a value here. */
const acting = (context: CallContext, step: CallStep): Observable<CallOutcome> => {
  if (step.act === 'stop') return NEVER;
  if (step.act === 'end') return of(step.outcome);
  const acting$ =
    step.act === 'refuse' ? refused(context, step.error) : attemptsAt(context, step.guarded, step.input, step.alternatives).pipe(withAlternatives(context));
  return acting$.pipe(catchError((thrown: unknown) => of(asOutcome(context, thrown))));
};

/** Hooks that have not been asked about an attempt hear of the call as attempt 0, and can still block what it would replay. */
const heardByHooks = (hooks: HookRunner, context: CallContext, outcome: CallOutcome): Observable<CallOutcome> => {
  if (context.hooked) return of(outcome);
  const subject = { record: context, guarded: context.resolved, input: context.input ?? context.call.input };
  return new Observable<ToolExecutionError | undefined>((subscriber) =>
    hooks.before(subject, 0, (blocked) => {
      if (context.isOver) return;
      subscriber.next(blocked);
      subscriber.complete();
    }),
  ).pipe(
    mergeMap((blocked) => {
      if (blocked !== undefined && outcome.error === undefined) return acting(context, { act: 'refuse', error: blocked });
      hooks.after(subject, 0, { durationMs: outcome.result.durationMs, result: outcome.result });
      return of(outcome);
    }),
  );
};

/** The store remembers it, and then its caller is told: what it found, or what stands in its place. */
const recorded = (context: CallContext, outcome: CallOutcome): Observable<CallOutcome> => {
  const { seat } = context;
  if (seat === undefined) return of(outcome);
  return new Observable((subscriber) => {
    context.advance({ phase: 'concluding', outcome });
    seat.settle(outcome, (final) => {
      subscriber.next(final);
      subscriber.complete();
    });
  });
};

/** What ends it from outside: its caller, its turn, its layer, its deadline. */
const endings = (context: CallContext): Observable<ToolExecutionError> =>
  new Observable((subscriber) => {
    const outside = listenOutside(context, (ending) => context.end(ending));
    context.onEnd((ending) => subscriber.next(ending));
    return outside === undefined ? undefined : () => outside.cancel();
  });

/** Its outcome where that was there already; else what it was ended with. The store is told in the background. */
const endedOutcome = (context: CallContext, ending: ToolExecutionError): CallOutcome => {
  const { seat, state } = context;
  if (state.phase === 'concluding') {
    seat?.leave(undefined, ending.kind);
    return seat?.saying(state.outcome) ?? state.outcome;
  }
  const outcome = concludedBy(context, ending);
  // A time that is over is an outcome like any other, which is told below.
  if (ending.kind !== 'timeout') context.shadow?.cutShort('canceled');
  if (!context.hasLeft) seat?.leave(outcome.result, ending.kind);
  return outcome;
};

const concludedBy = (context: CallContext, error: ToolExecutionError): Required<CallOutcome> => {
  const { toolInUse } = context;
  return endedBy(context, error, toolInUse === undefined ? {} : { breakerState: toolInUse.breakerState });
};

/** Tells the trace how it ended for its caller. */
const told = (context: CallContext, outcome: CallOutcome): CallOutcome => {
  context.isTold = true;
  context.shadow?.end(outcome);
  context.advance(context.hasLeft ? context.state : SETTLED);
  context.events.settled(outcome.result);
  if (context.hasLeft) context.late = true;
  else close(context);
  return outcome;
};

/** Nobody waits for it any more, and no outcome is told. */
const abandon = (context: CallContext): void => {
  if (context.isTold) return;
  context.isTold = true;
  context.shadow?.cutShort('canceled');
  if (!context.hasLeft) context.seat?.leave(undefined, 'canceled');
  context.emit({ type: 'abandoned' });
  if (context.hasLeft) context.late = true;
  else close(context);
};

const close = (context: CallContext): void => {
  context.layer.running.delete(context);
  context.advance(SETTLED);
  context.ended = true;
};

/** A call that others of this process wait for, since they have its key, goes on without its caller; not beyond the layer's own end. */
const outliving =
  (context: CallContext) =>
  (source: Observable<CallOutcome>): Observable<CallOutcome> =>
    new Observable((subscriber) => {
      const work = new Subscription();
      const stop = (ending: ToolExecutionError): void => {
        if (context.state.phase === 'concluding') return;
        work.unsubscribe();
        context.seat?.leave(concludedBy(context, ending).result, ending.kind);
        close(context);
      };
      subscriber.add(() => {
        const goesOn = context.seat?.waitedFor === true && !context.layer.closed && context.state.phase !== 'concluding';
        if (goesOn) context.goOn(stop);
        else work.unsubscribe();
      });
      source.pipe(held((own) => work.add(own))).subscribe({
        next: (outcome) => {
          if (context.hasLeft) close(context);
          else subscriber.next(outcome);
        },
        error: (error: unknown) => subscriber.error(error),
        complete: () => subscriber.complete(),
      });
    });
