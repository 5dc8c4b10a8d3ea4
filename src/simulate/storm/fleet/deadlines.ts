import type { SimulatedTime, Task } from '../../time.ts';

/** Who has to be told that its time is over. */
export interface Expiring {
  expired(): void;
}

class Entry implements Task {
  readonly dueMs: number;
  waits: Expiring | undefined;

  constructor(dueMs: number, waits: Expiring) {
    this.dueMs = dueMs;
    this.waits = waits;
  }

  cancel(): void {
    this.waits = undefined;
  }
}

const expire = (entry: Entry): void => {
  const { waits } = entry;
  entry.cancel();
  waits?.expired();
};

/**
 * Does what is due now after two more steps of this instant, as the layer does: a result beats its deadline, also where
 * it takes a step more, as that of work without a duration does.
 */
export const givingWay = (time: SimulatedTime, work: () => void): Task => {
  let step = time.at(time.now(), 0, () => {
    step = time.at(time.now(), 0, work);
  });
  return { cancel: () => step.cancel() };
};

/** Deadlines of one duration: set in order, so due in order, and served by one timer. */
export class StormDeadlines {
  readonly #time: SimulatedTime;
  readonly #ms: number;
  #entries: Entry[] = [];
  #head = 0;
  #armed = false;

  constructor(time: SimulatedTime, ms: number) {
    this.#time = time;
    this.#ms = ms;
  }

  /** Tells `waits` when its time is over, unless that is called off. */
  add(waits: Expiring): Task {
    const entry = new Entry(this.#time.now() + this.#ms, waits);
    this.#entries.push(entry);
    this.#forget();
    if (!this.#armed) this.#arm();
    return entry;
  }

  /** Drops those that were called off, which are most, long before they would be due. */
  #forget(): void {
    while (this.#head < this.#entries.length && this.#entries[this.#head]?.waits === undefined) this.#head++;
    if (this.#head < 1_000 || this.#head * 2 < this.#entries.length) return;
    this.#entries = this.#entries.slice(this.#head);
    this.#head = 0;
  }

  #arm(): void {
    this.#forget();
    const next = this.#entries[this.#head];
    if (next === undefined) return;
    this.#armed = true;
    this.#time.at(next.dueMs, 0, () => {
      this.#armed = false;
      this.#due();
      if (!this.#armed) this.#arm();
    });
  }

  #due(): void {
    const now = this.#time.now();
    const due: Entry[] = [];
    for (let entry = this.#entries[this.#head]; entry !== undefined && entry.dueMs <= now;) {
      if (entry.waits !== undefined) due.push(entry);
      entry = this.#entries[++this.#head];
    }
    if (due.length > 0) givingWay(this.#time, () => due.forEach(expire));
  }
}

/**
 * The deadlines of a process, by duration. Its tools share them, as those of a layer do: who asked first is told first.
 * Else one tool's attempts would take what a retry budget has left from another's, whenever both are late at one
 * instant.
 */
export class ProcessDeadlines {
  readonly #time: SimulatedTime;
  readonly #of = new Map<number, StormDeadlines>();

  constructor(time: SimulatedTime) {
    this.#time = time;
  }

  of(ms: number): StormDeadlines {
    const deadlines = this.#of.get(ms) ?? new StormDeadlines(this.#time, ms);
    this.#of.set(ms, deadlines);
    return deadlines;
  }
}
