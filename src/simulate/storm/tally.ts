import { Durations } from './durations.ts';
import { checkBuckets } from './scenario/size.ts';

/** Half of what fits, at which a map grows for the last time. */
const MAP_MAX = 2 ** 23;

/** What a chart shows of one bucket of time. */
export interface Bucket {
  /** Calls, or turns, that clients began. */
  offered: number;
  /** Attempts that were made. */
  attempts: number;
  /** Of them, those that were not the first of their call. */
  retries: number;
  /** Of the calls begun here: how many came to succeed. */
  succeeded: number;
  /** How long those that ended here took. */
  readonly durationsMs: Durations;
}

/** Counts what happens in one run. */
export class StormTally {
  readonly bucketMs: number;
  readonly buckets: Bucket[] = [];
  calls = 0;
  attempts = 0;
  successes = 0;
  refused = 0;
  endMs = 0;
  /** By call; a map has room for 2^24 of them. */
  readonly #effects: Array<Map<string, number>> = [new Map<string, number>()];

  constructor(bucketMs: number) {
    this.bucketMs = bucketMs;
  }

  bucketAt(atMs: number): Bucket {
    const index = Math.floor(atMs / this.bucketMs);
    if (this.buckets.length <= index) checkBuckets(index, this.bucketMs);
    while (this.buckets.length <= index)
      this.buckets.push({ offered: 0, attempts: 0, retries: 0, succeeded: 0, durationsMs: new Durations() });
    return this.buckets[index] as Bucket;
  }

  began(atMs: number): void {
    this.calls++;
    this.bucketAt(atMs).offered++;
  }

  attempt(atMs: number, first: boolean): void {
    this.attempts++;
    const bucket = this.bucketAt(atMs);
    bucket.attempts++;
    if (!first) bucket.retries++;
  }

  ended(beganMs: number, atMs: number, succeeded: boolean, refused: boolean): void {
    const durationMs = atMs - beganMs;
    this.bucketAt(atMs).durationsMs.push(durationMs);
    this.endMs = Math.max(this.endMs, atMs);
    if (refused) this.refused++;
    if (!succeeded) return;
    this.successes++;
    this.bucketAt(beganMs).succeeded++;
  }

  acted(key: string): void {
    const known = this.#effects.find((effects) => effects.has(key)) ?? this.#roomy();
    known.set(key, (known.get(key) ?? 0) + 1);
  }

  #roomy(): Map<string, number> {
    const [latest] = this.#effects;
    if (latest !== undefined && latest.size < MAP_MAX) return latest;
    const next = new Map<string, number>();
    this.#effects.unshift(next);
    return next;
  }

  /** Calls that took effect more than once, and the most that one did. */
  get effects(): { readonly doubled: number; readonly most: number } {
    let [doubled, most] = [0, 0];
    for (const effects of this.#effects)
      for (const times of effects.values()) {
        if (times > 1) doubled++;
        if (times > most) most = times;
      }
    return { doubled, most };
  }
}
