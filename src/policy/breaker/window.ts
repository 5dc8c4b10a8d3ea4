import type { BreakerSettings } from './settings.ts';

interface Outcome {
  readonly atMs: number;
  readonly failed: boolean;
}

/** The outcomes that the two opening rules look at. */
export interface OutcomeWindow {
  /** A ring once it is full: a copy with one place overwritten costs far less than one that moves them all. */
  readonly outcomes: readonly Outcome[];
  /** The place of the oldest one. */
  readonly oldest: number;
  /** How many of them failed. */
  readonly failures: number;
  /** When each of the last failures in a row happened. */
  readonly streakMs: readonly number[];
}

export const emptyWindow: OutcomeWindow = { outcomes: [], oldest: 0, failures: 0, streakMs: [] };

/** Failures in a row are counted up to here when no threshold needs them. */
const STREAK_MAX = 100;

/** The window at an instant: without what is older than `windowMs`. A gap in traffic expires what came before it. */
export function expireOutcomes(window: OutcomeWindow, settings: BreakerSettings, atMs: number): OutcomeWindow {
  const fromMs = atMs - settings.windowMs;
  const { outcomes, oldest, streakMs } = window;
  if ((outcomes[oldest]?.atMs ?? atMs) >= fromMs && (streakMs[0] ?? atMs) >= fromMs) return window;
  const kept = [...outcomes.slice(oldest), ...outcomes.slice(0, oldest)].filter((outcome) => outcome.atMs >= fromMs);
  return {
    outcomes: kept,
    oldest: 0,
    failures: kept.filter(({ failed }) => failed).length,
    streakMs: streakMs.filter((failedAtMs) => failedAtMs >= fromMs),
  };
}

const NO_STREAK: readonly number[] = [];

/** The window with one more outcome. A slow success counts as a failure for the rate alone. */
export function recordOutcome(
  window: OutcomeWindow,
  settings: BreakerSettings,
  atMs: number,
  outcome: 'success' | 'failure',
  slow: boolean,
): OutcomeWindow {
  const { outcomes, oldest, failures, streakMs } = expireOutcomes(window, settings, atMs);
  const failed = outcome === 'failure' || slow;
  const latest: Outcome = { atMs, failed };
  const full = outcomes.length >= settings.windowSize;
  const next = full ? outcomes.slice() : [...outcomes, latest];
  if (full) next[oldest] = latest;
  const streakMax = settings.failureThreshold === Infinity ? STREAK_MAX : settings.failureThreshold;
  return {
    outcomes: next,
    oldest: full ? (oldest + 1) % next.length : oldest,
    failures: failures + (failed ? 1 : 0) - (full && outcomes[oldest]?.failed === true ? 1 : 0),
    streakMs: outcome === 'failure' ? [...streakMs, atMs].slice(-streakMax) : NO_STREAK,
  };
}

/** The window after an answer that ends a row of failures and is no outcome itself. */
export function endStreak(window: OutcomeWindow): OutcomeWindow {
  return window.streakMs.length === 0 ? window : { ...window, streakMs: NO_STREAK };
}

/** Whether either rule says to open. To be asked after a failure only: a success never opens. */
export function tripped(window: OutcomeWindow, settings: BreakerSettings): boolean {
  if (window.streakMs.length >= settings.failureThreshold) return true;
  const measured = window.outcomes.length;
  return measured >= settings.minimumCalls && window.failures / measured >= settings.failureRate;
}
