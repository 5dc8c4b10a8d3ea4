import { lineOf } from '../text.ts';
import type { CallTold, NodeTold, TraceModel, TurnTold } from '../model.ts';

/** Adds to a list that keeps its last entries. */
export function push<T>(list: T[], item: T, max: number): void {
  if (list.length >= max) list.shift();
  if (max > 0) list.push(item);
}

/** Adds to a long list that keeps its last entries: what is too old goes in pieces, since taking one out moves all. */
export function pushMany<T>(list: T[], item: T, max: number): void {
  list.push(item);
  if (list.length > max + Math.max(16, max >> 3)) list.splice(0, list.length - max);
}

/** The same with `undefined` where an optional member has no value. */
type Given<T> = { [K in keyof T]: Record<never, never> extends Pick<T, K> ? T[K] | undefined : T[K] };

/** A record without the members that have no value: an optional member is absent, never `undefined`. */
export function given<T extends object>(members: Given<T>): T {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined)) as T;
}

/** A text of an event that came from a file as a line; `undefined` for what is none. */
export function optionalLine(value: unknown, max?: number): string | undefined {
  return typeof value === 'string' ? lineOf(value, max) : undefined;
}

/** A field of an event that came from a file, where it may be anything. */
export function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? (value as readonly unknown[]) : [];
}

/** Beyond this no time can be meant, and sums of times are no numbers any more. */
const NUMBER_MAX = 1e15;

/** A number of an event that came from a file; `undefined` for what is none that can be meant. */
export function numberOf(value: unknown): number | undefined {
  return typeof value === 'number' && Math.abs(value) <= NUMBER_MAX ? value : undefined;
}

/** An id of an event that came from a file: as it is where it is one, and a harmless line where it is not. */
export function idOf(value: unknown): string {
  return lineOf(value, 256);
}

/** A record of an event that came from a file; an empty one for what is none. */
export function recordOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null ? (value as Readonly<Record<string, unknown>>) : {};
}

/** The nodes of turns by their ids as the trace has them, kept apart so that a turn is plain data. */
const INDEX = new WeakMap<TurnTold, Map<string, NodeTold>>();

export function nodesById(turn: TurnTold): Map<string, NodeTold> {
  const known = INDEX.get(turn);
  if (known !== undefined) return known;
  const made = new Map<string, NodeTold>();
  INDEX.set(turn, made);
  return made;
}

/** Forgets a call, unless another has its id by now. */
export function forgetCall({ calls, forgotten }: TraceModel, call: CallTold): void {
  if (calls.get(call.callId) === call && calls.delete(call.callId)) forgotten.calls++;
}

/** The calls of a node: its own, and the one that undoes what that did. */
export const callsOf = ({ call, undoing }: NodeTold): CallTold[] => [call ?? [], undoing ?? []].flat();

const forgetTurn = (model: TraceModel, turn: TurnTold): void => {
  model.turns.delete(turn.turnId);
  model.forgotten.turns++;
  for (const node of turn.nodes) for (const call of callsOf(node)) forgetCall(model, call);
};

/** The turn to forget first: the oldest that has ended, or else the oldest. */
const oldestTurn = ({ turns }: TraceModel): TurnTold | undefined => {
  let first: TurnTold | undefined;
  for (const turn of turns.values()) {
    if (turn.status !== 'running') return turn;
    first ??= turn;
  }
  return first;
};

const forgetLoose = (model: TraceModel, count: number): void => {
  let left = count;
  for (const [callId, call] of model.loose) {
    if (left-- <= 0) return;
    model.loose.delete(callId);
    forgetCall(model, call);
  }
};

/** Makes room: never for what has just come, which is the newest. */
export function makeRoom(model: TraceModel): void {
  const { limits, turns, calls, loose } = model;
  while (turns.size > limits.turns) {
    const turn = oldestTurn(model);
    if (turn === undefined) break;
    forgetTurn(model, turn);
  }
  while (calls.size > limits.calls) {
    const turn = turns.size > 1 && loose.size * 2 <= limits.calls ? oldestTurn(model) : undefined;
    if (turn !== undefined) forgetTurn(model, turn);
    else if (loose.size > 0) forgetLoose(model, Math.max(1, limits.calls >> 5));
    else break;
  }
}
