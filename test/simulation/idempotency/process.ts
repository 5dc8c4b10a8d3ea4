import { Observable } from 'rxjs';
import type { Runtime } from '../../../src/contract/runtime.ts';
import { seededRandom } from '../../../src/policy/random.ts';
import type { VirtualScheduler } from '../../../src/testing/virtual-scheduler.ts';

export interface ProcessSpec {
  readonly index: number;
  /** How fast its clock runs. */
  readonly rate: number;
  /** What its wall clock is ahead of the others'. */
  readonly wallAheadMs: number;
}

const WALL_MS = Date.UTC(2026, 0, 1);
/** Clocks are read to a thousandth, and no timer comes before the time it was set for. */
const PER_MS = 1_000;

/**
 * One of the processes that share a store: clocks of its own, and an event loop that does one thing at a time, stalls,
 * and dies.
 */
export class Process {
  readonly index: number;
  readonly runtime: Runtime;
  dead = false;
  readonly #scheduler: VirtualScheduler;
  readonly #rate: number;
  readonly #startMs: number;
  #wallAheadMs: number;
  #stalledUntilMs = -Infinity;
  /** What has come and waits for its turn. */
  #inbox: Array<() => void> = [];
  #waking = false;
  #ids = 0;

  constructor({ index, rate, wallAheadMs }: ProcessSpec, scheduler: VirtualScheduler, seed: number) {
    this.index = index;
    this.#scheduler = scheduler;
    this.#rate = rate;
    this.#startMs = scheduler.now();
    this.#wallAheadMs = WALL_MS + wallAheadMs;
    this.runtime = {
      now: () => this.now(),
      wallNow: () => this.now() + this.#wallAheadMs,
      after: (ms) => this.#after(ms),
      random: seededRandom(seed * 31 + index),
      id: () => `0000000${index}-0000-7000-8000-${(++this.#ids).toString(16).padStart(12, '0')}`,
    };
  }

  /** Its monotonic clock. Each process has begun at another time. */
  now(): number {
    const elapsedMs = this.#scheduler.now() - this.#startMs;
    const ticks = this.#rate === 1 ? Math.round(elapsedMs * PER_MS) : Math.floor(elapsedMs * this.#rate * PER_MS);
    return (this.index + 1) * 1_000_000 + ticks / PER_MS;
  }

  /** It is stalled, or has not come to all that has arrived. */
  get busy(): boolean {
    return this.#inbox.length > 0 || this.#scheduler.now() < this.#stalledUntilMs;
  }

  /** Something comes from outside, or a timer is due: done now, or once it is awake and has done what came before. */
  deliver(work: () => void): void {
    if (this.dead) return;
    if (!this.busy) return work();
    this.#inbox.push(work);
    this.#wake();
  }

  stall(ms: number): void {
    this.#stalledUntilMs = Math.max(this.#stalledUntilMs, this.#scheduler.now() + ms);
  }

  jumpWall(ms: number): void {
    this.#wallAheadMs += ms;
  }

  /** As by SIGKILL: nothing runs any more, nothing is torn down. */
  kill(): void {
    this.dead = true;
    this.#inbox = [];
  }

  #after(ms: number): Observable<0> {
    return new Observable((subscriber) => {
      const delayMs = this.#rate === 1 || ms === 0 ? Math.ceil(ms * PER_MS) / PER_MS : ms / this.#rate + 2 / PER_MS;
      const task = this.#scheduler.after(delayMs, () =>
        this.deliver(() => {
          subscriber.next(0);
          subscriber.complete();
        }),
      );
      return () => task.cancel();
    });
  }

  #wake(): void {
    if (this.#waking) return;
    this.#waking = true;
    this.#scheduler.after(Math.max(0, this.#stalledUntilMs - this.#scheduler.now()), () => {
      this.#waking = false;
      if (this.#scheduler.now() >= this.#stalledUntilMs) this.#inbox.shift()?.();
      if (this.#inbox.length > 0) this.#wake();
    });
  }
}
