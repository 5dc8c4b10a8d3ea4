import type { BreakerStateName } from '../contract/breaker-state.ts';
import type { BreakerSettings } from './breaker-settings.ts';
import { emptyWindow, expireOutcomes, recordOutcome, tripped, type OutcomeWindow } from './breaker-window.ts';

/** The right to make one call. A permit of an older generation changes nothing. */
export interface Permit {
  readonly generation: number;
  /** Set for a probe: the epoch whose places it takes. Revoking all probes starts a new epoch. */
  readonly probeEpoch?: number;
}

/** `ignored` says nothing about the dependency: a cancelled call, a hook's error. */
export type BreakerOutcome = 'success' | 'failure' | 'ignored';

/** What a breaker is told. Recorded inputs, replayed, give the same states. Times are monotonic milliseconds. */
export type BreakerInput =
  /** `random` is drawn while a recovery ramps. */
  | { readonly type: 'admit'; readonly atMs: number; readonly random?: number }
  | {
      readonly type: 'outcome';
      readonly atMs: number;
      readonly permit: Permit;
      readonly outcome: BreakerOutcome;
      readonly durationMs: number;
      /** With `failure`: the server's hint, a floor under the cooldown. */
      readonly retryAfterMs?: number;
    }
  | { readonly type: 'tick' | 'force_open' | 'reset' | 'disable'; readonly atMs: number };

/** Everything a breaker knows: a fold of its inputs, and JSON. */
export interface BreakerMemory {
  readonly type: BreakerStateName;
  /** Grows with each change of `type`. */
  readonly generation: number;
  /** When `type` became what it is. */
  readonly sinceMs: number;
  /** The outcomes while closed, kept while open. */
  readonly window: OutcomeWindow;
  /** Of the present or the last open period. */
  readonly cooldownMs: number;
  /** Open periods since it was last closed. */
  readonly openings: number;
  /** Good probes in a row. */
  readonly goodProbes: number;
  /** Probes that are running, those of earlier half-open periods included. */
  readonly probesOut: number;
  readonly probeEpoch: number;
  /** When the last probe was admitted. */
  readonly lastProbeAtMs: number;
  /** When a recovery began to ramp; absent when it does not. */
  readonly rampFromMs?: number;
}

/** A server may ask for a pause of up to this long; what it asks beyond is not believed. */
const RETRY_AFTER_MAX_MS = 3_600_000;
/** A ramp starts here, or nothing would be admitted at its first instant. */
const RAMP_SHARE_MIN = 0.1;

export function initialBreaker(settings: BreakerSettings): BreakerMemory {
  return {
    type: settings.initialState,
    generation: 0,
    sinceMs: 0,
    window: emptyWindow,
    cooldownMs: settings.cooldownMs,
    openings: 0,
    goodProbes: 0,
    probesOut: 0,
    probeEpoch: 0,
    lastProbeAtMs: 0,
  };
}

const become = (memory: BreakerMemory, type: BreakerStateName, sinceMs: number): BreakerMemory => {
  const { rampFromMs: _, ...rest } = memory;
  return { ...rest, type, sinceMs, generation: memory.generation + 1, goodProbes: 0 };
};

const open = (memory: BreakerMemory, settings: BreakerSettings, atMs: number, retryAfterMs = 0): BreakerMemory => {
  // Bounded: nothing times infinity would be no number, and a cooldown without end.
  const growth = Math.min(settings.cooldownMultiplier ** memory.openings, Number.MAX_VALUE);
  const grownMs = Math.min(settings.cooldownMs * growth, settings.cooldownMaxMs);
  const askedMs = retryAfterMs > 0 ? Math.min(retryAfterMs, RETRY_AFTER_MAX_MS) : 0;
  return { ...become(memory, 'open', atMs), cooldownMs: Math.max(grownMs, askedMs), openings: memory.openings + 1 };
};

const close = (memory: BreakerMemory, atMs: number): BreakerMemory => ({ ...become(memory, 'closed', atMs), window: emptyWindow, openings: 0 });

/** Closes after good probes; a reset does not ramp. */
const recover = (memory: BreakerMemory, settings: BreakerSettings, atMs: number): BreakerMemory =>
  settings.rampMs > 0 ? { ...close(memory, atMs), rampFromMs: atMs } : close(memory, atMs);

