import type { AttemptTold, CallTold, DecisionTold, NodeTold, TraceModel, TurnTold } from '../model.ts';
import { numberOf } from '../model/keep.ts';
import type { Letter } from './marble-row.ts';

/** What one try of a node's call does when it is played again. */
export type PlayedTry =
  | { readonly does: 'answer' | 'hang'; readonly heldMs: number; readonly afterMs: number }
  | { readonly does: 'fail'; readonly heldMs: number; readonly afterMs: number; readonly of: AttemptTold }
  | { readonly does: 'refuse'; readonly heldMs: number };

/** A decision, and how long the host took over it. */
export interface PlayedDecision {
  readonly decision: DecisionTold;
  readonly afterMs: number;
  /** With `alternative`: the tool. */
  readonly toolName?: string;
}

/** A node as it is played again, its times in whole milliseconds from the turn's start. */
export interface PlayedNode {
  readonly nodeId: string;
  readonly toolName: string;
  readonly needs: readonly string[];
  readonly optional: boolean;
  readonly hasDefault: boolean;
  readonly tries: readonly PlayedTry[];
  readonly decisions: readonly PlayedDecision[];
  /** Its own row, and one for each try. */
  readonly rows: ReadonlyArray<readonly Letter[]>;
}

/** A turn as it is played again. */
export interface PlayedTurn {
  readonly nodes: readonly PlayedNode[];
  readonly endMs: number;
  readonly concurrency?: number;
}

/** A clock with fractions is a real one: what lies this near together was one instant but for the work between. */
const REAL_CLOCK_MS = 8;
/** By how much a busy machine may be late with a timer. */
export const LAG_MS = 250;

const STATE_LETTERS: Readonly<Record<string, string>> = {
  succeeded: 'v',
  failed: 'f',
  skipped: 'k',
  defaulted: 'd',
  timed_out: 't',
  canceled: 'c',
};
const END_LETTERS: Readonly<Partial<Record<AttemptTold['outcome'], string>>> = {
  succeeded: 'v',
  failed: 'x',
  timed_out: 't',
};

/** A turn's times, each a whole number of milliseconds; those of one instant are one number. */
class Clock {
  readonly #startMs: number;
  readonly toleranceMs: number;

  constructor(turn: TurnTold) {
    this.#startMs = turn.startMs;
    const times = turn.nodes.flatMap(({ startMs = 0, settledMs = 0, call }) => [
      startMs,
      settledMs,
      ...(call?.attempts ?? []).flatMap(({ startMs: from, endMs = 0 }) => [from, endMs]),
    ]);
    this.toleranceMs = times.every((ms) => Number.isInteger(ms)) ? 0 : REAL_CLOCK_MS;
  }

