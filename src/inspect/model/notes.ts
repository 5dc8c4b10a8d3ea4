import type { ToolEvent, TurnOwnEvent } from '../../contract/event.ts';
import type { NodeTold, TurnTold } from '../model.ts';
import { lineOf, progressOf, wordOf } from '../text.ts';
import { idOf, listOf, nodesById, recordOf } from './keep.ts';
import { markCompensation } from './marks.ts';

const NOTE_MAX = 4_096;

/** What an event of its call means for what a node is doing. */
export function noteCall(node: NodeTold, event: ToolEvent): void {
  if (event.type === 'attempt_failed' || event.type === 'rejected')
    node.note = lineOf(recordOf(event.error)['message'], NOTE_MAX);
  // A call that undoes is none of the node's own attempts.
  if (node.isUndone === true) return;
  node.toolName = idOf(event.toolName);
  if (event.type === 'attempt_started') {
    node.attempts++;
    node.note = '';
  } else if (event.type === 'alternative_used') node.usedAlternative = true;
  else if (event.type === 'progress') node.note = progressOf(event.report);
  else if (event.type === 'approval') node.note = event.step === 'asked' ? 'waits for a person' : '';
}

type Compensating = Extract<TurnOwnEvent, { type: 'compensation_started' | 'node_verified' | 'node_compensated' }>;

/** A turn that failed undoes what it did. */
export function noteCompensation(turn: TurnTold, event: Compensating, max: number): void {
  const nodeOf = (id: unknown): NodeTold | undefined => (typeof id === 'string' ? nodesById(turn).get(id) : undefined);
  if (event.type === 'compensation_started') {
    for (const id of listOf(event.nodes)) {
      const undone = nodeOf(id);
      if (undone !== undefined) undone.isUndone = true;
    }
    return;
  }
  const node = nodeOf(event.nodeId);
  if (node === undefined) return;
  markCompensation(node, event, max);
  if (event.type === 'node_verified') return;
  node.state = wordOf(event.state);
  node.note = lineOf(event.message, NOTE_MAX);
}
