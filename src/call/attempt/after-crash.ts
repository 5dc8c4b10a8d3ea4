import { EMPTY, NEVER, catchError, concat, defer, map, of, switchMap, throwError, type Observable } from 'rxjs';
import type { JournalledDecision } from '../../contract/fleet/journal.ts';
import { ToolExecutionError } from '../../contract/tool-error.ts';
import { toToolExecutionError } from '../../errors/tool.ts';
import type { Layer } from '../../layer/services.ts';
import { LAPSED } from '../../operators/dedupe/key-refusals.ts';
import { inheritedStandIn, withoutStandIns } from '../../operators/dedupe/stand-ins.ts';
import { FailedCall, refused } from '../failure.ts';
import { isSafetyCritical, storeTermsOf } from '../idempotency.ts';
import type { CallOutcome } from '../result.ts';
import type { ToolExecution } from './execution.ts';
import { inquirerOf, verification } from './verification.ts';
import { given } from '../../policy/check.ts';

const lapsed = (): ToolExecutionError =>
  new ToolExecutionError('duplicate_in_flight', `${LAPSED}; ask again under the same key`, {
    uncertain: true,
  });

/**
 * In a turn of a fleet nobody looks at each call, and who asks again under a key does not know of an alternative: what
 * may have taken effect is for people to find out.
 */
const unasked = (toolName: string, holder: string): ToolExecutionError =>
  new ToolExecutionError(
    'duplicate_in_flight',
    `The ${holder} that ran ${toolName} was given up, and the tool may have taken effect: it is not run again. ` +
      'Find out; verify, or enforcesKey where its resource checks the key, lets such a turn go on',
    { classification: 'permanent', uncertain: true },
  );

/** The store does not say what an earlier process had begun. */
const unsaid = ({ kind, message, classification }: ToolExecutionError): ToolExecutionError =>
  new ToolExecutionError(kind, message, given({ uncertain: true, classification }));

/** Whether it may run although it is not known what another process did under its key. */
const mayRepeat = ({ context, guarded }: ToolExecution): boolean => {
  const isCritical = [guarded, context.resolved ?? guarded].some((tool) => isSafetyCritical(context, tool));
  const isKnown = guarded.effects === 'read' || guarded.enforcesKey;
  return !isCritical && (isKnown || context.call.hints?.expectedRetrySafe === true);
};

const wasBegun = (execution: ToolExecution, attempts$: Observable<CallOutcome>, isStandIn: boolean) =>
  defer((): Observable<CallOutcome> => {
    const { context, guarded, input } = execution;
    const { verify, tool, effects } = guarded;
    context.uncertain ||= effects !== 'read';
    if (verify === undefined) {
      // Elsewhere who asks again under the key has decided that.
      const isMoved = context.site.journal !== undefined;
      if (mayRepeat(execution) || !(isMoved || isStandIn)) return attempts$;
      return refused(context, unasked(tool.name, isMoved ? 'worker' : 'process'));
    }
    return verification(inquirerOf(context), { guarded, input, error: lapsed(), attempt: 0 }, verify).pipe(
      switchMap(({ finding, output }) => {
        if (context.isOver) return NEVER;
        context.verified = finding;
        if (finding === 'done') return of(execution.foundDone(output?.value));
        if (finding === 'not_done') execution.foundUndone();
        return finding === 'not_done' || mayRepeat(execution) ? attempts$ : refused(context, lapsed());
      }),
    );
  });

const writingAmong = ({ registry }: Layer, alternatives: readonly string[]): readonly string[] =>
  alternatives.filter((name) => registry.get(name)?.effects !== 'read');

/** Attempts for which something is asked first from now on: that is none of their time. */
const startingLater = (execution: ToolExecution, attempts$: Observable<CallOutcome>): Observable<CallOutcome> => {
  const { runtime } = execution.context.site;
  const askedAtMs = runtime.now();
  return defer(() => {
    execution.startedAtMs += runtime.now() - askedAtMs;
    return attempts$;
  });
};

/**
 * A retry that was decided before the turn moved. Where the tool may not be repeated by what is known of it here, as by
 * another version, it is found out first what its attempts did.
 */
export const retriedHere = (
  execution: ToolExecution,
  { uncertain = false }: JournalledDecision,
  attempts$: Observable<CallOutcome>,
): Observable<CallOutcome> =>
  uncertain && execution.guarded.effects !== 'read' && !mayRepeat(execution)
    ? wasBegun(execution, startingLater(execution, attempts$), false)
    : attempts$;

