import type { BreakerStateName } from '../../contract/breaker-state.ts';
import { power } from '../power.ts';
import type { BreakerSettings } from './settings.ts';
import { emptyWindow, endStreak, expireOutcomes, recordOutcome, tripped, type OutcomeWindow } from './window.ts';

/** The right to make one call. A permit of an older generation changes nothing. */
export interface Permit {
  /** The breaker's generation when the permit was given. */
  readonly generation: number;
  /** Set for a probe: the epoch whose places it takes. Revoking all probes starts a new epoch. */
  readonly probeEpoch?: number;
}

/**
 * `answered` ends a row of failures and is neutral in the window and as a probe: words alone called the failure
 * permanent. `ignored` says nothing about the dependency: a cancelled call, a hook's error.
 */
export type BreakerOutcome = 'success' | 'failure' | 'answered' | 'ignored';

/**
 * An input of a breaker's reducer. Recorded inputs, replayed, give the same states. Times are monotonic milliseconds.
 */
export type BreakerInput =
  | {
      /** Somebody asks for a call. */
      readonly type: 'admit';
      /** When, in the runtime's monotonic milliseconds, here and below. */
      readonly atMs: number;
      /** A number in [0, 1), drawn while a recovery ramps: it decides whether this call is of the share admitted. */
      readonly random?: number;
    }
  | {
      /** A permit ends. */
      readonly type: 'outcome';
      /** When. */
      readonly atMs: number;
      /** The permit that ends; one of an older generation changes no count. */
      readonly permit: Permit;
      /** How the call ended. */
      readonly outcome: BreakerOutcome;
      /** How long the call took; above `slowCallMs` a success counts as a failure for the rate. */
      readonly durationMs: number;
      /** With `failure`: the server's hint, a floor under the cooldown. */
      readonly retryAfterMs?: number;
      /** With `ignored`: this very breaker refused a call that the probe needed; see `extraProbes`. */
      readonly starved?: true;
    }
  | {
      /** A probe gave a value, and is not done. */
      readonly type: 'progress';
      /** When. */
      readonly atMs: number;
      /** The probe's permit. */
      readonly permit: Permit;
    }
  | {
      /** The breaker takes over what it has become in another process that shares it. */
      readonly type: 'adopt';
      /** When. */
      readonly atMs: number;
      /** Replaces all that the breaker knows; its times are by this process's clock. */
      readonly memory: BreakerMemory;
    }
  | {
      /** `tick`: time has passed, and nothing else has happened. The others are orders of a person. */
      readonly type: 'tick' | 'force_open' | 'reset' | 'disable';
      /** When. */
      readonly atMs: number;
    };

/** Everything a breaker knows: a fold of its inputs, and JSON. */
export interface BreakerMemory {
  /** The present state. */
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
  /** Grows when all probes are revoked: a probe of an older epoch has no place to give back. */
  readonly probeEpoch: number;
  /** When the last probe was admitted, or a probe last gave a value. */
  readonly lastProbeAtMs: number;
  /**
   * Places beside `probes`. A guarded call within a guarded call, under one breaker, would be refused by the very probe
   * that it is a part of, for ever: each probe that ended so makes room for one more (R-3.5: half-open cannot wedge).
   */
  readonly extraProbes: number;
  /** When a recovery began to ramp; absent when it does not. */
  readonly rampFromMs?: number;
}

/** The longest pause that a server can ask for; a longer hint counts as this one. */
const RETRY_AFTER_MAX_MS = 3_600_000;
/** A ramp starts here, or nothing would be admitted at its first instant. */
const RAMP_SHARE_MIN = 0.1;

/**
 * What a breaker knows before its first input: its `initialState`, without outcomes, at generation 0.
 *
 * @param settings of `breakerSettings(options)`
 */
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
    extraProbes: 0,
  };
}

const become = (memory: BreakerMemory, type: BreakerStateName, sinceMs: number): BreakerMemory => {
  const { rampFromMs: _, ...rest } = memory;
  return { ...rest, type, sinceMs, generation: memory.generation + 1, goodProbes: 0, extraProbes: 0 };
};

const open = (memory: BreakerMemory, settings: BreakerSettings, atMs: number, retryAfterMs = 0): BreakerMemory => {
  const growth = power(settings.cooldownMultiplier, memory.openings);
  const grownMs = Math.min(settings.cooldownMs * growth, settings.cooldownMaxMs);
  // A floor under the cooldown, and no way round its cap.
  const askedMs = retryAfterMs > 0 ? Math.min(retryAfterMs, RETRY_AFTER_MAX_MS, settings.cooldownMaxMs) : 0;
  return { ...become(memory, 'open', atMs), cooldownMs: Math.max(grownMs, askedMs), openings: memory.openings + 1 };
};

const close = (memory: BreakerMemory, atMs: number): BreakerMemory => ({
  ...become(memory, 'closed', atMs),
  window: emptyWindow,
  openings: 0,
});

