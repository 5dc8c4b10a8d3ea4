/** A mean over seeds, and the 95 % interval that it is in. */
export interface Interval {
  /** The mean. */
  readonly mean: number;
  /** Where the interval begins. */
  readonly low: number;
  /** Where it ends. */
  readonly high: number;
}

/** The 97.5th percentile of Student's t by degrees of freedom, from 1 on. */
const T975 = [
  12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.16, 2.145, 2.131, 2.12, 2.11,
  2.101, 2.093, 2.086, 2.08, 2.074, 2.069, 2.064, 2.06, 2.056, 2.052, 2.048, 2.045, 2.042,
] as const;
/** The same of the normal distribution, which Student's comes close to. */
const Z975 = 1.96;

/** Six digits: more is noise, and the last ones of a sum differ with its order. */
export const rounded = (value: number): number => (Number.isFinite(value) ? Number(value.toPrecision(6)) : value);

/** The mean of what runs came to, and its 95 % interval; of one run, its own figure. */
export function intervalOf(values: readonly number[]): Interval {
  const count = values.length;
  const mean = values.reduce((sum, value) => sum + value, 0) / Math.max(1, count);
  if (count < 2) return { mean: rounded(mean), low: rounded(mean), high: rounded(mean) };
  const variance = values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / (count - 1);
  const half = (T975[count - 2] ?? Z975) * Math.sqrt(variance / count);
  return { mean: rounded(mean), low: rounded(mean - half), high: rounded(mean + half) };
}
