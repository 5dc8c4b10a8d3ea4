import type { Plan } from '../contract/turn.ts';

/**
 * The nearest calls before a node that are kept: through nodes that only read, to what they need.
 * @param places the nodes' places in the plan, by id
 * @param kept by id: the nodes whose calls are kept
 */
export const nearestBefore = (
  { needs, nodes }: Plan,
  places: ReadonlyMap<string, number>,
  kept: ReadonlyMap<string, unknown>,
  nodeId: string,
): string[] => {
  const found = new Set<string>();
  const queue = [...(needs[places.get(nodeId) ?? -1] ?? [])];
  const seen = new Set(queue);
  // Grows while it is walked.
  for (const place of queue) {
    const id = nodes[place]?.id ?? '';
    if (kept.has(id)) found.add(id);
    else
      for (const need of needs[place] ?? []) {
        if (seen.has(need)) continue;
        seen.add(need);
        queue.push(need);
      }
  }
  return [...found];
};
