import type { ToolEvent } from '../../../contract/event.ts';
import { breakerSettings, type BreakerSettings } from '../../../policy/breaker/settings.ts';
import { policyOf, type LayerPolicies } from '../policies.ts';
import { rampTroubles } from './ramps.ts';
import type { RecordedAttempt } from '../trace/attempts.ts';
import type { Recording } from '../trace/recording.ts';
import type { Replayed } from './doubts.ts';
import { spansOf, type Span, type Trouble } from './spans.ts';

/** A state of a breaker from an instant on. */
interface Change {
  readonly atMs: number;
  readonly to: string;
}

const CLOSED = 'closed';

/** What each breaker, by its key and scope, became and when. */
const changesIn = ({ events }: Replayed): Map<string, Change[]> => {
  const changes = new Map<string, Change[]>();
  for (const event of events) {
    if (event.type !== 'breaker_changed') continue;
    const name = `${event.toolName}\n${event.scope}`;
    const own = changes.get(name);
    if (own === undefined) changes.set(name, [event]);
    else own.push(event);
  }
  return changes;
};

/** When not all runs had a breaker in the same state. */
const disagreements = (runs: ReadonlyArray<readonly Change[]>): Span[] => {
  const all = runs.flatMap((changes, run) => changes.map(({ atMs, to }) => ({ atMs, to, run })));
  const states = runs.map(() => CLOSED);
  const spans: Span[] = [];
  let fromMs: number | undefined;
  for (const { atMs, to, run } of all.toSorted((a, b) => a.atMs - b.atMs)) {
    states[run] = to;
    const agree = states.every((state) => state === states[0]);
    if (!agree) fromMs ??= atMs;
    else if (fromMs !== undefined) {
      if (atMs > fromMs) spans.push({ fromMs, toMs: atMs });
      fromMs = undefined;
    }
  }
  return fromMs === undefined ? spans : [...spans, { fromMs, toMs: Infinity }];
};

const stateAt = (changes: readonly Change[], atMs: number): string =>
  changes.findLast((change) => change.atMs <= atMs)?.to ?? CLOSED;

type Outcome = Extract<ToolEvent, { type: 'attempt_succeeded' | 'attempt_failed' }>;

/** Whether it may count against a breaker. */
const isBad = (event: Outcome, slowCallMs: number): boolean =>
  (event.type === 'attempt_failed' && event.classification === 'transient') || event.durationMs >= slowCallMs;

/** What tools behind a breaker did in one run: what is known, and when what is not known may have ended. */
interface Course {
  readonly known: readonly Outcome[];
  readonly unknown: readonly Span[];
}

const courseOf = ({ events, doubts }: Replayed, tools: ReadonlySet<string>, longestMs: number): Course => {
  const byCall = Map.groupBy(
    doubts.filter(({ toolName }) => tools.has(toolName)),
    ({ callId }) => callId,
  );
  const startMs = new Map<string, number>();
  const known: Outcome[] = [];
  const unknown: Span[] = [];
  for (const event of events) {
    if (event.source !== 'call' || !tools.has(event.toolName)) continue;
    if (event.type === 'attempt_started') startMs.set(event.callId, event.atMs);
    if (event.type !== 'attempt_succeeded' && event.type !== 'attempt_failed') continue;
    const fromMs = startMs.get(event.callId) ?? 0;
    const doubt = byCall.get(event.callId)?.find(({ atMs }) => atMs >= fromMs && atMs <= event.atMs);
    if (doubt === undefined) known.push(event);
    else unknown.push({ fromMs: doubt.atMs, toMs: Math.max(event.atMs, fromMs + longestMs) });
  }
  return { known, unknown };
};

/** Far less than any two instants are apart. */
const AN_INSTANT_MS = 1e-6;

/** How many of them are below that, of numbers in order. */
const below = (sorted: Float64Array, limit: number): number => {
  let [low, high] = [0, sorted.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((sorted[middle] ?? Infinity) < limit) low = middle + 1;
    else high = middle;
  }
  return low;
};

/** How many spans touch a time. */
const overlaps = (spans: readonly Span[]): ((fromMs: number, toMs: number) => number) => {
  const starts = Float64Array.from(spans, (span) => span.fromMs).toSorted();
  const ends = Float64Array.from(spans, (span) => span.toMs).toSorted();
  // What has begun by then, the instant itself included, but for what had ended before.
  return (fromMs, toMs) => below(starts, toMs + AN_INSTANT_MS) - below(ends, fromMs);
};

/**
 * Instants at which a breaker whose window began at any earlier outcome could have opened, if all that is unknown
 * failed at the worst time. Where it could not have without the unknown, nobody knows its state from then on.
 */
