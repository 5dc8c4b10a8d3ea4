import { Observable } from 'rxjs';
import FlatQueue from 'flatqueue';
import TinyQueue from 'tinyqueue';
import type { Runtime } from '../contract/runtime.ts';
import { seededRandom } from '../policy/random.ts';

/** Work that waits for its instant. */
export interface Task {
  /** Takes the work off the queue, if it has not run yet. */
  cancel(): void;
}

/** A class with its own way off the queue: millions are made, and a closure for each would cost as much again. */
class Entry implements Task {
  readonly atMs: number;
  /** Within one instant: what was there before it, then what that set without a delay, and so on. */
  readonly round: number;
  readonly order: number;
  readonly sequence: number;
  work: (() => void) | undefined;
  readonly #canceled: () => void;

  constructor(atMs: number, round: number, order: number, sequence: number, work: () => void, canceled: () => void) {
    this.atMs = atMs;
    this.round = round;
    this.order = order;
    this.sequence = sequence;
    this.work = work;
    this.#canceled = canceled;
  }

  cancel(): void {
    if (this.work === undefined) return;
    this.work = undefined;
    this.#canceled();
  }
}

const earlier = (a: Entry, b: Entry): number => a.round - b.round || a.order - b.order || a.sequence - b.sequence;

/** Canceled entries are swept out when there are more of them than of all others, and than this. */
const CANCELED_MIN = 1_000;

/**
 * Simulated time for the production layer: a runtime whose clock goes from one thing that is due to the next. All of it
 * is synchronous, so that hundreds of thousands of calls are a loop and not as many promises; what is simulated has to
 * answer as an Observable.
 *
 * Not `virtualRuntime` of `spillway/testing`: that lets promises run out between any two timers, which costs most of
 * the time here, and it knows only delays, where a replay has instants and an order within them.
 */
export class SimulatedTime implements Runtime {
  /** By instants alone, ten thousand of which wait: their numbers lie side by side, and are compared as they are. */
  #later = new FlatQueue<Entry>();
  /** What is due at one instant, in its order. */
  #due = new TinyQueue<Entry>([], earlier);
  #nowMs: number;
  #round = 0;
  #sequence = 0;
  #canceled = 0;
  #ids = 0;
  readonly random: () => number;

  constructor(startMs: number, random: number | (() => number) = 1) {
    this.#nowMs = startMs;
    this.random = typeof random === 'number' ? seededRandom(random) : random;
  }

  readonly now = (): number => this.#nowMs;
  /** The same as `now`, so that a deadline on the one clock is one on the other. */
  readonly wallNow = (): number => this.#nowMs;
  readonly id = (): string => `00000000-0000-7000-8000-${(++this.#ids).toString(16).padStart(12, '0')}`;

  readonly after = (ms: number): Observable<0> =>
    new Observable((subscriber) => {
      const task = this.at(this.#nowMs + Math.max(0, ms), 0, () => {
        subscriber.next(0);
        subscriber.complete();
      });
      return () => task.cancel();
    });

  /**
   * Runs `work` at an instant, or now if that has passed.
   * @param order among what is due at that instant, the lowest first
   */
  at(atMs: number, order: number, work: () => void): Task {
    const dueMs = Math.max(atMs, this.#nowMs);
    const round = dueMs === this.#nowMs ? this.#round + 1 : 0;
    const entry = new Entry(dueMs, round, order, this.#sequence++, work, this.#forget);
    if (dueMs === this.#nowMs) this.#due.push(entry);
    else this.#later.push(entry, dueMs);
    return entry;
  }

  readonly #forget = (): void => {
    this.#canceled++;
    if (this.#canceled > CANCELED_MIN && this.#canceled > this.pending) this.#sweep();
  };

  /** How much waits. */
  get pending(): number {
    return this.#later.length + this.#due.length - this.#canceled;
  }

  /**
   * Lets time pass until nothing waits, or until `untilMs`, where the clock then stands.
   * @returns how many things were done
   */
  run(untilMs: number = Infinity): number {
    let done = 0;
    // What is left of the running instant, after work that threw, is due later than that.
    if (untilMs < this.#nowMs) return done;
    for (let next = this.#next(untilMs); next !== undefined; next = this.#next(untilMs)) {
      const { work } = next;
      if (work === undefined) {
        this.#canceled--;
        continue;
      }
      this.#nowMs = next.atMs;
      this.#round = next.round;
      next.work = undefined;
      work();
      done++;
    }
    if (untilMs !== Infinity && untilMs > this.#nowMs) {
      this.#nowMs = untilMs;
      this.#round = 0;
    }
    return done;
  }

  /** What is next, off the queue: of the instant that is running, or of the next one until then. */
  #next(untilMs: number): Entry | undefined {
    if (this.#due.length === 0) {
      const atMs = this.#later.peekValue();
      if (atMs === undefined || atMs > untilMs) return undefined;
      const first = this.#later.pop();
      if (this.#later.peekValue() !== atMs) return first;
      for (let entry = first; entry !== undefined;) {
        this.#due.push(entry);
        entry = this.#later.peekValue() === atMs ? this.#later.pop() : undefined;
      }
    }
    return this.#due.pop();
  }

  /** Of both: those that stay uncounted in one of them would have the other looked through for each more. */
  #sweep(): void {
    const all = this.#later;
    this.#later = new FlatQueue();
    for (const entry of all.ids.slice(0, all.length)) if (entry.work !== undefined) this.#later.push(entry, entry.atMs);
    this.#due = new TinyQueue(
      this.#due.data.filter(({ work }) => work !== undefined),
      earlier,
    );
    this.#canceled = 0;
  }
}
