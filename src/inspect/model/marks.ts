import type { ToolEvent, TurnOwnEvent } from '../../contract/event.ts';
import type { MarkKind, NodeTold } from '../model.ts';
import { lineOf, progressOf } from '../text.ts';
import { push, recordOf } from './keep.ts';

const mark = (node: NodeTold, kind: MarkKind, atMs: number, max: number): void => push(node.marks, { kind, atMs }, max);

const messageOf = (error: unknown): string => lineOf(recordOf(error)['message'], 4_096);

/** What an event of its call means for the line of a node. */
export function markCall(node: NodeTold, event: ToolEvent, max: number): void {
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