/** Closes after good probes; a reset does not ramp. */
const recover = (memory: BreakerMemory, settings: BreakerSettings, atMs: number): BreakerMemory =>
  settings.rampMs > 0 ? { ...close(memory, atMs), rampFromMs: atMs } : close(memory, atMs);

/** When the present state ends by itself: `Infinity` if it does not. */
export function breakerDueMs(memory: BreakerMemory, settings: BreakerSettings): number {
  if (memory.type === 'open') return memory.sinceMs + memory.cooldownMs;
  // Without a probe that is out there is nothing to wait for, and so nothing that could wedge.
  if (memory.type === 'half_open' && memory.probesOut > 0)
    return Math.max(memory.sinceMs, memory.lastProbeAtMs) + settings.halfOpenTimeoutMs;
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
  if (memory.type === 'half_open') return memory.probesOut < settings.probes + memory.extraProbes;
  if (memory.rampFromMs === undefined) return memory.type === 'closed' || memory.type === 'disabled';
  return random < Math.max(RAMP_SHARE_MIN, (atMs - memory.rampFromMs) / settings.rampMs);
};

const admit = (
  memory: BreakerMemory,
  settings: BreakerSettings,
  atMs: number,
  random: number,
): readonly [BreakerMemory, Permit | undefined] => {
  if (!admits(memory, settings, atMs, random)) return [memory, undefined];
  if (memory.type !== 'half_open') return [memory, { generation: memory.generation }];
  const permit = { generation: memory.generation, probeEpoch: memory.probeEpoch };
  return [{ ...memory, probesOut: memory.probesOut + 1, lastProbeAtMs: atMs }, permit];
};

type Outcome = Extract<BreakerInput, { type: 'outcome' }>;

const isSlow = ({ durationMs }: Outcome, { slowCallMs }: BreakerSettings): boolean => durationMs > slowCallMs;

const settleProbe = (memory: BreakerMemory, settings: BreakerSettings, input: Outcome): BreakerMemory => {
  // Slow is bad here: closed by slow probes, it would be opened again by the next slow calls.
  if (input.outcome === 'failure' || isSlow(input, settings))
    return open(memory, settings, input.atMs, input.retryAfterMs);
  const goodProbes = memory.goodProbes + 1;
  return goodProbes >= settings.successThreshold ? recover(memory, settings, input.atMs) : { ...memory, goodProbes };
};

/** A probe gives its place back whatever has happened since, unless it was revoked. */
const placeBack = (memory: BreakerMemory, { permit, starved }: Outcome): BreakerMemory => {
  if (permit.probeEpoch !== memory.probeEpoch) return memory;
  const needsMore = starved === true && memory.type === 'half_open' && permit.generation === memory.generation;
  return { ...memory, probesOut: memory.probesOut - 1, extraProbes: memory.extraProbes + (needsMore ? 1 : 0) };
};

const settle = (memory: BreakerMemory, settings: BreakerSettings, input: Outcome): BreakerMemory => {
  const { permit, outcome, atMs } = input;
  const now = placeBack(memory, input);
  if (permit.generation !== now.generation || outcome === 'ignored') return now;
  // Words alone do not prove that a dependency is well: neutral as a probe, and in the window.
  if (outcome === 'answered') return now.type === 'closed' ? { ...now, window: endStreak(now.window) } : now;
  if (now.type === 'half_open') return settleProbe(now, settings, input);
  if (now.type !== 'closed') return now;
  const slow = isSlow(input, settings);
  const window = recordOutcome(now.window, settings, atMs, outcome, slow);
  const counted = { ...now, window };
  return (outcome === 'failure' || slow) && tripped(window, settings)
    ? open(counted, settings, atMs, input.retryAfterMs)
    : counted;
};

/** A stream that flows is no stuck probe: half-open's deadline is counted from its last value. */
const progress = (memory: BreakerMemory, { probeEpoch }: Permit, atMs: number): BreakerMemory =>
  memory.type === 'half_open' && probeEpoch === memory.probeEpoch ? { ...memory, lastProbeAtMs: atMs } : memory;

/** What leaves closed keeps the outcomes that still count, and no others. */
const fresh = (memory: BreakerMemory, settings: BreakerSettings, atMs: number): BreakerMemory =>
  memory.type === 'closed' ? { ...memory, window: expireOutcomes(memory.window, settings, atMs) } : memory;

/** Takes one input: the next state and, for `admit`, the permit if there is one. Pure. */
export function decideBreaker(
  memory: BreakerMemory,
  input: BreakerInput,
  settings: BreakerSettings,
): readonly [BreakerMemory, Permit | undefined] {
  const { atMs } = input;
  const now = advanceBreaker(memory, settings, atMs);
  switch (input.type) {
    case 'admit':
      return admit(now, settings, atMs, input.random ?? 0);
    case 'outcome':
      return [settle(now, settings, input), undefined];
    case 'progress':
      return [progress(now, input.permit, atMs), undefined];
    case 'adopt':
      return [input.memory, undefined];
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
