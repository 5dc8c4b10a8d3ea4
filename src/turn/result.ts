import type { ToolErrorKind } from '../contract/error-kind.ts';
import type { NodeResult, Plan, TurnResult } from '../contract/turn.ts';
import { hasValue, turnStatus } from '../policy/recovery/cascade.ts';
import { summarize } from './summary.ts';

/** The outputs by id. `__proto__` is an id like any other. */
const valuesOf = (nodes: readonly NodeResult[]): Record<string, unknown> => {
  const values: Record<string, unknown> = {};
  for (const { id, state, result } of nodes) {
    if (!hasValue(state)) continue;
    const value = result?.output?.content;
    if (id === '__proto__')
      Object.defineProperty(values, id, { value, enumerable: true, configurable: true, writable: true });
    else values[id] = value;
  }
  return values;
};

/** Whether the turn does without a node's value: all that need it ran with a default, or are optional. */
export const isCovered = (
  { nodes: planned, dependents }: Plan,
  usedDefault: readonly boolean[],
  place: number,
): boolean => {
  const after = dependents[place] ?? [];
  return (
    after.length > 0 &&
    after.every((dependent) => usedDefault[dependent] === true || planned[dependent]?.optional === true)
  );
};

/**
 * What a turn comes to. All lists are by place in the plan.
 *
 * @param failures the kinds of the calls that failed
 * @param usedDefault whether a node ran with its default
 * @param executedTools how many calls' tools ran
 * @param replayed how many got the result of an earlier call
 * @param redact takes secrets out of a name, before it is put into words
 */
export function turnResult(
  plan: Plan,
  results: ReadonlyArray<NodeResult | undefined>,
  failures: ReadonlyArray<ToolErrorKind | undefined>,
  usedDefault: readonly boolean[],
  executedTools: number,
  replayed: number,
  redact: (name: string) => string,
): TurnResult {
  const nodes = results.flatMap((result) => result ?? []);
  // A node with a value bears on no rule but that all have one.
  const lacking = nodes.flatMap(({ state }, place) =>
    hasValue(state)
      ? []
      : [{ state, optional: plan.nodes[place]?.optional === true, covered: isCovered(plan, usedDefault, place) }],
  );
  const kinds = failures.filter((kind) => kind !== undefined);
  return {
    status: turnStatus(lacking, executedTools + replayed),
    nodes,
    values: valuesOf(nodes),
    executedTools,
    hadToolFailure: kinds.length > 0,
    toolFailureKinds: [...new Set(kinds)],
    summary: summarize(nodes, redact),
  };
}
