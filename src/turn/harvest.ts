import type { ToolErrorKind } from '../contract/error-kind.ts';
import type { NodeResult } from '../contract/turn.ts';

/** How a node settled, and what of it counts for the turn. */
export interface SettledNode {
  readonly index: number;
  readonly result: NodeResult;
  /** The kind of its call's failure. */
  readonly failure?: ToolErrorKind | undefined;
  /** Its call's tool ran. */
  readonly executed?: boolean;
  /** Its call got the result of an earlier one. */
  readonly replayed?: boolean;
}

/** What a turn has found so far, by the nodes' places in the plan. */
export interface Harvest {
  results: Array<NodeResult | undefined>;
  readonly failures: Array<ToolErrorKind | undefined>;
  executedTools: number;
  replayed: number;
}

export const noHarvest = (nodes: number): Harvest => ({
  results: Array.from({ length: nodes }, () => undefined),
  failures: Array.from({ length: nodes }, () => undefined),
  executedTools: 0,
  replayed: 0,
});

/** Adds a node. In place: a copy for each of 100,000 nodes would be quadratic, and the harvest is one turn's own. */
export const harvest = (found: Harvest, { index, result, failure, executed, replayed }: SettledNode): Harvest => {
  found.results[index] = result;
  found.failures[index] = failure;
  if (executed === true) found.executedTools++;
  if (replayed === true) found.replayed++;
  return found;
};
