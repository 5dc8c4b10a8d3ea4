import type { TraceEvent } from '../../../contract/event.ts';
import type { RecordedAttempt } from '../trace/attempts.ts';
import type { Recording } from '../trace/recording.ts';
import type { Replayed } from './doubts.ts';
import type { Span } from './spans.ts';

/** How many of the last attempts at a tool say whether its server is sick, and how few say nothing. */
const [LAST, FEWEST] = [10, 5] as const;
/** A sick server that is asked so much more, or less, may do otherwise than it did. */
const LOAD_MAX = 0.1;

/** When at least half of the last attempts at a tool had failed, from the beginning of the one that made it half. */
const spellsOf = (attempts: readonly RecordedAttempt[]): Span[] => {
  const spells: Span[] = [];
  const last: boolean[] = [];
  let fromMs: number | undefined;
  for (const { startMs, endMs, end } of attempts.toSorted((a, b) => a.endMs - b.endMs)) {
    last.push(end !== 'success');
    if (last.length > LAST) last.shift();
    const sick = last.length >= FEWEST && last.filter(Boolean).length * 2 >= last.length;
    if (sick) fromMs ??= startMs;
    else if (fromMs !== undefined) {
      spells.push({ fromMs, toMs: endMs });
      fromMs = undefined;
    }
  }
  return fromMs === undefined ? spells : [...spells, { fromMs, toMs: Infinity }];
};

interface Ask {
  readonly callId: string;
  readonly atMs: number;
  readonly made: boolean;
}

const asksAt = (events: readonly TraceEvent[], toolName: string): Ask[] =>
  events.flatMap((event) => {
    const asks = event.type === 'attempt_started' || event.type === 'rejected';
    if (!asks || event.toolName !== toolName) return [];
    return [{ callId: event.callId, atMs: event.atMs, made: event.type === 'attempt_started' }];
  });

/** Calls at servers that were sick and are asked more, or less, by another policy. */
export interface LoadedOtherwise {
  /** From then on: more load can keep a server down long after what made it sick is over. */
  readonly more: ReadonlySet<string>;
  /** While it was sick: it may have done better. */
  readonly less: ReadonlySet<string>;
}

/** Calls whose servers were sick, and are asked more or less often than they were. */
export function loadedOtherwise({ events, attempts, tools }: Recording, runs: readonly Replayed[]): LoadedOtherwise {
  const [more, less] = [new Set<string>(), new Set<string>()];
  const byTool = Map.groupBy(attempts.values(), ({ toolName }) => toolName);
  for (const { name } of tools) {
    const all = [events, ...runs.map((run) => run.events)].map((told) => asksAt(told, name));
    for (const { fromMs, toMs } of spellsOf(byTool.get(name) ?? [])) {
      const inSpell = all.map((asks) => asks.filter(({ atMs }) => atMs >= fromMs && atMs <= toMs));
      const [was = 0, ...are] = inSpell.map((asks) => asks.filter(({ made }) => made).length);
      if (are.some((is) => is < was * (1 - LOAD_MAX))) for (const { callId } of inSpell.flat()) less.add(callId);
      if (are.some((is) => is > was * (1 + LOAD_MAX)))
        for (const { callId, atMs } of all.flat()) if (atMs >= fromMs) more.add(callId);
    }
  }
  return { more, less };
}
