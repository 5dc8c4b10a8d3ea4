import { checkBuckets } from './scenario/size.ts';

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
  readonly durationsMs: number[];
}

/** Counts what happens in one run. */
export class StormTally {
  readonly bucketMs: number;
  readonly buckets: Bucket[] = [];
  readonly durationsMs: number[] = [];
  calls = 0;
  attempts = 0;
  successes = 0;
  refused = 0;
  endMs = 0;
  readonly #effects = new Map<string, number>();

  constructor(bucketMs: number) {
    this.bucketMs = bucketMs;
  }

  bucketAt(atMs: number): Bucket {
    const index = Math.floor(atMs / this.bucketMs);
    if (this.buckets.length <= index) checkBuckets(index, this.bucketMs);
    while (this.buckets.length <= index)
      this.buckets.push({ offered: 0, attempts: 0, retries: 0, succeeded: 0, durationsMs: [] });
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
    this.durationsMs.push(durationMs);
    this.bucketAt(atMs).durationsMs.push(durationMs);
    this.endMs = Math.max(this.endMs, atMs);
    if (refused) this.refused++;
    if (!succeeded) return;
    this.successes++;
    this.bucketAt(beganMs).succeeded++;
  }

  acted(key: string): void {
    this.#effects.set(key, (this.#effects.get(key) ?? 0) + 1);
  }

  /** Calls that took effect more than once, and the most that one did. */
  get effects(): { readonly doubled: number; readonly most: number } {
    let [doubled, most] = [0, 0];
    for (const times of this.#effects.values()) {
      if (times > 1) doubled++;
      if (times > most) most = times;
    }
    return { doubled, most };
  }
}
