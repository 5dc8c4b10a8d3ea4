import type { ToolEvent, TurnOwnEvent } from '../../contract/event.ts';
import type { MarkKind, NodeTold, TurnTold } from '../model.ts';
import { lineOf, progressOf, wordOf } from '../text.ts';
import { listOf, nodesById, push, recordOf } from './keep.ts';

const mark = (node: NodeTold, kind: MarkKind, atMs: number, max: number): void => push(node.marks, { kind, atMs }, max);

const messageOf = (error: unknown): string => lineOf(recordOf(error)['message'], 4_096);

/** What an event of its call means for the line of a node. */
export function markCall(node: NodeTold, event: ToolEvent, max: number): void {
  if (node.isUndone === true) return markUndoing(node, event, max);
  node.toolName = lineOf(event.toolName, 256);
  switch (event.type) {
    case 'attempt_started':
      node.attempts++;
      node.note = '';
      return mark(node, node.usedAlternative ? 'alternative' : 'start', event.atMs, max);
    case 'attempt_succeeded':
      return mark(node, 'value', event.atMs, max);
    case 'attempt_failed':
      node.note = messageOf(event.error);
      return mark(node, recordOf(event.error)['kind'] === 'timeout' ? 'timeout' : 'error', event.atMs, max);
    case 'attempt_canceled':
      return mark(node, 'cut', event.atMs, max);
    case 'rejected':
      node.note = messageOf(event.error);
      return mark(node, 'rejected', event.atMs, max);
    case 'alternative_used':
      node.usedAlternative = true;
      return undefined;
    case 'progress':
      node.note = progressOf(event.report);
      return undefined;
    case 'verified':
      return mark(node, event.finding === 'done' ? 'value' : 'verified', event.atMs, max);
    case 'abandoned':
    case 'call_started':
    case 'decision':
    case 'dedupe':
    case 'escalated':
    case 'hook':
    case 'settled':
    case 'shadow':
      return undefined;
  }
}

/** A call that undoes: its value is told once it is known what became of the node. */
const markUndoing = (node: NodeTold, event: ToolEvent, max: number): void => {
  if (event.type === 'attempt_started') mark(node, 'undo', event.atMs, max);
  if (event.type !== 'attempt_failed') return;
  node.note = messageOf(event.error);
  mark(node, recordOf(event.error)['kind'] === 'timeout' ? 'timeout' : 'error', event.atMs, max);
};

type Compensating = Extract<TurnOwnEvent, { type: 'compensation_started' | 'node_verified' | 'node_compensated' }>;

/** A turn that failed undoes what it did. */
export function markCompensation(turn: TurnTold, event: Compensating, max: number): void {
  const byId = nodesById(turn);
  if (event.type === 'compensation_started') {
    for (const id of listOf(event.nodes)) {
      const undone = typeof id === 'string' ? byId.get(id) : undefined;
      if (undone !== undefined) undone.isUndone = true;
    }
    return;
  }
  const node = typeof event.nodeId === 'string' ? byId.get(event.nodeId) : undefined;
  if (node === undefined) return;
  if (event.type === 'node_verified') return mark(node, 'verified', event.atMs, max);
  node.state = wordOf(event.state);
  node.note = lineOf(event.message, 4_096);
  mark(node, event.state === 'compensated' ? 'undone' : 'left', event.atMs, max);
}

/** What its end means for the line of a node. */
export function markSettled(
  node: NodeTold,
  { state, message, atMs }: Extract<TurnOwnEvent, { type: 'node_settled' }>,
  max: number,
): void {
  node.note = lineOf(message, 4_096);
  if (state === 'skipped') mark(node, 'skip', atMs, max);
  if ((state === 'timed_out' || state === 'canceled') && node.marks.length > 0 && node.marks.at(-1)?.kind !== 'cut')
    mark(node, 'cut', atMs, max);
  const [first] = node.marks;
  if (state === 'defaulted' && first?.kind === 'start') node.marks[0] = { ...first, kind: 'default' };
}
