import type { TurnOwnEvent } from '../../contract/event.ts';
import type { TurnStatus } from '../../contract/turn.ts';
import type { CallTold, NodeTold, TraceModel, TurnTold } from '../model.ts';
import { lineOf, wordOf } from '../text.ts';
import { idOf, listOf, makeRoom, nodesById, numberOf, push, recordOf } from './keep.ts';
import { markSettled } from './marks.ts';
import { noteCompensation } from './notes.ts';

const NEEDS_MAX = 1_000;
const MOVES_MAX = 50;

/** A turn of which nothing but its beginning is known. */
export const emptyTurn = (turnId: string, number: number, atMs: number): TurnTold => ({
  turnId,
  number,
  startMs: atMs,
  timeoutMs: Infinity,
  dueMs: Infinity,
  heldMs: 0,
  heldBy: 0,
  begun: false,
  nodes: [],
  moreNodes: 0,
  status: 'running',
  summary: '',
  escalated: [],
  moves: [],
  lastMs: atMs,
});

/** The turn of an id, begun where the trace tells of it first. */
export function turnOf(model: TraceModel, turnId: string, atMs: number): TurnTold {
  const known = model.turns.get(turnId);
  if (known !== undefined) return known;
  const turn = emptyTurn(turnId, ++model.turnCount, atMs);
  model.turns.set(turnId, turn);
  makeRoom(model);
  return turn;
}

/** The node of an id, begun where the trace tells of it first; `undefined` for one that is too much to keep. */
export function nodeOf(
  model: TraceModel,
  turn: TurnTold,
  id: unknown,
  toolName: unknown,
  needs: readonly unknown[] = [],
): NodeTold | undefined {
  if (typeof id !== 'string') return undefined;
  const known = nodesById(turn).get(id);
  if (known !== undefined) return known;
  if (turn.nodes.length >= model.limits.nodes) {
    turn.moreNodes++;
    return undefined;
  }
  const node: NodeTold = {
    nodeId: idOf(id),
    toolName: idOf(toolName),
    needs: needs.slice(0, NEEDS_MAX).map((need) => idOf(need)),
    marks: [],
    attempts: 0,
    note: '',
    usedAlternative: false,
  };
  turn.nodes.push(node);
  nodesById(turn).set(id, node);
  return node;
}

const plan = (model: TraceModel, turn: TurnTold, event: Extract<TurnOwnEvent, { type: 'turn_started' }>): void => {
  turn.startMs = event.atMs;
  turn.begun = true;
  turn.timeoutMs = numberOf(event.timeoutMs) ?? Infinity;
  turn.dueMs = event.atMs + (numberOf(event.remainingMs) ?? turn.timeoutMs);
  if (event.worker !== undefined) turn.worker = idOf(event.worker);
  for (const planned of listOf(event.nodes)) {
    const { id, toolName, needs } = recordOf(planned);
    nodeOf(model, turn, id, toolName, listOf(needs));
  }
};

/** Nobody is waited for by a call any more: the time of its turn goes on, once no other call holds it. */
export function stopWaiting(turn: TurnTold | undefined, call: CallTold, atMs: number): void {
  delete call.waitsSinceMs;
  if (call.isHolding && turn !== undefined && --turn.heldBy === 0) turn.heldMs += atMs;
  call.isHolding = false;
}

/** A turn whose start is in an earlier file has its nodes of what the rest tells. */
const settle = (model: TraceModel, turn: TurnTold, event: Extract<TurnOwnEvent, { type: 'settled' }>): void => {
  const { status, summary, nodes } = recordOf(event.result);
  turn.settledMs = event.atMs;
  turn.status = wordOf(status as TurnStatus);
  turn.summary = lineOf(summary, 4_096);
  for (const told of listOf(nodes)) {
    const { id, toolName, reason, result } = recordOf(told);
    const node = turn.begun && typeof id === 'string' ? nodesById(turn).get(id) : nodeOf(model, turn, id, toolName);
    if (node === undefined) continue;
    if (node.toolName === '') node.toolName = idOf(toolName);
    const why = lineOf(reason) || lineOf(recordOf(recordOf(result)['error'])['message']);
    if (why !== '') node.reason = why;
  }
};

const startNode = (model: TraceModel, turn: TurnTold, event: Extract<TurnOwnEvent, { type: 'node_started' }>): void => {
  const node = nodeOf(model, turn, event.nodeId, event.toolName);
  if (node === undefined) return;
  node.startMs = event.atMs;
  if (event.message !== undefined) node.defaulted = lineOf(event.message);
};

const settleNode = (
  model: TraceModel,
  turn: TurnTold,
  event: Extract<TurnOwnEvent, { type: 'node_settled' }>,
): void => {
  const node = nodeOf(model, turn, event.nodeId, event.toolName);
  if (node === undefined) return;
  node.state = wordOf(event.state);
  node.settledMs = event.atMs;
  node.note = lineOf(event.message, 4_096);
  markSettled(node, event, model.limits.marks);
};

/** It goes on elsewhere, under the same id: what ran where it was has ended with its last sign of life. */
const move = (turn: TurnTold, event: Extract<TurnOwnEvent, { type: 'turn_moved' }>): void => {
  const { atMs } = event;
  const afterMs = Math.max(0, numberOf(event.afterMs) ?? 0);
  turn.worker = idOf(event.to);
  push(turn.moves, { atMs, from: idOf(event.from), to: turn.worker, afterMs }, MOVES_MAX);
  for (const { call, settledMs } of turn.nodes) {
    if (call === undefined || settledMs !== undefined) continue;
    stopWaiting(turn, call, atMs);
    for (const attempt of call.attempts)
      if (attempt.outcome === 'running') {
        attempt.outcome = 'canceled';
        attempt.endMs = Math.max(attempt.startMs, atMs - afterMs);
      }
  }
  const ranMs = numberOf(event.ranMs);
  if (ranMs === undefined) return;
  turn.dueMs = atMs + turn.timeoutMs - ranMs;
  turn.heldMs = 0;
};

export function addTurnEvent(model: TraceModel, event: TurnOwnEvent): void {
  if (typeof event.turnId !== 'string') return;
  const turn = turnOf(model, idOf(event.turnId), event.atMs);
  turn.lastMs = event.atMs;
  switch (event.type) {
    case 'turn_started':
      return plan(model, turn, event);
    case 'node_started':
      return startNode(model, turn, event);
    case 'node_settled':
      return settleNode(model, turn, event);
    case 'deadline':
      turn.deadlineMs = event.atMs;
      return undefined;
    case 'abandoned':
      turn.settledMs = event.atMs;
      turn.status = 'abandoned';
      return undefined;
    case 'compensation_started':
    case 'node_verified':
    case 'node_compensated':
      return noteCompensation(turn, event, model.limits.marks);
    case 'turn_moved':
      return move(turn, event);
    case 'settled':
      return settle(model, turn, event);
    // What became of each undone node was told, and a turn that was left goes on elsewhere, under the same id.
    default:
      return undefined;
  }
}