/** A call that has its key anew, once nothing is left of what was begun in an earlier life of the key. */
export const afresh = (execution: ToolExecution, attempts$: Observable<CallOutcome>): Observable<CallOutcome> => {
  const { context, alternatives } = execution;
  const { lease, layer, call, toolName, attempts } = context;
  if (lease?.isHeld !== true || lease.tookOver || toolName !== call.toolName || attempts > 0) return attempts$;
  const writing = writingAmong(layer, alternatives);
  if (writing.length === 0) return attempts$;
  const cleared$ = withoutStandIns(lease, writing, storeTermsOf(context)).pipe(
    catchError((thrown: unknown) =>
      call.dedupeMode === 'bestEffort' ? EMPTY : refused(context, toToolExecutionError(thrown)),
    ),
  );
  const begun$ = startingLater(execution, attempts$);
  return concat(
    cleared$,
    defer(() => (context.isOver ? NEVER : begun$)),
  );
};

/** An earlier process had gone over to it, since this tool had failed for certain: it is gone on with. */
const goesOnAt = ({ alternatives }: ToolExecution, toolName: string, error = lapsed()): FailedCall =>
  new FailedCall(
    { error, classification: 'transient' },
    { strategy: 'alternative', toolName, code: 'uncertain_mutation', reason: 'an earlier process had begun it' },
    alternatives,
  );

/**
 * A call that had gone over to an alternative before its turn moved here goes on there, and with the one that writes
 * and was begun, where the journal does not know of that yet.
 */
export const goneOver = (execution: ToolExecution, earlier: JournalledDecision): Observable<CallOutcome> =>
  defer(() => {
    const { context, alternatives } = execution;
    const { lease, layer } = context;
    const { toolName, kind, message, delayLeftMs = 0 } = earlier;
    const at = (begun = toolName): Observable<never> =>
      throwError(() => goesOnAt(execution, begun, new ToolExecutionError(kind, message)));
    const writing = writingAmong(layer, alternatives);
    // While a delay was running nothing was under way.
    if (lease?.tookOver !== true || writing.length === 0 || delayLeftMs > 0) return at();
    // A note of one that comes before it is of a failure that was certain: the journal knows better.
    const later = writing.filter((name) => alternatives.indexOf(name) > alternatives.indexOf(toolName));
    return inheritedStandIn(lease, later, storeTermsOf(context)).pipe(
      map((begun) => at(begun)),
      catchError((thrown: unknown) => of(refused(context, unsaid(toToolExecutionError(thrown))))),
      switchMap((then$) => (context.isOver ? NEVER : then$)),
    );
  });

/**
 * A call that has taken its key over from one whose lease passed, as when its process died: whether that took effect is
 * asked before anything runs. Done: the call succeeds by it. Not done: it runs. Not known: it is refused, unless its
 * resource checks the key. One that cannot be asked runs again; in a turn of a fleet, which asks for that by itself,
 * only one that only reads, or whose resource checks the key. The same holds of an alternative that the other process
 * had begun, and then of that alone: the tool before it had failed for certain.
 *
 * ```
 * verify        --(n|)               not done
 * attempts        ----(a|)
 * afterCrash    ------(a|)
 * ```
 */
export const afterCrash = (execution: ToolExecution, begun$: Observable<CallOutcome>): Observable<CallOutcome> =>
  defer(() => {
    const { context, alternatives } = execution;
    const { lease, layer, call, toolName } = context;
    const attempts$ = startingLater(execution, begun$);
    if (toolName !== call.toolName)
      return toolName === lease?.standIns.inherited ? wasBegun(execution, attempts$, true) : attempts$;
    const writing = writingAmong(layer, alternatives);
    if (writing.length === 0) return wasBegun(execution, attempts$, false);
    // Without its store nothing tells whether the other process was at one of these.
    if (lease === undefined) return refused(context, lapsed());
    return inheritedStandIn(lease, writing, storeTermsOf(context)).pipe(
      map((standIn) =>
        standIn === undefined ? wasBegun(execution, attempts$, false) : throwError(() => goesOnAt(execution, standIn)),
      ),
      catchError((thrown: unknown) => of(refused(context, unsaid(toToolExecutionError(thrown))))),
      switchMap((then$) => (context.isOver ? NEVER : then$)),
    );
  });
