import type { LayerEvent, ToolEvent, TraceEvent, TurnOwnEvent } from '../../contract/event.ts';
import type { TraceModel } from '../model.ts';
import { lineOf, wordOf } from '../text.ts';
import { idOf, numberOf, push } from './keep.ts';

/** Nodes for which a person has to choose: of more the last are named. */
const ESCALATED_MAX = 100;
const BUDGETS_MAX = 50;

const ofLayer = (model: TraceModel, event: LayerEvent): void => {
  const { atMs } = event;
  if (event.type === 'layer_started') model.version = lineOf(event.version, 32);
  else if (event.type === 'store_changed')
    model.store = { atMs, state: lineOf(event.state, 32), message: lineOf(event.message) };
  else if (event.type === 'budget') {
    const [left, limit] = [numberOf(event.left) ?? 0, numberOf(event.limit) ?? 0];
    const { step, per, unit, scope } = event;
    const told = { atMs, step: wordOf(step), per: wordOf(per), scope: idOf(scope), unit: wordOf(unit), limit, left };
    push(model.budgets, told, BUDGETS_MAX);
  }
};

const ofTurn = (model: TraceModel, event: TurnOwnEvent): void => {
  const turn = model.turns.get(idOf(event.turnId));
  if (turn === undefined) return;
  const concurrency = event.type === 'turn_started' ? numberOf(event.concurrency) : undefined;
  if (concurrency !== undefined) turn.concurrency = concurrency;
  if (event.type === 'deadline') turn.onDeadline = wordOf(event.onDeadline);
  if (event.type === 'escalated') push(turn.escalated, idOf(event.nodeId), ESCALATED_MAX);
};

const ofCall = (model: TraceModel, event: ToolEvent): void => {
  const call = model.calls.get(idOf(event.callId));
  if (call === undefined) return;
  if (event.type === 'call_started' && event.session !== undefined) call.session = idOf(event.session);
  if (event.type === 'verified') call.isVerified = true;
  if (event.type === 'approval') call.isGated = true;
};

/** What programs and texts need, and the page does not show: its model is made without this. */
export function addUnseen(model: TraceModel, event: TraceEvent): void {
  if (event.source === 'layer') ofLayer(model, event);
  else if (event.source === 'turn') ofTurn(model, event);
  else if (event.source === 'call') ofCall(model, event);
}
