import type { AttemptTold, NodeTold, TraceModel, TurnTold } from './model.ts';

/** A value in the first turn and in the second; `undefined` where it has none. */
export type Pair<T> = readonly [first: T | undefined, second: T | undefined];

/** A decision that fell otherwise. */
export interface FlippedDecision {
  /** Which try of the node, from 1. */
  readonly try: number;
  /** How each try ended and what was decided, as `timeout: retry (transient)`. */
  readonly told: Pair<string>;
}

/** A node in two turns. */
export interface NodeComparison {
  /** The node's id. */
  readonly nodeId: string;
  /** `same`: state, attempts and decisions are. `only_first`, `only_second`: the other turn has no such node. */
  readonly change: 'same' | 'changed' | 'only_first' | 'only_second';
  /** How it ended. */
  readonly state: Pair<string>;
  /** The tool that was in use at its end. */
  readonly toolName: Pair<string>;
  /** How many attempts were made. */
  readonly attempts: Pair<number>;
  /** From its start to its end, in milliseconds. */
  readonly durationMs: Pair<number>;
  /** Tries that ended or were decided about otherwise. */
  readonly flipped: readonly FlippedDecision[];
}

/** Two turns beside each other. */
export interface TurnComparison {
  /** Their ids. */
  readonly turnIds: readonly [first: string, second: string];
  /** How they ended. */
  readonly status: readonly [first: string, second: string];
  /** How long they took, in milliseconds. */
  readonly durationMs: readonly [first: number, second: number];
  /** Attempts of all nodes. */
  readonly attempts: readonly [first: number, second: number];
  /** The nodes in the order of the first plan, then those that only the second has. */
  readonly nodes: readonly NodeComparison[];
  /** How many decisions fell otherwise, in all nodes. */
  readonly flipped: number;
}

/** How an attempt ended, and what was decided about it: `timeout: retry (transient)`. */
export const told = ({ outcome, error, decision, toolName, alternative }: AttemptTold): string => {
  const how = error === undefined ? outcome : (error.code ?? error.status ?? error.kind);
  const by = alternative ? `${toolName}: ` : '';
  return `${by}${how}${decision === undefined ? '' : `: ${decision.strategy} (${decision.code})`}`;
};

const flips = (a: readonly AttemptTold[], b: readonly AttemptTold[]): FlippedDecision[] =>
  Array.from({ length: Math.max(a.length, b.length) }, (_, index) => {
    const [first, second] = [a[index], b[index]];
    const pair = [first && told(first), second && told(second)] as const;
    return { try: index + 1, told: pair };
  }).filter(({ told: [first, second] }) => first !== second);

const tookMs = (node: NodeTold | undefined): number | undefined =>
  node?.startMs === undefined || node.settledMs === undefined ? undefined : node.settledMs - node.startMs;

const compareNode = (nodeId: string, a: NodeTold | undefined, b: NodeTold | undefined): NodeComparison => {
  const flipped = a === undefined || b === undefined ? [] : flips(a.call?.attempts ?? [], b.call?.attempts ?? []);
  const isSame = a?.state === b?.state && a?.attempts === b?.attempts && flipped.length === 0;
  const change = a === undefined ? 'only_second' : b === undefined ? 'only_first' : isSame ? 'same' : 'changed';
  return {
    nodeId,
    change,
    state: [a?.state, b?.state],
    toolName: [a?.toolName, b?.toolName],
    attempts: [a?.attempts, b?.attempts],
    durationMs: [tookMs(a), tookMs(b)],
    flipped,
  };
};

const wholeMs = ({ startMs, settledMs, lastMs }: TurnTold): number => (settledMs ?? lastMs) - startMs;
const allAttempts = ({ nodes }: TurnTold): number => nodes.reduce((sum, { attempts }) => sum + attempts, 0);

/**
 * Puts two turns beside each other, node by node: what ended otherwise, which decisions fell otherwise, what took
 * longer. Nodes are the same that have the same id.
 *
 * @example
 * const [before, after] = [...emptyTrace().turns.values()];
 * if (before !== undefined && after !== undefined) log.push(compareTurns(before, after).flipped);
 */
export function compareTurns(first: TurnTold, second: TurnTold): TurnComparison {
  const [a, b] = [first, second].map(({ nodes }) => new Map(nodes.map((node) => [node.nodeId, node])));
  const ids = new Set([...(a?.keys() ?? []), ...(b?.keys() ?? [])]);
  const nodes = [...ids].map((id) => compareNode(id, a?.get(id), b?.get(id)));
  return {
    turnIds: [first.turnId, second.turnId],
    status: [first.status, second.status],
    durationMs: [wholeMs(first), wholeMs(second)],
    attempts: [allAttempts(first), allAttempts(second)],
    nodes,
    flipped: nodes.reduce((sum, { flipped }) => sum + flipped.length, 0),
  };
}

const shapeOf = ({ nodes }: TurnTold): string => nodes.map(({ nodeId }) => nodeId).join('\n');

/**
 * Puts two traces beside each other, turn by turn: turns of one id belong together, and else those of the same nodes,
 * in their order.
 *
 * @returns a comparison for each pair, in the order of the first trace
 *
 * @example
 * const flipped = compareTraces(emptyTrace(), emptyTrace()).filter((pair) => pair.flipped > 0);
 */
export function compareTraces(first: TraceModel, second: TraceModel): TurnComparison[] {
  const left = [...second.turns.values()].filter(({ turnId }) => !first.turns.has(turnId));
  const byShape = Map.groupBy(left, shapeOf);
  return [...first.turns.values()].flatMap((turn) => {
    const other = second.turns.get(turn.turnId) ?? byShape.get(shapeOf(turn))?.shift();
    return other === undefined ? [] : [compareTurns(turn, other)];
  });
}
