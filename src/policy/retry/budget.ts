import type { RetryBudgetOptions } from '../../contract/policy.ts';
import { checkKeys, checkNumber, integer, number } from '../check.ts';

/** A window's events are counted in at most this many slots: exact to the millisecond for the default window. */
const SLOTS_MAX = 10_000;

/** Counts events of the last `windowMs`: a ring of (slot, count), so that memory does not grow with traffic. */
class WindowCount {
  readonly #round: (slot: number) => number;
  readonly #windowSlots: number;
  readonly #slotMs: number;
  readonly #slots: Array<{ readonly at: number; count: number }> = [];
  #head = 0;
  #total = 0;

  /** @param round `Math.floor` lets an event go a fraction of a slot early, `Math.ceil` a fraction late */
  constructor(windowMs: number, round: (slot: number) => number) {
    this.#round = round;
    this.#slotMs = Math.max(1, windowMs / SLOTS_MAX);
    this.#windowSlots = windowMs / this.#slotMs;
  }

  add(now: number): void {
    this.#forget(now);
    const at = this.#round(now / this.#slotMs);
    const last = this.#slots.at(-1);
    if (last?.at === at) last.count++;
    else this.#slots.push({ at, count: 1 });
    this.#total++;
  }

  /** The events in (now - windowMs, now]. */
  count(now: number): number {
    this.#forget(now);
    return this.#total;
  }

  /** Drops the slots that have left the window. */
  #forget(now: number): void {
    const at = Math.floor(now / this.#slotMs);
    let oldest = this.#slots[this.#head];
    while (oldest !== undefined && oldest.at <= at - this.#windowSlots) {
      this.#total -= oldest.count;
      oldest = this.#slots[++this.#head];
    }
    // Moved down seldom, so that it costs nothing per event.
    if (this.#head > SLOTS_MAX) {
      this.#slots.splice(0, this.#head);
      this.#head = 0;
    }
  }
}

/** What all calls of a layer share, so that retries cannot multiply an outage. Time is an argument. */
export interface RetryBudget {
  /** Counts a call that starts. `now` is in monotonic milliseconds, here and below. */
  recordCall(now: number): void;
  /** Says whether a retry may be made now. */
  available(now: number): boolean;
  /** How many retries may be made now. */
  left(now: number): number;
  /** Counts a retry that is made. */
  recordRetry(now: number): void;
}

/**
 * A retry budget with every part decided. The defaults, 20 % and 10 a second over 10 s, are Finagle's and Linkerd's.
 * @throws RangeError for an option out of its range
 */
export function retryBudgetOf(options: RetryBudgetOptions = {}): Required<RetryBudgetOptions> {
  checkKeys('a retry budget', options, ['ratio', 'minPerSecond', 'windowMs']);
  const { ratio = 0.2, minPerSecond = 10, windowMs = 10_000 } = options;
  checkNumber('retryBudget.ratio', ratio, number(0, 1000));
  checkNumber('retryBudget.minPerSecond', minPerSecond, number(0, 1_000_000));
  checkNumber('retryBudget.windowMs', windowMs, integer(1, 3_600_000));
  return { ratio, minPerSecond, windowMs };
}

/**
 * A retry budget: the retries of any window stay at or below `ratio` of the calls started in it, plus
 * `minPerSecond`.
 *
 * Why a budget and not only `maxAttempts`: during an outage every call fails, and three attempts each triple the load
 * on what is already down.
 */
export function createRetryBudget(options: RetryBudgetOptions = {}): RetryBudget {
  const { ratio, minPerSecond, windowMs } = retryBudgetOf(options);
  // A call is let go of early and a retry late, so that no fraction of a slot admits a retry too many.
  const calls = new WindowCount(windowMs, Math.floor);
  const retries = new WindowCount(windowMs, Math.ceil);
  const floor = (minPerSecond * windowMs) / 1000;
  // The tiny term keeps 0.29 x 100 from being 28.999... of 29.
  const left = (now: number): number =>
    Math.max(0, Math.floor(ratio * calls.count(now) + floor + 1e-9 - retries.count(now)));
  return {
    recordCall: (now) => calls.add(now),
    available: (now) => left(now) > 0,
    left,
    recordRetry: (now) => retries.add(now),
  };
}
