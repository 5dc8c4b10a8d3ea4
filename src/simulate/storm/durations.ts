/** What a bucket begins with: there can be a million, of which many stay empty. */
const NONE = new Float64Array(0);
/** Fewer would be copied too often. */
const FIRST = 8;

/**
 * How long calls took, in milliseconds: eight bytes for each, outside of the heap, where a list of many has no room.
 */
export class Durations {
  #values = NONE;
  #count = 0;

  push(durationMs: number): void {
    if (this.#count === this.#values.length) {
      const grown = new Float64Array(Math.max(FIRST, this.#count * 2));
      grown.set(this.#values);
      this.#values = grown;
    }
    this.#values[this.#count++] = durationMs;
  }

  /** The shortest first. */
  static sorted(all: readonly Durations[]): Float64Array {
    const sorted = new Float64Array(all.reduce((sum, durations) => sum + durations.#count, 0));
    let at = 0;
    for (const durations of all) {
      sorted.set(durations.#values.subarray(0, durations.#count), at);
      at += durations.#count;
    }
    return sorted.toSorted();
  }
}

/** What so large a share of them took at the most; 0 where there are none. */
export const quantile = (sorted: Float64Array, share: number): number =>
  sorted[Math.min(sorted.length - 1, Math.max(0, Math.ceil(share * sorted.length) - 1))] ?? 0;
