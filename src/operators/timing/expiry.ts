import { Observable, concatMap, from, type Subscription, type Unsubscribable } from 'rxjs';
import type { Runtime } from '../../contract/runtime.ts';

/** A deadline that was set and can be called off: what a stream can give as its teardown. */
export type Expiry = Unsubscribable;

/** One entry of a queue: linked, so that calling off is one step wherever it stands. */
class Entry implements Expiry {
  readonly queue: ExpiryQueue;
  readonly dueMs: number;
  readonly expired: () => void;
  next: Entry | undefined;
  previous: Entry | undefined;
  /** Set once it is due and gives way to what else is due. */
  batch: Batch | undefined;
  done = false;

  constructor(queue: ExpiryQueue, dueMs: number, expired: () => void) {
    this.queue = queue;
    this.dueMs = dueMs;
    this.expired = expired;
  }

  unsubscribe(): void {
    if (this.done) return;
    this.done = true;
    if (this.batch === undefined) this.queue.remove(this);
    else this.batch.forget();
  }
}

/** Entries that came due together and wait for results of the same instant. */
class Batch {
  readonly #entries: readonly Entry[];
  readonly #yield: Subscription;
  #live: number;

  constructor(entries: readonly Entry[], runtime: Runtime) {
    this.#entries = entries;
    this.#live = entries.length;
    for (const entry of entries) entry.batch = this;
    // Two yields: the shared timer may have been set before the timers of results that are due now. On a real event
    // loop a millisecond each: answers that came while it was stalled may have to be unpacked first, by threads of
    // their own.
    const yieldMs = runtime.soon === undefined ? 0 : 1;
    this.#yield = runtime
      .after(yieldMs)
      .pipe(concatMap(() => runtime.after(yieldMs)))
      .subscribe(() => this.#expire());
  }

  forget(): void {
    this.#live--;
    if (this.#live === 0) this.#yield.unsubscribe();
  }

  #expire(): void {
    // A subscription reports what its observer throws and goes on: one teardown that throws costs no other its
    // deadline.
    from(this.#entries).subscribe((entry) => {
      if (entry.done) return;
      entry.done = true;
      entry.expired();
    });
  }
}

/** The deadlines of one duration: set in order, so due in order, and served by one timer. */
class ExpiryQueue {
  readonly ms: number;
  readonly #runtime: Runtime;
  #head: Entry | undefined;
  #tail: Entry | undefined;
  #timer: Subscription | undefined;
  /** The timer is about to be set. */
  #arming = false;
  #callOff: (() => void) | undefined;

  constructor(ms: number, runtime: Runtime) {
    this.ms = ms;
    this.#runtime = runtime;
  }

