import type { TraceEvent } from '../../contract/event.ts';
import { addEvent } from '../model/add.ts';
import { emptyTrace } from '../model/empty.ts';
import { emptyTurn } from '../model/turns.ts';
import { again, box, derived, redraw, type Box } from './box.ts';
import type { CallTold, NodeTold, TraceModel, TurnTold } from '../model.ts';

/** What the middle of the page shows. */
export type Tab = 'waterfall' | 'graph' | 'marbles' | 'events' | 'compare' | 'lints';

/** Which turns the list shows. */
export type Filter = 'all' | 'failed' | 'retried' | 'deduped';

/** How the page stands to what it shows. */
export type Connection = 'report' | 'connecting' | 'live' | 'ended' | 'lost' | 'refused';

/** Less than a program keeps: a page stays quick. */
const emptyModel = (): TraceModel => emptyTrace({ turns: 300, calls: 10_000, nodes: 10_000, events: 1_000 });
export let model: TraceModel = emptyModel();
export const connection: Box<Connection> = box('connecting');
/** Events that the server could not keep for this page. */
export const lost: Box<number> = box(0);
export const turnId: Box<string | undefined> = box(undefined);
export const nodeId: Box<string | undefined> = box(undefined);
/** What the turn is compared with; empty: what suggests itself. */
export const other: Box<string> = box('');
export const tab: Box<Tab> = box('waterfall');
export const filter: Box<Filter> = box('all');
export const words: Box<string> = box('');
/** Only its turns are listed; empty: those of all. */
export const tenant: Box<string> = box('');

/** What this page's clock is ahead of the events'; it is not finite where that is not known, and time stands still. */
let aheadMs = Infinity;
/** In each message the least that was ever seen grows by this, so that a clock that was set is believed in the end. */
const DRIFT_MS = 5;
/** Now on the clock of the events, the same for all of a drawing. */
export let nowMs = 0;

const isTicking = (): boolean => connection.held === 'live' && aheadMs < Infinity;

/** What the server says of the time. What comes late makes the page seem further ahead than it is: the least counts. */
export function hearTime(atMs?: number): void {
  aheadMs = atMs === undefined ? Infinity : Math.min(aheadMs + DRIFT_MS, performance.now() - atMs);
}

/** Looks at the clock, for the drawing that begins. */
export function look(): void {
  nowMs = isTicking() ? performance.now() - aheadMs : model.lastMs;
}

/** Now, for what moves while time goes by: it is drawn again with the next frame. */
export function movingMs(): number {
  if (isTicking()) again();
  return nowMs;
}

const CALLS = '(calls)';

/** Counts what was heard: what was worked out of less holds no more. */
export let news = 0;

const isOfTenant = (one: TurnTold | CallTold): boolean => tenant.held === '' || one.tenant === tenant.held;

/** Calls outside of turns, as a turn of nodes. */
const looseTurn = (): TurnTold | undefined => {
  const calls = [...model.loose.values()].filter(isOfTenant);
  const [first] = calls;
  if (first === undefined) return undefined;
  const turn = emptyTurn(CALLS, 0, first.startMs);
  for (const call of calls) {
    const { callId, toolName, attemptCount, error, startMs, endMs, status } = call;
    const node: NodeTold = {
      nodeId: callId,
      toolName,
      needs: [],
      marks: [],
      attempts: attemptCount,
      note: error?.message ?? '',
      usedAlternative: false,
      startMs,
      call,
    };
    if (endMs !== undefined) {
      node.settledMs = endMs;
      node.state = status === 'success' ? 'succeeded' : 'failed';
    }
    turn.nodes.push(node);
    turn.lastMs = Math.max(turn.lastMs, endMs ?? startMs);
  }
  return turn;
};

/** The turns, newest last; calls outside of turns come first. */
export const turns: { readonly held: readonly TurnTold[] } = derived(
  () => {
    const loose = looseTurn();
    return [...(loose === undefined ? [] : [loose]), ...model.turns.values()];
  },
  () => news + tenant.held,
);

/** Whether a node has a value. */
export const isWell = (state: string | undefined): boolean => state === 'succeeded' || state === 'defaulted';

/** Which turns pass which filter. */
export const PASSES: Readonly<Record<Filter, (turn: TurnTold) => boolean>> = {
  all: () => true,
  failed: (turn) => turn.nodes.some(({ state }) => state !== undefined && !isWell(state)),
  retried: (turn) => turn.nodes.some(({ attempts }) => attempts > 1),
  deduped: (turn) =>
    turn.nodes.some(
      ({ call }) => call !== undefined && (call.replayed || call.key.some(({ step }) => step === 'waiting')),
    ),
};

/** By a tool, a node, or how the id begins. */
const matches = (turn: TurnTold, text: string): boolean =>
  turn.turnId.startsWith(text) || turn.nodes.some(({ toolName, nodeId: id }) => `${toolName} ${id}`.includes(text));

/** The tenants of turns and of calls outside of turns, in their order. */
export const tenants: { readonly held: ReadonlySet<string> } = derived(
  () => new Set([...model.turns.values(), ...model.loose.values()].flatMap(({ tenant: of }) => of ?? [])),
  () => news,
);

export const shownTurns: { readonly held: readonly TurnTold[] } = derived(() =>
  turns.held.filter(
    (turn) =>
      PASSES[filter.held](turn) &&
      (turn.number === 0 || isOfTenant(turn)) &&
      words.held.split(' ').every((word) => matches(turn, word)),
  ),
);

/** The turn that is looked at: the one that was chosen, or else the newest. */
export const turn: { readonly held: TurnTold | undefined } = derived(
  () => turns.held.find((one) => one.turnId === turnId.held) ?? turns.held.at(-1),
);

export const node: { readonly held: NodeTold | undefined } = derived(() =>
  turn.held?.nodes.find((one) => one.nodeId === nodeId.held),
);

/** Forgets what was heard. */
export function empty(): void {
  news++;
  model = emptyModel();
  lost.held = 0;
}

/** Takes in events. */
export function hear(lines: readonly string[]): void {
  for (const line of lines) {
    try {
      addEvent(model, JSON.parse(line) as TraceEvent);
    } catch {
      // Not an event: a line that was cut.
    }
  }
  news++;
  redraw();
}

/** Why a node is as it is: what the result says of it, or what was last heard. */
export const reasonOf = ({ reason, note, state, call }: NodeTold): string =>
  reason ?? (note || (state === 'succeeded' ? '' : (call?.error?.message ?? '')));

/** A word of ours for people. */
export const worded = (word: string | undefined): string | undefined => word?.replaceAll('_', ' ');

/** What a row is called: a call outside of turns has no node, and nobody knows it by its id. */
export const titleOf = ({ nodeId: id, toolName }: NodeTold): string => (turn.held?.number ? id : toolName);
