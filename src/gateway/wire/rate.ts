import type { Runtime } from '../../contract/runtime.ts';
import { GatewayError } from './error.ts';

/** How often one key may ask. */
export interface RateLimit {
  /** How many requests a key may make in the window, and how many of them at once. */
  readonly requests: number;
  /** The length of the window, in milliseconds; a key that has used up its requests gets them back evenly over it. */
  readonly windowMs: number;
}

/** Keys whose rate is remembered. */
const KEYS_MAX = 10_000;

/**
 * Keys beyond those share one bucket: made-up keys cost nothing, so they must not push out a bucket that somebody has
 * spent from.
 */
const OTHERS = '';

/** Buckets looked at for one that is full again when room is needed: those of the keys that asked longest ago. */
const LOOKED_AT_MAX = 32;

interface Bucket {
  readonly left: number;
  readonly atMs: number;
}

/** A token bucket for each key: full at first, filled again over the window, never beyond its brim. */
export class RateBuckets {
  readonly #rate: RateLimit;
  readonly #runtime: Runtime;
  /** The key that asked last is the last. */
  readonly #buckets = new Map<string, Bucket>();

  constructor(rate: RateLimit, runtime: Runtime) {
    this.#rate = rate;
    this.#runtime = runtime;
  }

  /** Takes one of each key, or of none. @throws GatewayError when a key has none left */
  spend(keys: readonly string[]): void {
    const nowMs = this.#runtime.now();
    const spent = [...new Set(keys.map((key) => this.#placeOf(`:${key}`, nowMs)))].map((key) => ({
      key,
      left: this.#left(key, nowMs),
    }));
    const left = Math.min(...spent.map((bucket) => bucket.left));
    if (left < 1) throw this.#tooOften(left);
    for (const { key, left: before } of spent) {
      this.#buckets.delete(key);
      this.#buckets.set(key, { left: before - 1, atMs: nowMs });
    }
  }

  #tooOften(left: number): GatewayError {
    const { requests, windowMs } = this.#rate;
    const retryAfterMs = ((1 - left) / requests) * windowMs;
    return new GatewayError(
      'rate_limited',
      `This key may ask ${requests} times in ${windowMs / 1_000}s; ask again later`,
      { retryAfterMs },
    );
  }

  #left(key: string, nowMs: number): number {
    const { requests, windowMs } = this.#rate;
    const bucket = this.#buckets.get(key);
    return bucket === undefined
      ? requests
      : Math.min(requests, bucket.left + ((nowMs - bucket.atMs) / windowMs) * requests);
  }

  /** The key's own bucket; that of all others where there is no room for one. */
  #placeOf(key: string, nowMs: number): string {
    if (this.#buckets.has(key) || this.#buckets.size < KEYS_MAX) return key;
    this.#dropFull(nowMs);
    return this.#buckets.size < KEYS_MAX ? key : OTHERS;
  }

  /** A full bucket is as good as none. */
  #dropFull(nowMs: number): void {
    let looked = 0;
    for (const key of this.#buckets.keys()) {
      if (this.#left(key, nowMs) >= this.#rate.requests) this.#buckets.delete(key);
      if (++looked === LOOKED_AT_MAX) return;
    }
  }
}
