import type { NodeState, TurnStatus } from '../../contract/turn.ts';

/**
 * What becomes of a node one of whose needs has no value: whoever writes a default means it, so it is asked
 * first.
 */
export type Cascade = 'use_default' | 'skip' | 'skip_and_escalate';

/**
 * Decides about a node one of whose needs failed or was skipped: it runs with its default, else is skipped where it is
 * optional, else is skipped and a person is asked.
 */
export function decideCascade(node: {
  /** The node has a `default`. */
  readonly hasDefault: boolean;
  /** The node is `optional`. */
  readonly optional: boolean;
}): Cascade {
  if (node.hasDefault) return 'use_default';
  return node.optional ? 'skip' : 'skip_and_escalate';
}

/** Whether a node's dependents have a value of it. */
export const hasValue = (state: NodeState | undefined): boolean => state === 'succeeded' || state === 'defaulted';

/** What of a settled node the turn's status looks at. */
export interface SettledNode {
  /** How the node ended. */
  readonly state: NodeState;
  /** The turn can do without it. */
  readonly optional: boolean;
  /** It has dependents, and each of them ran with a default or is optional. */
  readonly covered: boolean;
}

/**
 * R-5.5, asked in the order completed, failed, escalated, partial.
 * @param ran how many calls' tools ran, or got the result of one that did
 */
export function turnStatus(nodes: readonly SettledNode[], ran: number): TurnStatus {
  if (nodes.every(({ state }) => hasValue(state))) return 'completed';
  if (ran === 0) return 'failed';
  const missing = nodes.some(
    ({ state, optional, covered }) =>
      // What should have been undone and was not is for a person, whether or not the turn could do without it.
      state === 'compensation_failed' ||
      (!optional && (state === 'skipped' || state === 'compensated' || (state === 'failed' && !covered))),
  );
  return missing ? 'escalated' : 'partial';
}
