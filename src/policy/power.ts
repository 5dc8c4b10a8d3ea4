/**
 * A number multiplied by itself so many times, by squaring: engines round `**` in ways of their own, and the same seed
 * has to give the same waits on each. Bounded, since nothing times infinity would be no number.
 *
 * @param base at least 1
 * @param times a whole number from 0
 */
export function power(base: number, times: number): number {
  let result = 1;
  let square = base;
  for (let left = times; left > 0; left = Math.floor(left / 2)) {
    if (left % 2 === 1) result *= square;
    square *= square;
  }
  return Math.min(result, Number.MAX_VALUE);
}
