import type { ToolEvent } from '../../../contract/event.ts';
import type { LayerPolicies } from '../policies.ts';
import type { Recording } from '../trace/recording.ts';
import type { Replayed } from './doubts.ts';
import { unsureBreakers } from './breakers.ts';
import { loadedOtherwise } from './load.ts';
import { spansOf, within, type Span } from './spans.ts';

/** Calls of which it is not known how they end under another policy. */
export interface UnsureCalls {
  /** Those of them that may make no attempt at all: whether a breaker admits them is not known either. */
  readonly unadmitted: ReadonlySet<string>;
  readonly all: ReadonlySet<string>;
  /** Calls at a sick server that is spared: they may do better. */
  readonly spared: ReadonlySet<string>;
}

const callEvents = ({ events }: Pick<Replayed, 'events'>): ToolEvent[] =>
  events.filter((event) => event.source === 'call');

/** Calls that ask a breaker, or are decided about by its state, while that is not known. */
const atBreakers = (recording: Recording, runs: readonly Replayed[], policies: LayerPolicies): Set<string> => {
  const spans = unsureBreakers(recording, runs, policies);
  const keys = new Map(policies.tools.map(({ name, breakerKey }) => [name, breakerKey ?? name]));
  const asks = new Set(['attempt_started', 'rejected', 'decision']);
  const isUnsure = ({ type, toolName, atMs }: ToolEvent): boolean =>
    asks.has(type) && within(spans.get(keys.get(toolName) ?? toolName) ?? [], atMs);
  return new Set(runs.flatMap((run) => callEvents(run).filter(isUnsure)).map(({ callId }) => callId));
};

/** When the budget that all retries share was spent, and it is not known who had spent it. */
const spentBudget = (runs: readonly Replayed[], { retryBudget }: LayerPolicies): Span[] => {
  if (retryBudget === undefined) return [];
  const sinceMs = Math.min(...runs.flatMap(({ doubts }) => doubts.map(({ atMs }) => atMs)));
  const refusals = runs
    .flatMap(callEvents)
    .filter(
      ({ type, atMs, ...event }) =>
        type === 'decision' && 'code' in event && event.code === 'budget_exhausted' && atMs >= sinceMs,
    );
  return spansOf(
    refusals.map(({ atMs }) => ({ fromMs: atMs, toMs: atMs, begins: true })),
    retryBudget.windowMs,
  );
};

const atBudget = (runs: readonly Replayed[], policies: LayerPolicies): string[] => {
  const spans = spentBudget(runs, policies);
  if (spans.length === 0) return [];
  const asked = runs.flatMap(callEvents).filter(({ type, atMs }) => type === 'decision' && within(spans, atMs));
  return asked.map(({ callId }) => callId);
};

/** What hangs on the calls of a set: nodes of their turns that begin later, and calls under their keys. */
const withFollowers = (calls: ReadonlySet<string>, runs: readonly Replayed[], { keys }: Recording): Set<string> => {
  const all = new Set(calls);
  const names = new Set([...calls].flatMap((callId) => keys.get(callId)?.name ?? []));
  for (const [callId, { name }] of keys) if (names.has(name)) all.add(callId);
  for (const run of runs) {
    const turns = new Set<string>();
    for (const event of callEvents(run)) {
      if (event.type !== 'call_started' || event.turnId === undefined) continue;
      if (turns.has(event.turnId)) all.add(event.callId);
      if (all.has(event.callId)) turns.add(event.turnId);
    }
  }
  return all;
};

/**
 * The calls whose end hangs on what the trace does not tell: on an attempt of their own, on a breaker or a budget that
 * such attempts of others bring into another state, on a sick server that is asked more or less often than it was, or
 * on another call.
 */
export function unsureCalls(recording: Recording, runs: readonly Replayed[], policies: LayerPolicies): UnsureCalls {
  const own = runs.flatMap(({ doubts }) => doubts.map(({ callId }) => callId));
  const admission = atBreakers(recording, runs, policies);
  const { more, less } = loadedOtherwise(recording, runs);
  const unadmitted = withFollowers(new Set([...admission, ...more]), runs, recording);
  const all = withFollowers(new Set([...own, ...unadmitted, ...atBudget(runs, policies)]), runs, recording);
  return { unadmitted, all, spared: withFollowers(less, runs, recording) };
}
