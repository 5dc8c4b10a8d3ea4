import type { ToolEvent, TurnOwnEvent } from '../../contract/event.ts';
import type { MarkKind, NodeTold } from '../model.ts';
import { push, recordOf } from './keep.ts';

// The signs of marbles, apart from all else that an event means: the page has none, since the server draws its marbles.

const mark = (node: NodeTold, kind: MarkKind | undefined, atMs: number, max: number): void => {
  if (kind !== undefined) push(node.marks, { kind, atMs }, max);
};

const failureOf = (error: unknown): MarkKind => (recordOf(error)['kind'] === 'timeout' ? 'timeout' : 'error');

const signOf = (node: NodeTold, event: ToolEvent): MarkKind | undefined => {
  switch (event.type) {
    case 'attempt_started':
      return node.usedAlternative ? 'alternative' : 'start';
    case 'attempt_succeeded':
      return 'value';
    case 'attempt_failed':
      return failureOf(event.error);
    case 'attempt_canceled':
      return 'cut';
    case 'rejected':
      return 'rejected';
    case 'verified':
      return event.finding === 'done' ? 'value' : 'verified';
    default:
      return undefined;
  }
};

/** A call that undoes: its value is told once it is known what became of the node. */
const undoingOf = (event: ToolEvent): MarkKind | undefined => {
  if (event.type === 'attempt_started') return 'undo';
  return event.type === 'attempt_failed' ? failureOf(event.error) : undefined;
};

/** Draws what an event of its call means for the line of a node. */
export function markCall(node: NodeTold, event: ToolEvent, max: number): void {
  mark(node, node.isUndone === true ? undoingOf(event) : signOf(node, event), event.atMs, max);
}

/** Draws what became of undoing a node. */
export function markCompensation(
  node: NodeTold,
  event: Extract<TurnOwnEvent, { type: 'node_verified' | 'node_compensated' }>,
  max: number,
): void {
  const kind = event.type === 'node_verified' ? 'verified' : event.state === 'compensated' ? 'undone' : 'left';
  mark(node, kind, event.atMs, max);
}

/** Draws what its end means for the line of a node. */
export function markSettled(
  node: NodeTold,
  { state, atMs }: Extract<TurnOwnEvent, { type: 'node_settled' }>,
  max: number,
): void {
  if (state === 'skipped') mark(node, 'skip', atMs, max);
  if ((state === 'timed_out' || state === 'canceled') && node.marks.length > 0 && node.marks.at(-1)?.kind !== 'cut')
    mark(node, 'cut', atMs, max);
  const [first] = node.marks;
  if (state === 'defaulted' && first?.kind === 'start') node.marks[0] = { ...first, kind: 'default' };
}
