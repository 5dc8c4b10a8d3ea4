import type { NodeState } from '../../../src/contract/turn.ts';
import type { Outcome } from './call.ts';

export interface Settled {
  readonly index: number;
  readonly state: NodeState;
  readonly outcome?: Outcome;
}
/** A node as a turn's result looks at it. */
interface Planned {
  readonly needs: readonly number[];
  readonly optional: boolean;
  readonly hasRun: () => boolean;
}
export interface Turn {
  readonly nodes: readonly Settled[];
  readonly status: string;
  readonly executedTools: number;
}

export const hasValue = ({ state }: Settled): boolean => state === 'succeeded' || state === 'defaulted';

/**
 *
 * @param withDefault the places of the nodes that ran with their default
 */
export const turnResult = (planned: readonly Planned[], nodes: readonly Settled[], withDefault: ReadonlySet<number>): Turn => {
  const executedTools = planned.filter(({ hasRun }) => hasRun()).length;
  const isCovered = (index: number): boolean => {
    const dependents = planned.flatMap((node, place) => (node.needs.includes(index) ? [{ ...node, place }] : []));
    return dependents.length > 0 && dependents.every(({ optional, place }) => optional || withDefault.has(place));
  };
  const isMissing = ({ index, state }: Settled): boolean => {
    if (planned[index]?.optional === true) return false;
    return state === 'skipped' || (state === 'failed' && !isCovered(index));
  };
  const statusOf = (): string => {
    if (nodes.every(hasValue)) return 'completed';
    if (executedTools === 0) return 'failed';
    return nodes.some(isMissing) ? 'escalated' : 'partial';
  };
  return { nodes, status: statusOf(), executedTools };
};
