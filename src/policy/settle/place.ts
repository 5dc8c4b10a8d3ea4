/** One step into a value: a key, an index, or any item of a list. */
export type Step = string | number | typeof ANY;

/** `[*]`: any item. */
export const ANY: unique symbol = Symbol('any item');

const PLACE = /^[^.[\]{}\s]+(?:\.[^.[\]{}\s]+|\[\d{1,9}\]|\[\*\]|\["[^"\\]*"\])*$/;
const STEP = /(?:^|\.)([^.[\]{}\s]+)|\[(\d{1,9})\]|\[(\*)\]|\["([^"\\]*)"\]/g;

/**
 * The steps of a place in a value: `messages[*].id`.
 * @throws RangeError for a text that is none
 */
export const stepsOf = (option: string, place: unknown): readonly Step[] => {
  if (typeof place !== 'string' || place.length > 1_024 || !PLACE.test(place))
    throw new RangeError(
      `${option} must be a path such as status, items[0].id or messages[*].id, not ${String(place)}`,
    );
  return [...place.matchAll(STEP)].map(([, key, index, every, quoted]) =>
    every === undefined ? (index === undefined ? (key ?? quoted ?? '') : Number(index)) : ANY,
  );
};

/** What stands at a place: every value that is there, and whether the way to it was as the place says. */
export interface Found {
  readonly values: readonly unknown[];
  /** A list or a mapping on the way was missing, or something else. */
  readonly isOdd: boolean;
}

const has = (value: unknown, step: string | number): boolean =>
  Array.isArray(value)
    ? typeof step === 'number'
    : typeof value === 'object' && value !== null && typeof step === 'string';

/**
 * Looks at a place. That the last key is not there is an answer; that what it would be in is not there is none.
 */
export const at = (value: unknown, steps: readonly Step[]): Found => {
  const [step, ...rest] = steps;
  if (step === undefined) return { values: value === undefined || value === null ? [] : [value], isOdd: false };
  if (step === ANY) {
    if (!Array.isArray(value)) return { values: [], isOdd: true };
    const found = value.map((item) => at(item, rest));
    return { values: found.flatMap(({ values }) => values), isOdd: found.some(({ isOdd }) => isOdd) };
  }
  if (!has(value, step)) return { values: [], isOdd: true };
  return at(Object.hasOwn(value as object, step) ? (value as Record<string | number, unknown>)[step] : undefined, rest);
};
