import type { DedupeReading } from '../../contract/store.ts';
import type { OutcomeWindow } from '../../policy/breaker/window.ts';
import type { BreakerMemory } from '../../policy/breaker/reducer.ts';
import { fitting, maybe, number, object, oneOf, type Members, type Shape } from '../../policy/shape/parts.ts';

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

/** What the reducer knows, by the store's clock; of the window, which stands still while not closed, the counts. */
interface State extends Omit<BreakerMemory, 'type' | 'window'> {
  readonly type: Exclude<BreakerMemory['type'], 'forced_open' | 'disabled'>;
  readonly origin: number;
  readonly consecutiveFailures: number;
  readonly measured: number;
  readonly failures: number;
}

const ms: Shape<number> = number(0, Number.MAX_VALUE);
const count: Shape<number> = number(0, Infinity, 'whole');
/** A window holds no more; see `windowSize`. */
const measured: Shape<number> = number(0, 10_000, 'whole');

const MEMBERS: Members<State> = {
  origin: count,
  type: oneOf<State['type']>('open', 'half_open', 'closed'),
  generation: count,
  sinceMs: ms,
  cooldownMs: ms,
  openings: count,
  goodProbes: count,
  probesOut: count,
  probeEpoch: count,
  lastProbeAtMs: ms,
  extraProbes: count,
  rampFromMs: maybe(ms),
  consecutiveFailures: measured,
  measured,
  failures: measured,
};

/** Members that a later version adds are passed over. */
const known = (value: unknown): unknown =>
  typeof value === 'object' && value !== null
    ? Object.fromEntries(Object.entries(value).filter(([name]) => Object.hasOwn(MEMBERS, name)))
    : value;

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
  const { window, rampFromMs, ...rest } = memory;
  const theirs = (oursMs: number): number => Math.max(0, oursMs + aheadMs);
  return JSON.stringify({
    origin,
    ...rest,
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
    return fitting(object(MEMBERS), known(JSON.parse(text ?? '')));
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
