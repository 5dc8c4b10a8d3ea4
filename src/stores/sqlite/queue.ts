import { firstValueFrom } from 'rxjs';
import type { Runtime } from '../../contract/runtime.ts';
import type { Awaitable } from '../../contract/store.ts';
import { isBusy } from './fault.ts';

/**
 * Between two looks at a lock that another process holds, on average. Never longer for who waited long: newcomers would
 * always be faster.
 */
const POLL_MS = 2;
/** So long at most the lock is held for those who waited: the event loop, and other processes, get their turn then. */
const HOLD_MS = 8;

interface Waiting {
  readonly untilMs: number;
  readonly work: () => unknown;
  readonly done: (result: unknown) => void;
  readonly fail: (error: unknown) => void;
}

/**
 * Runs `work` as one transaction. It throws SQLITE_BUSY before `work` while another holds the lock, and undoes all when
 * `work` or the commit fails.
 */
export type Transaction = <T>(work: () => T) => T;

/**
 * Writes that wait for the lock of a file, in order: one of a process asks for the lock, at short and even intervals,
 * and those behind it go with it in one transaction. SQLite's own waiting blocks the thread and has no order: with
 * hundreds of calls some waited for seconds, longer than a lease may last.
 */
export class SqliteQueue {
  readonly #runtime: Runtime;
  readonly #busyTimeoutMs: number;
  readonly #transaction: Transaction;
  /** So many of those at the head go one by one: among them is one that failed, and undid what went with it. */
  #alone = 0;
  /** Of those who hold a lease, and lose it by waiting. */
  readonly #urgent: Waiting[] = [];
  readonly #others: Waiting[] = [];

  constructor(runtime: Runtime, busyTimeoutMs: number, transaction: Transaction) {
    this.#runtime = runtime;
    this.#busyTimeoutMs = busyTimeoutMs;
    this.#transaction = transaction;
  }

  get #empty(): boolean {
    return this.#urgent.length === 0 && this.#others.length === 0;
  }

  /**
   * Runs `work`: at once if nobody waits and the lock is free. It must be safe to run again after SQLITE_BUSY, and
   * fails with that after `busyTimeoutMs`.
   */
  run<T>(work: () => T, urgent: boolean): Awaitable<T> {
    const first = this.#empty;
    if (first) {
      try {
        return this.#transaction(work);
      } catch (error) {
        if (!isBusy(error)) throw error;
      }
    }
    return new Promise((resolve, reject) => {
      const waiting = {
        untilMs: this.#runtime.now() + this.#busyTimeoutMs,
        work,
        done: resolve as (result: unknown) => void,
        fail: reject,
      };
      (urgent ? this.#urgent : this.#others).push(waiting);
      if (first) void this.#poll();
    });
  }

  /** Fails all that waits. */
  close(error: () => unknown): void {
    for (const { fail } of [...this.#urgent.splice(0), ...this.#others.splice(0)]) fail(error());
  }

  async #poll(): Promise<void> {
    while (!this.#empty) {
      await firstValueFrom(this.#runtime.after(POLL_MS * (0.5 + this.#runtime.random())));
      this.#go();
    }
  }

  /** Those at the head that fit into one go. */
  #go(): void {
    const endMs = this.#runtime.now() + HOLD_MS;
    // The store may have been closed meanwhile.
    if (this.#empty) return;
    do {
      const group = [...this.#urgent, ...this.#others].slice(0, this.#alone > 0 ? 1 : undefined);
      const results: unknown[] = [];
      try {
        this.#transaction(() => {
          for (const { work } of group) {
            results.push(work());
            if (this.#runtime.now() >= endMs) return;
          }
        });
      } catch (error) {
        if (isBusy(error)) return this.#giveUp(error);
        if (group.length > 1) {
          this.#alone = results.length + 1;
          continue;
        }
        this.#shift()?.fail(error);
      }
      this.#alone = Math.max(0, this.#alone - 1);
      for (const result of results) this.#shift()?.done(result);
    } while (!this.#empty && this.#runtime.now() < endMs);
  }

  #shift(): Waiting | undefined {
    return this.#urgent.shift() ?? this.#others.shift();
  }

  /** Those whose time is over. */
  #giveUp(error: unknown): void {
    const nowMs = this.#runtime.now();
    for (const list of [this.#urgent, this.#others]) {
      // In order of their coming, and all wait equally long.
      while (list[0] !== undefined && list[0].untilMs <= nowMs) list.shift()?.fail(error);
    }
  }
}
