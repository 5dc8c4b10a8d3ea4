import type { NodeResult, Plan, PlanNode } from '../contract/turn.ts';
import { hasValue } from '../policy/recovery/cascade.ts';

export const nameOf = ({ tool }: PlanNode): string => (typeof tool === 'string' ? tool : tool.name);

export function nodeAt({ nodes }: Plan, place: number): PlanNode {
  const node = nodes[place];
  if (node === undefined) throw new RangeError(`there is no node ${place}`);
  return node;
}

/** Whether every dependent of a node could go on without its value. */
export function canDoWithout(plan: Plan, place: number): boolean {
  const after = plan.dependents[place] ?? [];
  return (
    after.length > 0 &&
    after.every(
      (dependent) => nodeAt(plan, dependent).optional === true || nodeAt(plan, dependent).default !== undefined,
    )
  );
}

/**
 * A node's input, made of the values of its needs where it is a function.
 *
 * @param settled how its needs settled, in their order
 * @throws what that function throws
 */
export function inputOf(plan: Plan, index: number, settled: readonly NodeResult[]): unknown {
  const { input, default: fallback } = nodeAt(plan, index);
  if (typeof input !== 'function') return input;
  const values = settled.map(({ id, state, result }): [string, unknown] => [
    id,
    hasValue(state) ? result?.output?.content : fallback,
  ]);
  return (input as (values: Readonly<Record<string, unknown>>) => unknown)(Object.fromEntries(values));
}
