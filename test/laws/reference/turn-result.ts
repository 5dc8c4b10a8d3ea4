import type { Planned, Settled, Turn } from './shapes.ts';

export const hasValue = ({ state }: Settled): boolean => state === 'succeeded' || state === 'defaulted';

/**
 *
 * @param withDefault the places of the nodes that ran with their default
 */
export const turnResult = (
  planned: readonly Planned[],
  nodes: readonly Settled[],
  withDefault: ReadonlySet<number>,
): Turn => {
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