/** When the present state ends by itself: `Infinity` if it does not. */
export function breakerDueMs(memory: BreakerMemory, settings: BreakerSettings): number {
  if (memory.type === 'open') return memory.sinceMs + memory.cooldownMs;
  // Without a probe that is out there is nothing to wait for, and so nothing that could wedge.
  if (memory.type === 'half_open' && memory.probesOut > 0) return Math.max(memory.sinceMs, memory.lastProbeAtMs) + settings.halfOpenTimeoutMs;
  return Infinity;
}

/** The state at an instant: what time alone has changed. */
export function advanceBreaker(memory: BreakerMemory, settings: BreakerSettings, atMs: number): BreakerMemory {
  let now = memory;
  for (let dueMs = breakerDueMs(now, settings); dueMs <= atMs; dueMs = breakerDueMs(now, settings)) {
    if (now.type === 'open') now = become(now, 'half_open', dueMs);
    else now = { ...open(now, settings, dueMs), probesOut: 0, probeEpoch: now.probeEpoch + 1 };
  }
  return now;
}

const admits = (memory: BreakerMemory, settings: BreakerSettings, atMs: number, random: number): boolean => {
  if (memory.type === 'half_open') return memory.probesOut < settings.probes;
  if (memory.rampFromMs === undefined) return memory.type === 'closed' || memory.type === 'disabled';
  return random < Math.max(RAMP_SHARE_MIN, (atMs - memory.rampFromMs) / settings.rampMs);
};

const admit = (memory: BreakerMemory, settings: BreakerSettings, atMs: number, random: number): readonly [BreakerMemory, Permit | undefined] => {
  if (!admits(memory, settings, atMs, random)) return [memory, undefined];
  if (memory.type !== 'half_open') return [memory, { generation: memory.generation }];
  const permit = { generation: memory.generation, probeEpoch: memory.probeEpoch };
  return [{ ...memory, probesOut: memory.probesOut + 1, lastProbeAtMs: atMs }, permit];
};

const settle = (memory: BreakerMemory, settings: BreakerSettings, input: Extract<BreakerInput, { type: 'outcome' }>): BreakerMemory => {
  const { permit, outcome, atMs } = input;
  // A probe gives its place back whatever has happened since, unless it was revoked.
  const now = permit.probeEpoch === memory.probeEpoch ? { ...memory, probesOut: memory.probesOut - 1 } : memory;
  if (permit.generation !== now.generation || outcome === 'ignored') return now;
  if (now.type === 'half_open') {
    if (outcome === 'failure') return open(now, settings, atMs, input.retryAfterMs);
    const goodProbes = now.goodProbes + 1;
    return goodProbes >= settings.successThreshold ? recover(now, settings, atMs) : { ...now, goodProbes };
  }
  if (now.type !== 'closed') return now;
  const slow = input.durationMs > settings.slowCallMs;
  const window = recordOutcome(now.window, settings, atMs, outcome, slow);
  const counted = { ...now, window };
  return (outcome === 'failure' || slow) && tripped(window, settings) ? open(counted, settings, atMs, input.retryAfterMs) : counted;
};

/** What leaves closed keeps the outcomes that still count, and no others. */
const fresh = (memory: BreakerMemory, settings: BreakerSettings, atMs: number): BreakerMemory =>
  memory.type === 'closed' ? { ...memory, window: expireOutcomes(memory.window, settings, atMs) } : memory;

/** Takes one input: the next state and, for `admit`, the permit if there is one. Pure. */
export function decideBreaker(memory: BreakerMemory, input: BreakerInput, settings: BreakerSettings): readonly [BreakerMemory, Permit | undefined] {
  const { atMs } = input;
  const now = advanceBreaker(memory, settings, atMs);
  switch (input.type) {
    case 'admit':
      return admit(now, settings, atMs, input.random ?? 0);
    case 'outcome':
      return [settle(now, settings, input), undefined];
    case 'tick':
      return [now, undefined];
    case 'force_open':
      return [become(fresh(now, settings, atMs), 'forced_open', atMs), undefined];
    case 'disable':
      return [become(fresh(now, settings, atMs), 'disabled', atMs), undefined];
    case 'reset':
      return [close(now, atMs), undefined];
  }
}

/**
 * The state after one input: what `scan` folds.
 *
 * @example
 * from(recordedInputs).pipe(scan((memory, input) => reduceBreaker(memory, input, settings), initialBreaker(settings)));
 */
export function reduceBreaker(memory: BreakerMemory, input: BreakerInput, settings: BreakerSettings): BreakerMemory {
  return decideBreaker(memory, input, settings)[0];
}
