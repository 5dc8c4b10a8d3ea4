import type { Observable } from 'rxjs';

/**
 * Time, chance and identity as arguments, so that a marble diagram can show every behaviour and a seed can replay every
 * run.
 *
 * `now` is monotonic: durations, deadlines and breakers use it, and a wall clock set back an hour changes nothing.
 * `wallNow` is for what leaves the process: HTTP dates, `deadlineAtMs`, ids and printing.
 */
export interface Runtime {
  /** Monotonic milliseconds. */
  now(): number;
  /** Milliseconds since the Unix epoch. */
  wallNow(): number;
  /**
   * Emits `0` once, `ms` milliseconds after it is subscribed to, then completes. `after(0)` yields to what is already
   * due.
   */
  after(ms: number): Observable<0>;
  /**
   * Calls `run` once the event loop has done what it is at. Timers are set then, and those of calls that have ended by
   * then never; without it, at once. Where it may never come to that, as with fake timers that a test takes away, it
   * gives what calls it off.
   */
  soon?(run: () => void): (() => void) | undefined;
  /** A number in [0, 1). */
  random(): number;
  /** A new UUIDv7. */
  id(): string;
  /** The same clock with timers that do not keep the process alive. Without one, the runtime itself is used. */
  readonly background?: Runtime;
}
