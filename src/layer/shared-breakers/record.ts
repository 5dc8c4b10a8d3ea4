import * as z from 'zod/mini';
import type { DedupeReading } from '../../contract/store.ts';
import type { OutcomeWindow } from '../../policy/breaker/window.ts';
import type { BreakerMemory } from '../../policy/breaker/reducer.ts';

/** A breaker as all processes share it, by our own clock. */
export interface SharedMemory {
  /** Of the record: who moves it names it. */
  readonly version: number;
  /**
   * The record's first version. One that is made anew after the breaker was closed has another, so that a probe of the
   * old one changes nothing.
   */
  readonly origin: number;
  readonly memory: BreakerMemory;
}

const ms = z.number().check(z.nonnegative());
const count = z.number().check(z.int(), z.nonnegative());
/** A window holds no more; see `windowSize`. */
const measured = count.check(z.maximum(10_000));

/**
 * What the reducer knows, by the store's clock. Of the window only the counts, which stand still while it is not
 * closed, and nothing else is asked for.
 */
const stateSchema = z.object({
  origin: count,
  type: z.enum(['open', 'half_open', 'closed']),
  generation: count,
  sinceMs: ms,
  cooldownMs: ms,
  openings: count,
  goodProbes: count,
  probesOut: count,
  probeEpoch: count,
  lastProbeAtMs: ms,
  extraProbes: count,
  rampFromMs: z.exactOptional(ms),
  consecutiveFailures: measured,
  measured,
  failures: measured,
});
type State = z.infer<typeof stateSchema>;

/**
 * What a record says of a breaker. One in flight is told by a process that has just found that it is open, and stands
 * for that until its lease ends: then it is half-open, as is a record that nobody can read.
 *
 * @param aheadMs how far the store's clock is ahead of ours
 */
export function sharedIn({ record, atMs }: DedupeReading, aheadMs: number): SharedMemory {
  const { version, updatedAtMs, lockUntilMs } = record;
  const told = record.state === 'inflight' ? undefined : stateIn(record.payload);
  const cooldownMs = Math.max(0, (lockUntilMs ?? updatedAtMs) - updatedAtMs);
  const state = told ?? { ...UNKNOWN, origin: version, sinceMs: updatedAtMs, cooldownMs };
  // Nothing is of the future: a store's clock that was set back would keep a breaker open for as long as it lags.
  const ours = (theirsMs: number): number => Math.min(theirsMs, atMs) - aheadMs;
  return { version, origin: state.origin, memory: memoryOf(state, ours) };
}

/** The text that a record holds of a breaker. */
export function sharedText({ origin, memory }: Omit<SharedMemory, 'version'>, aheadMs: number): string {
  const { type, generation, cooldownMs, openings, goodProbes, probesOut, probeEpoch, extraProbes } = memory;
  const { rampFromMs, window } = memory;
  const theirs = (oursMs: number): number => Math.max(0, oursMs + aheadMs);
  return JSON.stringify({
    origin,
    type,
    generation,
    cooldownMs,
    openings,
    goodProbes,
    probesOut,
    probeEpoch,
    extraProbes,
    sinceMs: theirs(memory.sinceMs),
    lastProbeAtMs: theirs(memory.lastProbeAtMs),
    ...(rampFromMs === undefined ? {} : { rampFromMs: theirs(rampFromMs) }),
    consecutiveFailures: window.streakMs.length,
    measured: window.outcomes.length,
    failures: window.failures,
  });
}

const UNKNOWN: State = {
  origin: 0,
  type: 'open',
  generation: 1,
  sinceMs: 0,
  cooldownMs: 0,
  openings: 1,
  goodProbes: 0,
  probesOut: 0,
  probeEpoch: 0,
  lastProbeAtMs: 0,
  extraProbes: 0,
  consecutiveFailures: 0,
  measured: 0,
  failures: 0,
};

const stateIn = (text: string | undefined): State | undefined => {
  try {
    return stateSchema.safeParse(JSON.parse(text ?? '')).data;
  } catch {
    return undefined;
  }
};

const memoryOf = (state: State, ours: (ms: number) => number): BreakerMemory => {
  const { origin: _, rampFromMs, consecutiveFailures, measured: total, failures, ...rest } = state;
  const sinceMs = ours(state.sinceMs);
  const window: OutcomeWindow = {
    outcomes: Array.from({ length: total }, (__, place) => ({ atMs: sinceMs, failed: place < failures })),
    oldest: 0,
    failures,
    streakMs: Array.from({ length: consecutiveFailures }, () => sinceMs),
  };
  const ramp = rampFromMs === undefined ? {} : { rampFromMs: ours(rampFromMs) };
  return { ...rest, sinceMs, lastProbeAtMs: ours(state.lastProbeAtMs), window, ...ramp };
};