  at(ms: number): number {
    return Math.max(0, Math.round(ms - this.#startMs));
  }

  /** How long something took; nothing for what only took the time of the work itself. */
  took(fromMs: number, toMs: number): number {
    const ms = Math.max(0, toMs - fromMs);
    return ms <= this.toleranceMs ? 0 : Math.round(ms);
  }
}

interface Course {
  readonly tries: PlayedTry[];
  readonly decisions: PlayedDecision[];
  readonly rows: Letter[][];
  /** When the last of it was over. */
  endMs: number;
}

/** @param limitMs the hard limit of its tool, which ends an attempt by itself */
const tryOf = (attempt: AttemptTold, heldMs: number, afterMs: number, limitMs: number | undefined): PlayedTry => {
  switch (attempt.outcome) {
    case 'rejected':
      return { does: 'refuse', heldMs };
    case 'succeeded':
      return attempt.late ? { does: 'hang', heldMs, afterMs } : { does: 'answer', heldMs, afterMs };
    case 'failed':
    case 'timed_out':
      if (attempt.late) return { does: 'hang', heldMs, afterMs };
      return attempt.timeoutMs === limitMs && afterMs === limitMs
        ? { does: 'hang', heldMs, afterMs }
        : { does: 'fail', heldMs, afterMs, of: attempt };
    case 'running':
    case 'canceled':
      return { does: 'hang', heldMs, afterMs };
  }
};

/** The layer's own limit is exact; a clock with fractions says that it passed a little later. */
const tookOf = (clock: Clock, { startMs, endMs = startMs, timeoutMs }: AttemptTold): number => {
  const ms = Math.round(Math.max(0, endMs - startMs));
  const isLate = clock.toleranceMs > 0 && timeoutMs !== undefined && ms > timeoutMs && ms <= timeoutMs + LAG_MS;
  return timeoutMs !== undefined && (isLate || Math.abs(ms - timeoutMs) <= clock.toleranceMs) ? timeoutMs : ms;
};

/** What a node is worked out of: its turn, and what its needs came to. */
interface Stage {
  readonly turn: TurnTold;
  readonly clock: Clock;
  /** When the turn is cut off; `Infinity` where it is not. */
  readonly endMs: number;
  readonly limitOf: (toolName: string) => number | undefined;
  readonly byId: ReadonlyMap<string, NodeTold>;
  /** When each node settled, as it is played. */
  readonly settled: Map<string, number>;
  /** The same nodes, in the order in which they had settled. */
  readonly over: NodeTold[];
}

const courseOf = (stage: Stage, call: CallTold, startMs: number): Course => {
  const { clock, endMs } = stage;
  const course: Course = { tries: [], decisions: [], rows: [], endMs: startMs };
  // Something held it until the turn's end: a hook, say.
  if (call.attempts.length === 0 && endMs !== Infinity)
    course.tries.push({ does: 'hang', heldMs: endMs + 1, afterMs: 0 });
  let before = call.startMs;
  for (const [index, attempt] of call.attempts.entries()) {
    const heldMs = clock.took(before, attempt.startMs);
    const fromMs = course.endMs + heldMs;
    const afterMs = Math.min(tookOf(clock, attempt), clock.toleranceMs === 0 ? Infinity : endMs - 1 - fromMs);
    const { decision } = attempt;
    course.tries.push(tryOf(attempt, heldMs, afterMs, stage.limitOf(attempt.toolName)));
    const letter = attempt.late ? undefined : END_LETTERS[attempt.outcome];
    if (attempt.outcome === 'rejected') course.rows.push([{ frame: fromMs, letter: 'r' }]);
    else
      course.rows.push([
        { frame: fromMs, letter: 's' },
        ...(letter === undefined ? [] : [{ frame: fromMs + afterMs, letter }]),
      ]);
    course.endMs = fromMs + (attempt.outcome === 'rejected' ? 0 : afterMs);
    before = attempt.endMs ?? attempt.startMs;
    if (decision === undefined || attempt.late) continue;
    const lagMs = clock.took(before, decision.atMs);
    const next = call.attempts[index + 1]?.toolName;
    course.decisions.push({
      decision,
      afterMs: lagMs,
      ...(decision.strategy === 'alternative' && next !== undefined ? { toolName: next } : {}),
    });
    course.endMs += lagMs + Math.round(decision.delayMs ?? 0);
    before = decision.atMs + (decision.delayMs ?? 0);
  }
  return course;
};

/** States of nodes that the turn's end cut off. */
export const ENDS_EARLY: ReadonlySet<string | undefined> = new Set(['timed_out', 'canceled']);

/** Whether a node without a value was one that the turn could do without, which its trace shows by what followed. */
const isOptional = (turn: TurnTold, { nodeId, state, call }: NodeTold): boolean => {
  if (state === 'skipped') return !turn.escalated.includes(nodeId);
  const { strategy, code } = call?.attempts.at(-1)?.decision ?? {};
  if (state === 'failed' && code !== 'turn_deadline') return strategy === 'partial';
  return (state === 'failed' || ENDS_EARLY.has(state)) && turn.status !== 'escalated';
};

/** How many nodes ran at a time, where one had to wait for a place; of a real clock what the trace says of it. */
const concurrencyOf = (turn: TurnTold, clock: Clock): number | undefined => {
  if (turn.concurrency !== undefined || clock.toleranceMs > 0) return turn.concurrency;
  const byId = new Map(turn.nodes.map((node) => [node.nodeId, node]));
  const started = turn.nodes.flatMap((node) =>
    node.startMs === undefined ? [] : [{ ...node, startMs: node.startMs }],
  );
  const waited = turn.nodes.some(({ startMs, needs, state, settledMs = Infinity }) => {
    if (startMs === undefined && !ENDS_EARLY.has(state)) return false;
    const readyMs = needs.reduce(
      (latest, need) => Math.max(latest, byId.get(need)?.settledMs ?? Infinity),
      turn.startMs,
    );
    return clock.took(readyMs, startMs ?? settledMs) > 0;
  });
  if (!waited) return undefined;
  const running = started.map(
    ({ startMs }) =>
      started.filter((other) => other.startMs <= startMs && (other.settledMs ?? Infinity) > startMs).length,
  );
  return running.reduce((most, count) => Math.max(most, count), 1);
};

/** When a node begins: once its needs have settled and, where only so many run at a time, one has made room for it. */
const startOf = ({ turn, clock, settled, over }: Stage, node: NodeTold): number => {
  const { startMs = node.settledMs ?? turn.startMs, needs } = node;
  if (clock.toleranceMs === 0) return clock.at(startMs);
  const readyMs = needs.reduce((latest, need) => Math.max(latest, settled.get(need) ?? 0), 0);
  // It was the process that was late, with its first call, say.
  if (turn.concurrency === undefined) return readyMs;
  const before = over.findLast(({ settledMs = Infinity }) => settledMs <= startMs);
  return Math.max(readyMs, settled.get(before?.nodeId ?? '') ?? 0);
};

const playNode = (stage: Stage, node: NodeTold): PlayedNode => {
  const { turn, endMs, byId, settled } = stage;
  const { nodeId, needs, state = '', call } = node;
  const startMs = startOf(stage, node);
  const cut = ENDS_EARLY.has(state);
  const course = call === undefined ? undefined : courseOf(stage, call, startMs);
  const settledMs = cut ? endMs : Math.min(endMs, course === undefined ? startMs : course.endMs);
  settled.set(nodeId, settledMs);
  stage.over.push(node);
  const own: Letter[] = [
    ...(node.startMs === undefined ? [] : [{ frame: startMs, letter: 'n' }]),
    { frame: settledMs, letter: STATE_LETTERS[state] ?? 'f' },
  ];
  const lacking = needs.some((need) => {
    const of = byId.get(need)?.state;
    return of !== 'succeeded' && of !== 'defaulted';
  });
  return {
    nodeId,
    toolName: call?.askedTool ?? node.toolName,
    needs,
    optional: isOptional(turn, node),
    hasDefault: lacking && node.startMs !== undefined,
    tries: course?.tries ?? [],
    decisions: course?.decisions ?? [],
    rows: [own, ...(course?.rows ?? [])],
  };
};

/** Works out how a turn is played again; its times are those that a clock without delays would have shown. */
export function playedTurn(model: TraceModel, turn: TurnTold): PlayedTurn {
  const limitOf = (toolName: string): number | undefined => numberOf(model.tools.get(toolName)?.policy?.timeoutMs);
  const clock = new Clock(turn);
  const cutMs = turn.deadlineMs === undefined ? clock.at(turn.settledMs ?? turn.lastMs) : Math.round(turn.timeoutMs);
  const isCut = turn.deadlineMs !== undefined || turn.nodes.some(({ state }) => state === 'canceled');
  const settled = new Map<string, number>();
  const played = new Map<string, PlayedNode>();
  // In the order in which they settled, so that needs come first.
  const inTime = turn.nodes.toSorted((a, b) => (a.settledMs ?? 0) - (b.settledMs ?? 0));
  const byId = new Map(turn.nodes.map((node) => [node.nodeId, node]));
  const stage: Stage = { turn, clock, endMs: isCut ? cutMs : Infinity, byId, settled, over: [], limitOf };
  for (const node of inTime) played.set(node.nodeId, playNode(stage, node));
  const concurrency = concurrencyOf(turn, clock);
  const endMs = isCut ? cutMs : [...settled.values()].reduce((latest, ms) => Math.max(latest, ms), 0);
  return {
    nodes: turn.nodes.flatMap(({ nodeId }) => played.get(nodeId) ?? []),
    endMs,
    ...(concurrency === undefined ? {} : { concurrency }),
  };
}
