import type { TraceEvent } from '../../contract/event.ts';
import { addEvent } from '../model/add.ts';
import { emptyTrace } from '../model/empty.ts';
import { box, derived, redraw, type Box } from './box.ts';
import type { CallTold, NodeTold, TraceModel, TurnTold } from '../model.ts';

/** What the middle of the page shows. */
export const TABS = ['waterfall', 'graph', 'marbles', 'events', 'compare', 'lints'] as const;
export type Tab = (typeof TABS)[number];

/** Which turns the list shows. */
export const FILTERS = ['all', 'failed', 'retried', 'deduped'] as const;
export type Filter = (typeof FILTERS)[number];

/** How the page stands to what it shows. */
export type Connection = 'report' | 'connecting' | 'live' | 'ended' | 'lost' | 'refused';

/** Less than a program keeps: a page stays quick. */
export const model: TraceModel = emptyTrace({ turns: 300, calls: 10_000, nodes: 10_000, events: 1_000 });
/** The clock of the events; moved by frames while something is pending. */
export const nowMs: Box<number> = box(0);
export const connection: Box<Connection> = box('connecting');
/** Events that the server could not keep for this page. */
export const lost: Box<number> = box(0);
export const turnId: Box<string | undefined> = box(undefined);
export const nodeId: Box<string | undefined> = box(undefined);
export const otherId: Box<string | undefined> = box(undefined);
export const tab: Box<Tab> = box('waterfall');
export const filter: Box<Filter> = box('all');
export const words: Box<string> = box('');

const CALLS = '(calls)';

/** Calls outside of turns, as a turn of nodes. */
const looseTurn = (): TurnTold | undefined => {
  const calls = [...model.loose.values()];
  const [first] = calls;
  if (first === undefined) return undefined;
  return {
    turnId: CALLS,
    number: 0,
    startMs: first.startMs,
    timeoutMs: Infinity,
    begun: true,
    nodes: calls.map((call): NodeTold => ({
      nodeId: call.callId,
      toolName: call.toolName,
      needs: [],
      marks: [],
      attempts: call.attemptCount,
      note: call.error?.message ?? '',
      usedAlternative: false,
      startMs: call.startMs,
      ...(call.endMs === undefined ? {} : { settledMs: call.endMs }),
      ...(call.status === 'running' ? {} : { state: call.status === 'success' ? 'succeeded' : 'failed' }),
      call,
    })),
    moreNodes: 0,
    status: 'running',
    summary: '',
    escalated: [],
    lastMs: calls.reduce((last, { endMs, startMs }) => Math.max(last, endMs ?? startMs), first.startMs),
  };
};

/** The turns, newest last; calls outside of turns come first. */
export const turns: { readonly value: readonly TurnTold[] } = derived(() => {
  const loose = looseTurn();
  return [...(loose === undefined ? [] : [loose]), ...model.turns.values()];
});

const callsOf = (turn: TurnTold): CallTold[] => turn.nodes.flatMap(({ call }) => call ?? []);

const PASSES: Readonly<Record<Filter, (turn: TurnTold) => boolean>> = {
  all: () => true,
  failed: (turn) =>
    turn.nodes.some(({ state }) => state !== undefined && state !== 'succeeded' && state !== 'defaulted'),
  retried: (turn) => turn.nodes.some(({ attempts }) => attempts > 1),
  deduped: (turn) => callsOf(turn).some(({ replayed, key }) => replayed || key.some(({ step }) => step === 'waiting')),
};

/** By a tool, a tenant, a node, or how the id begins. */
const matches = (turn: TurnTold, text: string): boolean =>
  text === '' ||
  turn.turnId.startsWith(text) ||
  turn.tenant === text ||
  turn.nodes.some((node) => node.toolName.includes(text) || node.nodeId.includes(text) || node.call?.tenant === text);

export const shownTurns: { readonly value: readonly TurnTold[] } = derived(() => {
  const passes = PASSES[filter.value];
  return turns.value.filter((turn) => passes(turn) && matches(turn, words.value.trim()));
});

/** The turn that is looked at: the one that was chosen, or else the newest. */
export const turn: { readonly value: TurnTold | undefined } = derived(
  () => turns.value.find((one) => one.turnId === turnId.value) ?? turns.value.at(-1),
);

export const node: { readonly value: NodeTold | undefined } = derived(() =>
  turn.value?.nodes.find((one) => one.nodeId === nodeId.value),
);

/** Takes in events. */
export function hear(lines: readonly string[]): void {
  for (const line of lines) {
    try {
      addEvent(model, JSON.parse(line) as TraceEvent);
    } catch {
      // Not an event: a line that was cut.
    }
  }
  redraw();
}

/** Why a node is as it is: what the result says of it, or what was last heard. */
export const reasonOf = ({ reason, note, state, call }: NodeTold): string =>
  reason ?? (note || (state === 'succeeded' ? '' : (call?.error?.message ?? '')));
