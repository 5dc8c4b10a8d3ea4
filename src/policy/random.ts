/**
 * A seeded generator of numbers in [0, 1): the same seed gives the same numbers. mulberry32, public domain, by Tommy
 * Ettinger: 32 bits of state pass the tests that jitter and fault injection need; it is not for secrets.
 *
 * @param seed any integer
 */
export function seededRandom(seed: number): () => number {
  let state = seed | 0;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
