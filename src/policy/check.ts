/** A rule for a number: the check, and how a message words it. */
interface NumberRule {
  readonly holds: (value: number) => boolean;
  readonly rule: string;
}

const DURATION_MAX_MS = Number.MAX_SAFE_INTEGER;

/** A finite duration, zero included. */
export const duration: NumberRule = {
  holds: (value) => value >= 0 && value <= DURATION_MAX_MS,
  rule: 'a duration from 0 to 2^53 - 1 ms',
};
export const positiveDuration: NumberRule = {
  holds: (value) => value > 0 && value <= DURATION_MAX_MS,
  rule: 'a duration above 0, to 2^53 - 1 ms',
};
export const durationOrInfinity: NumberRule = {
  holds: (value) => duration.holds(value) || value === Infinity,
  rule: 'a duration from 0 to 2^53 - 1 ms, or Infinity',
};

export const integer = (min: number, max: number): NumberRule => ({
  holds: (value) => Number.isInteger(value) && value >= min && value <= max,
  rule: `an integer from ${min} to ${max}`,
});

export const integerOrInfinity = (min: number, max: number): NumberRule => ({
  holds: (value) => value === Infinity || integer(min, max).holds(value),
  rule: `${integer(min, max).rule}, or Infinity`,
});

export const number = (min: number, max: number): NumberRule => ({
  holds: (value) => value >= min && value <= max,
  rule: `a number from ${min} to ${max}`,
});

/** What is not `undefined` of something. */
type Given<T> = { readonly [K in keyof T as undefined extends T[K] ? never : K]: T[K] } & {
  readonly [K in keyof T as undefined extends T[K] ? K : never]?: Exclude<T[K], undefined>;
};

/** Options without those that are `undefined`: one that was passed on without a value must not hide a default. */
export const given = <T extends object>(options: T | undefined): Given<T> =>
  Object.fromEntries(Object.entries(options ?? {}).filter(([, value]) => value !== undefined)) as Given<T>;

/** A value as an error message shows it. */
const show = (value: unknown): string => {
  if (typeof value === 'string') return JSON.stringify(value.slice(0, 64));
  return typeof value === 'object' && value !== null ? 'an object' : String(value);
};

/** Throws a `RangeError` that names the option, the rule and the value. */
export function checkNumber(option: string, value: unknown, { holds, rule }: NumberRule): void {
  if (typeof value !== 'number' || !holds(value)) throw new RangeError(`${option} must be ${rule}, not ${show(value)}`);
}

/** Throws a `RangeError` unless `value` is one of `allowed`. */
export function checkOneOf(option: string, value: unknown, allowed: readonly string[]): void {
  if (typeof value !== 'string' || !allowed.includes(value))
    throw new RangeError(`${option} must be one of ${allowed.join(', ')}, not ${show(value)}`);
}

/**
 * Throws a `RangeError` for a key that is none of `allowed`: a misspelt option would otherwise be ignored in silence.
 */
export function checkKeys(of: string, options: object, allowed: readonly string[]): void {
  for (const key of Object.keys(options)) {
    if (!allowed.includes(key))
      throw new RangeError(`${of} has no option ${show(key)}; it takes ${allowed.join(', ')}`);
  }
}
