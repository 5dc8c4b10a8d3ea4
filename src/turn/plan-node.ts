import type { NodeResult, PlanNode } from '../contract/turn.ts';
import { hasValue } from '../policy/cascade.ts';
import type { Plan } from './plan.ts';

export const nameOf = ({ tool }: PlanNode): string => (typeof tool === 'string' ? tool : tool.name);

export function nodeAt({ nodes }: Plan, place: number): PlanNode {
  const node = nodes[place];
  if (node === undefined) throw new RangeError(`there is no node ${place}`);
  return node;
}

/** Whether every dependent of a node could go on without its value. */
export function canDoWithout(plan: Plan, place: number): boolean {
  const after = plan.dependents[place] ?? [];
  return after.length > 0 && after.every((dependent) => nodeAt(plan, dependent).optional === true || nodeAt(plan, dependent).default !== undefined);
}

/**
 * A node's input, made of the values of its needs where it is a function.
 * @throws what that function throws
 */
export function inputOf(plan: Plan, place: number, results: ReadonlyArray<NodeResult | undefined>): unknown {
  const { input, default: fallback } = nodeAt(plan, place);
  if (typeof input !== 'function') return input;
  const values = (plan.needs[place] ?? []).map((need): [string, unknown] => {
    const result = results[need];
    return [nodeAt(plan, need).id, hasValue(result?.state) ? result?.result?.output?.content : fallback];
  });
  return (input as (values: Readonly<Record<string, unknown>>) => unknown)(Object.fromEntries(values));
}
