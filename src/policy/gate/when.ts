import type { ApprovalWhen } from '../../contract/gate/approval.ts';
import { canonicalJson } from '../key/canonical-json.ts';
import { ANY, stepsOf, type Step } from '../settle/place.ts';

const isSame = (a: unknown, b: unknown): boolean => canonicalJson(a) === canonicalJson(b);

const holds = ({ above, below, ...rest }: ApprovalWhen, value: unknown): boolean => {
  if ('equals' in rest) return isSame(value, rest.equals);
  if ('unless' in rest) return !isSame(value, rest.unless);
  // No number compares with what is none, and nothing runs unapproved for that.
  if (typeof value !== 'number' || Number.isNaN(value)) return true;
  return (above !== undefined && value > above) || (below !== undefined && value < below);
};

/** What stands at a place; `undefined` for each value that is not there. */
const standing = (value: unknown, [step, ...rest]: readonly Step[]): readonly unknown[] => {
  if (step === undefined) return [value];
  if (step === ANY) return Array.isArray(value) ? value.flatMap((item) => standing(item, rest)) : [undefined];
  if (typeof value !== 'object' || value === null || !Object.hasOwn(value, step)) return [undefined];
  return standing((value as Record<string | number, unknown>)[step], rest);
};

/** Whether a rule that is data has a person approve an input; what cannot be told counts as yes. */
export const neededBy = (when: ApprovalWhen, input: unknown): boolean => {
  try {
    const values = standing(input, stepsOf('path', when.path));
    return values.length === 0 || values.some((value) => value === undefined || holds(when, value));
  } catch {
    return true;
  }
};
