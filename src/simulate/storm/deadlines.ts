import type { SimulatedTime } from '../time.ts';

interface Entry {
  readonly dueMs: number;
  expired: (() => void) | undefined;
}

/** Deadlines of one duration: set in order, so due in order, and served by one timer. */
export class Deadlines {
  readonly #time: SimulatedTime;
  readonly #ms: number;
  #entries: Entry[] = [];
  #head = 0;
  #armed = false;

  constructor(time: SimulatedTime, ms: number) {
    this.#time = time;
    this.#ms = ms;
  }

  /** @returns what calls it off */
  add(expired: () => void): () => void {
    const entry: Entry = { dueMs: this.#time.now() + this.#ms, expired };
    this.#entries.push(entry);
    if (!this.#armed) this.#arm();
    return () => {
      entry.expired = undefined;
    };
  }

  #arm(): void {
    while (this.#head < this.#entries.length && this.#entries[this.#head]?.expired === undefined) this.#head++;
    const next = this.#entries[this.#head];
    if (this.#head > 1_000) {
      this.#entries = this.#entries.slice(this.#head);
      this.#head = 0;
    }
    if (next === undefined) return;
    this.#armed = true;
    // Behind what is due at the same instant: a result beats its deadline.
    this.#time.at(next.dueMs, Number.MAX_SAFE_INTEGER, () => {
      this.#armed = false;
      this.#due();
      if (!this.#armed) this.#arm();
    });
  }

  #due(): void {
    const now = this.#time.now();
    for (let entry = this.#entries[this.#head]; entry !== undefined && entry.dueMs <= now;) {
      const { expired } = entry;
      this.#head++;
      entry.expired = undefined;
      expired?.();
      entry = this.#entries[this.#head];
    }
  }
}