  /** A deadline for what started a little while ago. */
  addFrom(startedAtMs: number, expired: () => void): Expiry {
    // A fraction of a millisecond is nothing to a timer.
    if (this.#tail === undefined || this.#tail.dueMs - startedAtMs - this.ms < 1) return this.add(startedAtMs, expired);
    // It is due before one that is set. Whole milliseconds only, so that such deadlines can share a timer, too.
    const passedMs = Math.floor(this.#runtime.now() - startedAtMs);
    return expireAfter(Math.max(0, this.ms - passedMs), this.#runtime, expired);
  }

  add(startedAtMs: number, expired: () => void): Expiry {
    const dueMs = startedAtMs + this.ms;
    const entry = new Entry(this, Math.max(dueMs, this.#tail?.dueMs ?? dueMs), expired);
    entry.previous = this.#tail;
    if (this.#tail !== undefined) this.#tail.next = entry;
    this.#tail = entry;
    this.#head ??= entry;
    if (this.#timer === undefined && !this.#arming) this.#armSoon();
    return entry;
  }

  get empty(): boolean {
    return this.#head === undefined;
  }

  remove(entry: Entry): void {
    const { previous, next } = entry;
    // An old entry that points at a newer one would keep it alive until the next full collection.
    entry.next = undefined;
    entry.previous = undefined;
    if (previous === undefined) this.#head = next;
    else previous.next = next;
    if (next === undefined) this.#tail = previous;
    else next.previous = previous;
    if (this.#head !== undefined) return;
    this.#timer?.unsubscribe();
    this.#timer = undefined;
    if (!this.#arming || this.#callOff === undefined) return;
    // Where it is not called off it might never run, and no deadline after it would be kept.
    this.#callOff();
    this.#arming = false;
  }

  /**
   * Sets the timer once this turn of the event loop is over, for what is left by then: most calls of quick tools end in
   * the turn that they began in, and need none.
   */
  #armSoon(): void {
    if (this.#runtime.soon === undefined) return this.#arm();
    this.#arming = true;
    this.#callOff = this.#runtime.soon(this.#armNow);
  }

  readonly #armNow = (): void => {
    this.#arming = false;
    if (this.#timer === undefined) this.#arm();
  };

  #arm(): void {
    if (this.#head === undefined) return;
    const leftMs = this.#head.dueMs - this.#runtime.now();
    this.#timer = this.#runtime.after(Math.max(0, leftMs)).subscribe(() => this.#due());
  }

  #due(): void {
    this.#timer = undefined;
    const now = this.#runtime.now();
    const due: Entry[] = [];
    for (let entry = this.#head; entry !== undefined && entry.dueMs <= now; entry = this.#head) {
      due.push(entry);
      this.remove(entry);
    }
    if (due.length > 0) void new Batch(due, this.#runtime);
    if (this.#timer === undefined) this.#arm();
  }
}

/**
 * Queues are kept when they are empty, since the next deadline is mostly of a duration that was there before: a Map
 * that is emptied and filled with each call leaves a chain of old tables, each keeping the next one's entries alive.
 * Beyond so many, empty ones are dropped.
 */
const QUEUES_MAX = 1000;
const queues = new WeakMap<Runtime, Map<number, ExpiryQueue>>();

/** The queue for deadlines of one duration, for those who set many. */
const queueOf = (ms: number, runtime: Runtime): ExpiryQueue => {
  let byDuration = queues.get(runtime);
  if (byDuration === undefined) queues.set(runtime, (byDuration = new Map<number, ExpiryQueue>()));
  let queue = byDuration.get(ms);
  if (queue !== undefined) return queue;
  if (byDuration.size >= QUEUES_MAX)
    for (const [duration, old] of byDuration) if (old.empty) byDuration.delete(duration);
  queue = new ExpiryQueue(ms, runtime);
  byDuration.set(ms, queue);
  return queue;
};

/**
 * Calls `expired` once `ms` have passed and what was due at the same instant has had its turn: a result beats its
 * deadline, also one that arrived while the event loop was stalled. Deadlines of one duration share one timer;
 * when none is left, so is no timer.
 */
export function expireAfter(ms: number, runtime: Runtime, expired: () => void): Expiry {
  return queueOf(ms, runtime).add(runtime.now(), expired);
}

/** `expireAfter` as a stream: emits once and completes. */
export function expiry(ms: number, runtime: Runtime): Observable<0> {
  return new Observable((subscriber) =>
    expireAfter(ms, runtime, () => {
      subscriber.next(0);
      subscriber.complete();
    }),
  );
}

/**
 * A limit on what starts now, or has started at `startedAtMs`: errors with what `late` makes of `ms` once they have
 * passed, as `expireAfter` counts them, however much later it is subscribed to. Limits of one duration share a timer.
 */
export function overdue(
  ms: number,
  runtime: Runtime,
  late: (ms: number) => unknown,
  startedAtMs: number = runtime.now(),
): Observable<never> {
  return new Observable((subscriber) => queueOf(ms, runtime).addFrom(startedAtMs, () => subscriber.error(late(ms))));
}