const hazards = ({ known, unknown }: Course, settings: BreakerSettings): Trouble[] => {
  const { failureThreshold, failureRate, minimumCalls, slowCallMs } = settings;
  const unknownIn = overlaps(unknown);
  const found: Trouble[] = [];
  const last: Array<{ readonly bad: boolean; readonly atMs: number }> = [];
  let [inARow, goodMs] = [0, -Infinity];
  const note = (atMs: number): void => {
    // A window of more holds one of the least size with as great a share.
    const windowMs = last[0]?.atMs ?? -Infinity;
    const [inRow, inWindow] = [unknownIn(goodMs, atMs), unknownIn(windowMs, atMs)];
    const rate = (last.filter(({ bad }) => bad).length + inWindow) / minimumCalls;
    const enough = last.length + inWindow >= minimumCalls;
    const [row, share] = [inARow + inRow >= failureThreshold, enough && rate >= failureRate];
    const begins = (row && inRow > 0) || (share && inWindow > 0);
    const fromMs = begins ? Math.max(0, Math.min(row ? goodMs : atMs, share ? windowMs : atMs)) : atMs;
    if (row || share) found.push({ fromMs, toMs: atMs, begins });
  };
  const steps = [...known, ...unknown.map(({ toMs }) => ({ atMs: toMs }))];
  for (const step of steps.toSorted((a, b) => a.atMs - b.atMs)) {
    if ('type' in step) {
      const bad = isBad(step, slowCallMs);
      inARow = bad ? inARow + 1 : 0;
      if (!bad) goodMs = step.atMs;
      last.push({ bad, atMs: step.atMs });
      if (last.length > minimumCalls) last.shift();
    }
    note(step.atMs);
  }
  return found;
};

/** How long a breaker may stay other than closed after what opened it: its cooldown, and its probes one by one. */
const tailOf = (settings: BreakerSettings, timeoutMs: number): number => {
  const { cooldownMs, cooldownMultiplier, cooldownMaxMs, successThreshold, rampMs } = settings;
  const longestMs = cooldownMultiplier > 1 ? cooldownMaxMs : cooldownMs;
  return longestMs + successThreshold * timeoutMs + rampMs;
};

/** How long the longest attempt at each tool took. */
const longestIn = (attempts: Iterable<RecordedAttempt>): Map<string, number> => {
  const longest = new Map<string, number>();
  for (const { toolName, durationMs } of attempts)
    longest.set(toolName, Math.max(durationMs, longest.get(toolName) ?? 0));
  return longest;
};

/**
 * By the keys of breakers: when nobody knows in which state they would be. That begins where what is assumed makes a
 * difference to its state, or could make one, and it ends when failures have been too few to open it for as long as it
 * could stay open.
 */
export function unsureBreakers(
  { attempts, events, tools: recorded }: Recording,
  runs: readonly Replayed[],
  { tools }: LayerPolicies,
): Map<string, readonly Span[]> {
  const changes = runs.map(changesIn);
  const longest = longestIn(attempts.values());
  const byKey = Map.groupBy(tools, ({ name, breakerKey }) => breakerKey ?? name);
  const spans = new Map<string, readonly Span[]>();
  for (const [key, own] of byKey) {
    const guarded = own.find(({ policy }) => policy.breaker !== undefined);
    const breaker = guarded === undefined ? false : policyOf(guarded).breaker;
    if (guarded === undefined || breaker === false) continue;
    const settings = breakerSettings(breaker);
    const names = new Set(own.map(({ name }) => name));
    const scopes = new Set(changes.flatMap((all) => [...all.keys()].filter((name) => name.startsWith(`${key}\n`))));
    const troubles: Trouble[] = [...scopes].flatMap((scope) => {
      const states = changes.map((all) => all.get(scope) ?? []);
      const unknown = runs.flatMap(({ doubts }, run) =>
        doubts
          .filter(({ toolName, atMs }) => names.has(toolName) && stateAt(states[run] ?? [], atMs) !== CLOSED)
          .map(({ atMs }) => ({ fromMs: atMs, toMs: atMs })),
      );
      return [...disagreements(states), ...unknown].map((span) => ({ ...span, begins: true }));
    });
    const longestMs = Math.max(...own.map(({ name, policy }) => Math.min(policy.timeoutMs, longest.get(name) ?? 0)));
    for (const run of runs) troubles.push(...hazards(courseOf(run, names, longestMs), settings));
    const before = recorded.find(({ name }) => name === guarded.name)?.policy.breaker?.rampMs ?? 0;
    const ramping = { tools: names, before, after: settings.rampMs };
    for (const breaker of scopes)
      for (const run of runs) troubles.push(...rampTroubles(events, run.events, { breaker, ...ramping }));
    spans.set(key, spansOf(troubles, tailOf(settings, longestMs)));
  }
  return spans;
}
