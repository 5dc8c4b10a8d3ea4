/**
 * A number multiplied by itself so many times, by squaring: engines round `**` in ways of their own, and the same seed
 * has to give the same waits on each. Bounded, since nothing times infinity would be no number.
 *
 * @param base at least 1
 * @param times a whole number from 0
 */
export function power(base: number, times: number): number {
  if (times < 1) return 1;
  const half = power(base, Math.floor(times / 2));
  return Math.min(half * half * (times % 2 > 0 ? base : 1), Number.MAX_VALUE);
}
