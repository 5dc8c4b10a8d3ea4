import type { NodeTold, TurnTold } from '../model.ts';

/** A node of the graph, at its place. */
export interface Placed {
  readonly node: NodeTold;
  readonly column: number;
  readonly row: number;
  /** Whether the turn could not have been shorter without it. */
  readonly critical: boolean;
}

const NODES_MAX = 300;

const columnsOf = (nodes: readonly NodeTold[], byId: ReadonlyMap<string, NodeTold>): Map<string, number> => {
  const columns = new Map<string, number>();
  // A plan has no circles; a trace that was cut may have anything, so each node is entered once.
  const columnOf = (node: NodeTold, above: ReadonlySet<string>): number => {
    const known = columns.get(node.nodeId);
    if (known !== undefined) return known;
    let column = 0;
    for (const need of node.needs) {
      const other = byId.get(need);
      if (other !== undefined && !above.has(need))
        column = Math.max(column, 1 + columnOf(other, new Set([...above, node.nodeId])));
    }
    columns.set(node.nodeId, column);
    return column;
  };
  for (const node of nodes) columnOf(node, new Set());
  return columns;
};

/** From the node that settled last back over the need that each waited for longest. */
const criticalPath = (nodes: readonly NodeTold[], byId: ReadonlyMap<string, NodeTold>): Set<string> => {
  const path = new Set<string>();
  let at = nodes.toSorted((a, b) => (b.settledMs ?? 0) - (a.settledMs ?? 0))[0];
  while (at !== undefined && !path.has(at.nodeId)) {
    path.add(at.nodeId);
    at = at.needs
      .flatMap((need) => byId.get(need) ?? [])
      .toSorted((a, b) => (b.settledMs ?? 0) - (a.settledMs ?? 0))[0];
  }
  return path;
};

/** Columns by the longest path; within one, each node as near as can be to what it needs. */
export function placedNodes(turn: TurnTold): Placed[] {
  const nodes = turn.nodes.slice(0, NODES_MAX);
  const byId = new Map(nodes.map((node) => [node.nodeId, node]));
  const columns = columnsOf(nodes, byId);
  const critical = criticalPath(nodes, byId);
  const rows = new Map<string, number>();
  const placed: Placed[] = [];
  const inColumns = Map.groupBy(nodes, ({ nodeId }) => columns.get(nodeId) ?? 0);
  for (const [column, own] of [...inColumns].toSorted(([a], [b]) => a - b)) {
    const middle = ({ needs }: NodeTold): number =>
      needs.reduce((sum, need) => sum + (rows.get(need) ?? 0), 0) / Math.max(1, needs.length);
    const ordered = column === 0 ? own : own.toSorted((a, b) => middle(a) - middle(b));
    ordered.forEach((node, row) => {
      rows.set(node.nodeId, row);
      placed.push({ node, column, row, critical: critical.has(node.nodeId) });
    });
  }
  return placed;
}
