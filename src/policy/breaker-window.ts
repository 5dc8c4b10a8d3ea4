import type { BreakerSettings } from './breaker-settings.ts';

/** The outcomes that the two opening rules look at, oldest first. */
export interface OutcomeWindow {
  readonly outcomes: ReadonlyArray<{ readonly atMs: number; readonly failed: boolean }>;
  /** How many of them failed. */
  readonly failures: number;
  /** When each of the last failures in a row happened. */
  readonly streakMs: readonly number[];
}

export const emptyWindow: OutcomeWindow = { outcomes: [], failures: 0, streakMs: [] };

/** Failures in a row are counted up to here when no threshold needs them. */
const STREAK_MAX = 100;

/** The window at an instant: without what is older than `windowMs`. A gap in traffic expires what came before it. */
export function expireOutcomes(window: OutcomeWindow, settings: BreakerSettings, atMs: number): OutcomeWindow {
  const fromMs = atMs - settings.windowMs;
  const { outcomes, streakMs } = window;
  if ((outcomes[0]?.atMs ?? atMs) >= fromMs && (streakMs[0] ?? atMs) >= fromMs) return window;
  const kept = outcomes.filter((outcome) => outcome.atMs >= fromMs);
  return { outcomes: kept, failures: kept.filter(({ failed }) => failed).length, streakMs: streakMs.filter((failedAtMs) => failedAtMs >= fromMs) };
}

/** The window with one more outcome. A slow success counts as a failure for the rate alone. */
export function recordOutcome(window: OutcomeWindow, settings: BreakerSettings, atMs: number, outcome: 'success' | 'failure', slow: boolean): OutcomeWindow {
  const { outcomes, failures, streakMs } = expireOutcomes(window, settings, atMs);
  const failed = outcome === 'failure' || slow;
  const full = outcomes.length >= settings.windowSize;
  const latest = { atMs, failed };
  // Each moves down a place: without the first and then with one more, the list would be made twice, and with room to grow.
  const next = full ? outcomes.map((_, place) => outcomes[place + 1] ?? latest) : [...outcomes, latest];
  const streakMax = settings.failureThreshold === Infinity ? STREAK_MAX : settings.failureThreshold;
  return {
    outcomes: next,
    failures: failures + (failed ? 1 : 0) - (full && outcomes[0]?.failed === true ? 1 : 0),
    streakMs: outcome === 'failure' ? [...streakMs, atMs].slice(-streakMax) : [],
  };
}

/** Whether either rule says to open. To be asked after a failure only: a success never opens. */
export function tripped(window: OutcomeWindow, settings: BreakerSettings): boolean {
  if (window.streakMs.length >= settings.failureThreshold) return true;
  const measured = window.outcomes.length;
  return measured >= settings.minimumCalls && window.failures / measured >= settings.failureRate;
}
