import { compareTraces, compareTurns, type NodeComparison, type Pair, type TurnComparison } from './compare.ts';
import type { TraceModel, TurnTold } from './model.ts';
import { counted, duration } from './text.ts';

/** A comparison, or what else is a list, in words: the page shows it as it is, and need not know how it is made. */
export interface ListView {
  /** The turns that there are to compare with, each by its reference; none where nothing is compared. */
  readonly others: ReadonlyArray<readonly [ref: string, label: string]>;
  /** The reference of the one that is compared with; empty without one. */
  readonly chosen: string;
  /** What is true of the whole, sentence by sentence. */
  readonly about: readonly string[];
  /** Node by node, what differs first: its id, `NodeComparison.change`, and what there is to say. */
  readonly nodes: ReadonlyArray<readonly [nodeId: string, change: string, text: string]>;
}

const NODES_MAX = 60;
/** Of each trace the last ones are offered. */
const OTHERS_MAX = 25;
const NUMBERS_MAX = 20;

const worded = (value: string | number | undefined): string => String(value ?? 'none').replaceAll('_', ' ');
const timed = (ms: number | undefined): string => (ms === undefined ? 'none' : duration(ms));
const pair = <T>([a, b]: Pair<T>, text: (value: T | undefined) => string): string =>
  text(a) === text(b) ? text(a) : `${text(a)} → ${text(b)}`;

const isSame = ({ nodes, status: [a, b] }: TurnComparison): boolean =>
  a === b && nodes.every(({ change }) => change === 'same');

const listed = (numbers: readonly number[]): string =>
  numbers.length === 0
    ? ''
    : ` (${numbers.slice(0, NUMBERS_MAX).join(', ')}${numbers.length > NUMBERS_MAX ? ', …' : ''})`;

const aboutTraces = (pairs: readonly TurnComparison[], first: TraceModel, second: TraceModel): string => {
  const differing = pairs.filter((one) => !isSame(one));
  const numbers = differing.flatMap(({ turnIds: [id] }) => first.turns.get(id)?.number ?? []);
  return (
    `${counted(pairs.length, 'turn')} of this trace and the other belong together, ${differing.length} of them ` +
    `differ${listed(numbers)}; ${first.turns.size - pairs.length} only here, ` +
    `${second.turns.size - pairs.length} only there.`
  );
};

/** Of a node that only one of the turns has: how it was there. */
const aloneText = ({ change, state, attempts, durationMs }: NodeComparison): string => {
  const at = change === 'only_first' ? 0 : 1;
  const where = change === 'only_first' ? 'only before' : 'only after';
  return `${where}: ${worded(state[at])}; ${worded(attempts[at])} attempts; ${timed(durationMs[at])}`;
};

const changedText = ({ state, attempts, durationMs, toolName, flipped }: NodeComparison): string =>
  [
    pair(state, worded),
    `${pair(attempts, worded)} attempts`,
    pair(durationMs, timed),
    ...(toolName[0] === toolName[1] ? [] : [`by ${pair(toolName, String)}`]),
    ...flipped.map(({ try: number, told }) => `#${number} ${pair(told, worded)}`),
  ].join('; ');

const viewed = ({
  status,
  durationMs,
  attempts,
  flipped,
  nodes,
}: TurnComparison): Pick<ListView, 'about' | 'nodes'> => ({
  about: [
    `${pair(status, worded)}; ${pair(durationMs, timed)}; ${pair(attempts, worded)} attempts; ` +
      `${counted(flipped, 'decision')} fell otherwise.`,
  ],
  nodes: nodes
    .toSorted((a, b) => Number(a.change === 'same') - Number(b.change === 'same'))
    .slice(0, NODES_MAX)
    .map((node) => [node.nodeId, node.change, node.change.startsWith('only') ? aloneText(node) : changedText(node)]),
});

/**
 * A turn beside another one: of the other trace where there is one (`2:<id>`), or of its own (`1:<id>`).
 *
 * @param ref the other turn; where there is none of that reference, the one that belongs to it, or the one before it
 * @param second a trace to compare with
 */
export function compareView(turn: TurnTold, ref: string, first: TraceModel, second?: TraceModel): ListView {
  const own = [...first.turns.values()];
  const before = own[own.indexOf(turn) - 1] ?? own[own.indexOf(turn) + 1];
  const pairs = second === undefined ? [] : compareTraces(first, second);
  const [, counterpart] = pairs.find(({ turnIds: [id] }) => id === turn.turnId)?.turnIds ?? [];
  const turns = new Map<string, TurnTold>();
  for (const one of second?.turns.values() ?? []) turns.set(`2:${one.turnId}`, one);
  for (const one of own) if (one !== turn) turns.set(`1:${one.turnId}`, one);
  const suggested = counterpart === undefined ? `1:${before?.turnId ?? ''}` : `2:${counterpart}`;
  const chosen = turns.has(ref) ? ref : suggested;
  const of = (trace: string): string[] => [...turns.keys()].filter((key) => key.startsWith(trace)).slice(-OTHERS_MAX);
  const others = [...new Set([chosen, ...of('2:'), ...of('1:')])].flatMap((key) => {
    const one = turns.get(key);
    const whose = key.startsWith('2:') ? 'the other trace, ' : '';
    return one === undefined ? [] : [[key, `${whose}${one.number}. ${worded(one.status)}`] as const];
  });
  const other = turns.get(chosen);
  const about = second === undefined ? [] : [aboutTraces(pairs, first, second)];
  if (other === undefined) return { others, chosen: '', about: [...about, 'There is no other turn.'], nodes: [] };
  // What is there, and then what came of it: the turn before, or the other trace.
  const compared = viewed(chosen.startsWith('2:') ? compareTurns(turn, other) : compareTurns(other, turn));
  return { others, chosen, about: [...about, ...compared.about], nodes: compared.nodes };
}
