import { seededRandom } from '../../src/policy/random.ts';

/** Keys mixed so that neighbours share nothing: seed 7 and seed 8 are different worlds. */
const mix = (keys: readonly number[]): number => {
  let hash = 0x811c9dc5;
  for (const key of keys) {
    hash = Math.imul(hash ^ key, 0x01000193);
    hash = Math.imul(hash ^ (hash >>> 15), 0x85ebca6b);
    hash ^= hash >>> 13;
  }
  return hash;
};

/**
 * A stream of chance. What decides about one call draws from a stream of its own: another order of events gives it the
 * same fate.
 */
export class Dice {
  readonly unit: () => number;

  constructor(...keys: readonly number[]) {
    this.unit = seededRandom(mix(keys));
  }

  chance(probability: number): boolean {
    return this.unit() < probability;
  }

  /** An integer from `min` to `max`, both included. */
  int(min: number, max: number): number {
    return min + Math.floor(this.unit() * (max - min + 1));
  }

  pick<T>(list: readonly [T, ...T[]]): T {
    return list[Math.floor(this.unit() * list.length)] ?? list[0];
  }
}
