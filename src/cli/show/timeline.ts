import type { ToolEvent, TurnEvent, TurnOwnEvent } from '../../contract/event.ts';
import type { NodeState } from '../../contract/turn.ts';
import type { MarkKind } from './glyphs.ts';
import { plain } from './text.ts';

export interface Mark {
  readonly kind: MarkKind;
  readonly atMs: number;
}

/** What happened to one node, in order. */
export interface Lane {
  readonly nodeId: string;
  /** The tool in use: an alternative's name once one was tried. */
  toolName: string;
  readonly marks: Mark[];
  attempts: number;
  state?: NodeState;
  /** What it is doing, or why it ended as it did. */
  note: string;
  usedAlternative: boolean;
  /** Its turn has failed, and what it did is being undone. */
  isUndone?: boolean;
}

/** A turn as it can be drawn: its lanes in plan order, and times in milliseconds of the runtime's clock. */
export interface Timeline {
  readonly startMs: number;
  readonly timeoutMs: number;
  readonly lanes: readonly Lane[];
  /** When the deadline passed, if it did. */
  readonly deadlineMs?: number;
  readonly settledMs?: number;
}

/** A lane keeps its last marks: a tool may be tried a million times. */
const MARKS_MAX = 1_000;

type Draft = { -readonly [Key in keyof Timeline]: Timeline[Key] };

const mark = (lane: Lane, kind: MarkKind, atMs: number): void => {
  if (lane.marks.length >= MARKS_MAX) lane.marks.shift();
  lane.marks.push({ kind, atMs });
};

/** A call that undoes: its value is told once it is known what became of the node. */
const addUndoing = (lane: Lane, event: ToolEvent): void => {
  if (event.type === 'attempt_started') mark(lane, 'undo', event.atMs);
  if (event.type !== 'attempt_failed') return;
  lane.note = event.error.message;
  mark(lane, event.error.kind === 'timeout' ? 'timeout' : 'error', event.atMs);
};

const addCall = (lane: Lane, event: ToolEvent): void => {
  if (lane.isUndone === true) return addUndoing(lane, event);
  lane.toolName = plain(event.toolName);
  switch (event.type) {
    case 'attempt_started':
      lane.attempts++;
      lane.note = '';
      return mark(lane, lane.usedAlternative ? 'alternative' : 'start', event.atMs);
    case 'attempt_succeeded':
      return mark(lane, 'value', event.atMs);
    case 'attempt_failed':
      lane.note = event.error.message;
      return mark(lane, event.error.kind === 'timeout' ? 'timeout' : 'error', event.atMs);
    case 'attempt_canceled':
      return mark(lane, 'cut', event.atMs);
    case 'rejected':
      lane.note = event.error.message;
      return mark(lane, 'rejected', event.atMs);
    case 'alternative_used':
      lane.usedAlternative = true;
      return undefined;
    case 'progress':
      lane.note =
        event.report.message ??
        `${event.report.progress ?? ''}${event.report.total === undefined ? '' : `/${event.report.total}`}`;
      return undefined;
    case 'abandoned':
    case 'call_started':
    case 'decision':
    case 'dedupe':
    case 'escalated':
    case 'hook':
    case 'settled':
    case 'shadow':
      return undefined;
    case 'verified':
      return mark(lane, event.finding === 'done' ? 'value' : 'verified', event.atMs);
  }
};

const settleNode = (
  lane: Lane,
  { state, message = '', atMs }: Extract<TurnOwnEvent, { type: 'node_settled' }>,
): void => {
  lane.state = state;
  lane.note = message;
  if (state === 'skipped') mark(lane, 'skip', atMs);
  if ((state === 'timed_out' || state === 'canceled') && lane.marks.length > 0 && lane.marks.at(-1)?.kind !== 'cut')
    mark(lane, 'cut', atMs);
  const [first] = lane.marks;
  if (state === 'defaulted' && first?.kind === 'start') lane.marks[0] = { ...first, kind: 'default' };
};

const laneOf = ({ id, toolName }: { readonly id: string; readonly toolName: string }): Lane => ({
  nodeId: plain(id),
  toolName: plain(toolName),
  marks: [],
  attempts: 0,
  note: '',
  usedAlternative: false,
});

type Compensating = Extract<TurnOwnEvent, { type: 'compensation_started' | 'node_verified' | 'node_compensated' }>;

/** A turn that failed undoes what it did. */
const addCompensation = (byId: ReadonlyMap<string, Lane>, event: Compensating): void => {
  if (event.type === 'compensation_started') {
    for (const lane of event.nodes.map((id) => byId.get(id))) if (lane !== undefined) lane.isUndone = true;
    return;
  }
  const lane = byId.get(event.nodeId);
  if (lane === undefined) return;
  if (event.type === 'node_verified') return mark(lane, 'verified', event.atMs);
  lane.state = event.state;
  lane.note = event.message ?? '';
  mark(lane, event.state === 'compensated' ? 'undone' : 'left', event.atMs);
};

/** Follows a turn's events; `timeline` is up to date after each `add`. */
export function followTurn(): { readonly timeline: Timeline; readonly add: (event: TurnEvent) => void } {
  const lanes: Lane[] = [];
  const byId = new Map<string, Lane>();
  const timeline: Draft = { startMs: 0, timeoutMs: Infinity, lanes };
  const addOwn = (event: TurnOwnEvent): void => {
    switch (event.type) {
      case 'turn_started':
        timeline.startMs = event.atMs;
        timeline.timeoutMs = event.timeoutMs;
        for (const node of event.nodes) {
          const lane = laneOf(node);
          lanes.push(lane);
          byId.set(node.id, lane);
        }
        return;
      case 'deadline':
        timeline.deadlineMs = event.atMs;
        return;
      case 'node_settled': {
        const lane = byId.get(event.nodeId);
        if (lane !== undefined) settleNode(lane, event);
        return;
      }
      case 'compensation_started':
      case 'node_verified':
      case 'node_compensated':
        return addCompensation(byId, event);
      case 'settled':
        timeline.settledMs = event.atMs;
        break;
      case 'compensation_settled':
      case 'abandoned':
      case 'node_started':
      case 'escalated':
    }
  };
  return {
    timeline,
    add: (event) => {
      if (event.source === 'turn') return addOwn(event);
      const lane = event.nodeId === undefined ? undefined : byId.get(event.nodeId);
      if (lane !== undefined && (lane.state === undefined || lane.isUndone === true)) addCall(lane, event);
    },
  };
}
