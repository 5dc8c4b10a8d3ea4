import { NEVER, catchError, defer, map, of, switchMap, tap, type Observable } from 'rxjs';
import type { RecoveryDecision } from '../contract/recovery.ts';
import { ToolExecutionError } from '../contract/tool-error.ts';
import { isOf } from '../errors/structure.ts';
import { toToolExecutionError } from '../errors/tool.ts';
import type { GuardedTool } from '../layer/registry.ts';
import { noteStandIn } from '../operators/dedupe/stand-ins.ts';
import type { CallContext } from './context.ts';
import { FailedCall, asOutcome, refused } from './failure.ts';
import { storeTermsOf } from './idempotency.ts';
import { readInput } from './request.ts';
import type { CallOutcome } from './result.ts';
import { journalledAlternative } from './attempt/resumed.ts';
import { attemptsAt } from './attempt/retries.ts';

/**
 * Catches a failure. Where the decision was `alternative`, the next tool is called under its own policy and breaker,
 * and so on. Any other failure becomes a value here, at the boundary of the call.
 */
export const withAlternatives =
  (context: CallContext) =>
  (source: Observable<CallOutcome>): Observable<CallOutcome> =>
    source.pipe(
      catchError((thrown: unknown) => {
        const { strategy, toolName } = isOf(thrown, FailedCall) ? thrown.decision : NOTHING_DECIDED;
        if (strategy !== 'alternative' || toolName === undefined) return of(asOutcome(context, thrown));
        return defer(() => alternative(context, thrown as FailedCall, toolName)).pipe(withAlternatives(context));
      }),
    );

const NOTHING_DECIDED: Partial<RecoveryDecision> = {};

const alternative = (
  context: CallContext,
  { failure, untried }: FailedCall,
  toolName: string,
): Observable<CallOutcome> => {
  const { layer, site, call } = context;
  const rest = untried.slice(untried.indexOf(toolName) + 1);
  const guarded = layer.registry.get(toolName);
  if (guarded === undefined)
    return refused(context, new ToolExecutionError('unknown_tool', `No tool is named ${toolName}`), rest);
  const from = context.toolName;
  const kept$ = journalledAlternative(context, toolName, failure.error);
  context.toolName = toolName;
  context.emit({ type: 'alternative_used', from, message: 'Used alternative tool' });
  if (context.isOver) return NEVER;
  const { input, error: problem } = readInput(guarded.tool.input, call.input);
  const tried$ =
    problem === undefined
      ? noted(context, guarded, attemptsAt(context, guarded, input, rest))
      : refused(context, problem, rest);
  const outcome$ = kept$?.pipe(switchMap(() => (context.isOver ? NEVER : tried$))) ?? tried$;
  // What an earlier process had gone over to says nothing of the failure.
  const isEarlier = site.journal?.decided(call.nodeId ?? '')?.toolName === toolName;
  if (isEarlier || context.lease?.standIns.inherited === toolName) return outcome$;
  const learn = (recovered: boolean): void =>
    layer.experience?.record(
      { toolName: from, error: failure.error, tried: { strategy: 'alternative', toolName }, recovered },
      site.runtime.now(),
    );
  return outcome$.pipe(tap({ next: () => learn(true), error: () => learn(false) }));
};

/**
 * Before one begins that writes, whoever may take the key over has to be able to know of it; without that only
 * `bestEffort` runs it.
 */
const noted = (
  context: CallContext,
  { tool, effects }: GuardedTool,
  attempts$: Observable<CallOutcome>,
): Observable<CallOutcome> => {
  const { lease, call } = context;
  if (effects === 'read' || lease?.isHeld !== true || lease.standIns.noted.has(tool.name)) return attempts$;
  return noteStandIn(lease, tool.name, storeTermsOf(context)).pipe(
    map(() => attempts$),
    catchError((error: unknown) =>
      of(call.dedupeMode === 'bestEffort' ? attempts$ : refused(context, toToolExecutionError(error))),
    ),
    switchMap((then$) => (context.isOver ? NEVER : then$)),
  );
};
