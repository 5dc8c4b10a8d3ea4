import { NEVER, defer, map, of, type Observable } from 'rxjs';
import type { NodeResult, PlanNode } from '../contract/turn.ts';
import { toToolExecutionError } from '../errors/tool.ts';
import { decideCascade, hasValue } from '../policy/recovery/cascade.ts';
import type { SettledNode } from './harvest.ts';
import { journalKey } from '../operators/dedupe/turn-claim.ts';
import { calledUntilKnown } from './until-known.ts';
import { canDoWithout, inputOf, nameOf, nodeAt } from './plan-node.ts';
import type { Call } from '../call/request.ts';
import type { CallOutcome } from '../call/result.ts';
import type { TurnContext } from './context.ts';

/** A node whose needs have all settled, and how they did, in the order of `needs`. */
export interface ReadyNode {
  readonly index: number;
  readonly needs: readonly NodeResult[];
}

/**
 * A node as a stream of how it settles: its call, or what its needs lack decides. Never settles once the turn's
 * time is over.
 */
export const nodeOutcome = (turn: TurnContext, ready: ReadyNode): Observable<SettledNode> =>
  defer(() => {
    // One that waited for a place may get it from a call that the turn's end has cut short.
    if (turn.isOver) return NEVER;
    const { plan } = turn;
    const { index } = ready;
    const node = nodeAt(plan, index);
    const lacking = (plan.needs[index] ?? []).filter((_, place) => !hasValue(ready.needs[place]?.state));
    if (lacking.length === 0) return callOf(turn, ready, node);
    const cascade = decideCascade({ hasDefault: node.default !== undefined, optional: node.optional === true });
    if (cascade === 'use_default') return callOf(turn, ready, node, `Used default value for ${node.id}`);
    return of(
      skipped(
        turn,
        index,
        node,
        lacking.map((need) => nodeAt(plan, need).id),
        cascade === 'skip',
      ),
    );
  });

const skipped = (
  turn: TurnContext,
  index: number,
  node: PlanNode,
  lacking: readonly string[],
  optional: boolean,
): SettledNode => {
  const reason = `needs ${lacking.join(', ')}`;
  if (optional) return settled(turn, index, node, { state: 'skipped', reason: `Optional tool skipped: it ${reason}` });
  const message = 'Required tool skipped due to dependency failure';
  const result = settled(turn, index, node, { state: 'skipped', reason: `${message}: it ${reason}` }, message);
  turn.emit({
    type: 'escalated',
    nodeId: node.id,
    toolName: nameOf(node),
    message,
    lacking,
    choices: ['provide_the_value', 'continue_without', 'cancel'],
  });
  return result;
};

/** Tells how a node settled. */
const settled = (
  turn: TurnContext,
  index: number,
  node: PlanNode,
  how: Omit<NodeResult, 'id' | 'toolName'>,
  message?: string,
): SettledNode => {
  const result: NodeResult = { id: node.id, toolName: nameOf(node), ...how };
  turn.emit({
    type: 'node_settled',
    nodeId: node.id,
    toolName: result.toolName,
    state: how.state,
    ...(message === undefined ? undefined : { message }),
  });
  return { index, result };
};

const callOf = (
  turn: TurnContext,
  { index, needs }: ReadyNode,
  node: PlanNode,
  message?: string,
): Observable<SettledNode> => {
  // What became ready at the deadline itself stays as it is: results of that instant still count, and nothing new
  // starts.
  if (turn.layer.runtime.now() >= (turn.site.time?.endMs ?? turn.site.deadlineMs)) return NEVER;
  turn.usedDefault[index] = message !== undefined;
  turn.emit({
    type: 'node_started',
    nodeId: node.id,
    toolName: nameOf(node),
    ...(message === undefined ? undefined : { message }),
  });
  // A subscriber of that event may have ended the turn.
  if (turn.isOver) return NEVER;
  let input: unknown;
  try {
    input = inputOf(turn.plan, index, needs);
  } catch (error) {
    const reason = `The input of ${node.id} could not be made: ${toToolExecutionError(error).message}`;
    return of({
      ...settled(turn, index, node, { state: 'failed', reason }, reason),
      failure: 'invalid_parameters' as const,
    });
  }
  return calledUntilKnown(turn, () => turn.call(index, requestOf(turn, index, node, input))).pipe(
    map(({ outcome, executed }) => concluded(turn, index, node, outcome, executed)),
  );
};

const requestOf = (
  { layer, plan, identity, journal, trace }: TurnContext,
  index: number,
  node: PlanNode,
  input: unknown,
): Call => {
  const idempotencyKey = node.idempotencyKey ?? (journal === undefined ? undefined : journalKey(journal, node.id));
  return {
    callId: layer.runtime.id(),
    toolName: nameOf(node),
    input,
    nodeId: node.id,
    required: node.optional !== true && !canDoWithout(plan, index),
    dedupeMode: idempotencyKey === undefined ? 'disabled' : 'enforced',
    deadlineMs: Infinity,
    ...identity,
    ...trace,
    ...(node.needsApproval === undefined ? undefined : { needsApproval: node.needsApproval }),
    ...(node.toolCallId === undefined ? undefined : { toolCallId: node.toolCallId }),
    ...(idempotencyKey === undefined ? undefined : { idempotencyKey }),
  };
};

const concluded = (
  turn: TurnContext,
  index: number,
  node: PlanNode,
  { result, error }: CallOutcome,
  executed: boolean,
): SettledNode => {
  const counts = { executed, replayed: result.fromCache };
  if (error === undefined) {
    const usedDefault = turn.usedDefault[index] === true;
    const how = usedDefault
      ? { state: 'defaulted' as const, result, reason: `Used default value for ${node.id}` }
      : { state: 'succeeded' as const, result };
    return { ...settled(turn, index, node, how), ...counts };
  }
  const canceled = error.kind === 'canceled';
  const how = { state: canceled ? ('canceled' as const) : ('failed' as const), result, reason: error.message };
  return { ...settled(turn, index, node, how), ...counts, failure: canceled ? undefined : error.kind };
};
