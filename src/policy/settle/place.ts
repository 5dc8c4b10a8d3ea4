import { PLACE } from '../../contract/settle/place.ts';

/** One step into a value: a key, an index, or any item of a list. */
export type Step = string | number | typeof ANY;

/** `[*]`: any item. */
export const ANY: unique symbol = Symbol('any item');

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
export interface PlaceValues {
  readonly values: readonly unknown[];
  /** A list or a mapping on the way was missing, or something else. */
  readonly isOdd: boolean;
  /** What the last key would be in is there, without that key, and it is no item of a list. */
  readonly isMissing: boolean;
}

const ODD: PlaceValues = { values: [], isOdd: true, isMissing: false };

const has = (value: unknown, step: string | number): boolean =>
  Array.isArray(value)
    ? typeof step === 'number'
    : typeof value === 'object' && value !== null && typeof step === 'string';

/** Looks at a place. */
export const at = (value: unknown, steps: readonly Step[]): PlaceValues => {
  const [step, ...rest] = steps;
  if (step === undefined) return { values: value === undefined ? [] : [value], isOdd: false, isMissing: false };
  if (step === ANY) {
    if (!Array.isArray(value)) return ODD;
    const found = value.map((item) => at(item, rest));
    return {
      values: found.flatMap(({ values }) => values),
      isOdd: found.some(({ isOdd }) => isOdd),
      // A list may have items of several kinds.
      isMissing: false,
    };
  }
  if (!has(value, step)) return ODD;
  // A list that ends before an index is an answer: it has no such item.
  if (rest.length === 0 && typeof step === 'string' && !Object.hasOwn(value as object, step))
    return { values: [], isOdd: false, isMissing: true };
  return at(Object.hasOwn(value as object, step) ? (value as Record<string | number, unknown>)[step] : undefined, rest);
};
