import type { VerifyFinding, VerifyLookup } from '../../contract/settle/verify.ts';
import { canonicalJson } from '../key/canonical-json.ts';
import { filled, type Facts, type Fill } from './filled.ts';
import { at, stepsOf, type Step } from './place.ts';

/** What a verification found, and what the call gives where it took effect. */
export interface VerifyReport {
  readonly finding: VerifyFinding;
  /** With `not_done`: it will not be, whatever is still under way. */
  readonly isFinal?: true;
  /** With `done`, where the answer has one. */
  readonly output?: { readonly value: unknown };
  /** With `unknown`: why, for the trace. */
  readonly message?: string;
}

export const unknownSince = (message: string): VerifyReport => ({ finding: 'unknown', message });

/**
 * An answer of `verify`, read: whatever is not exactly one of the answers is `unknown`, since nothing may be told as
 * done or undone by a guess.
 */
export const findingOf = (answer: unknown): VerifyReport => {
  if (answer === 'unknown') return unknownSince('verify answered that it is not known');
  try {
    if (typeof answer === 'object' && answer !== null && !Array.isArray(answer)) {
      const { done, final } = answer as { readonly done?: unknown; readonly final?: unknown };
      if (done === false) return { finding: 'not_done', ...(final === true ? { isFinal: true } : {}) };
      if (done === true)
        return {
          finding: 'done',
          ...('output' in answer ? { output: { value: (answer as { readonly output: unknown }).output } } : {}),
        };
    }
  } catch {
    // What cannot be read says nothing.
  }
  return unknownSince("verify must answer { done: true, output? }, { done: false, final? } or 'unknown'");
};

/** What several tools that one call may have used come to: one that is done decides, and all must say that none is. */
export const foundOf = (all: readonly VerifyReport[]): VerifyReport =>
  all.find(({ finding }) => finding === 'done') ??
  all.find(({ finding }) => finding === 'unknown') ??
  all[0] ??
  unknownSince('there is no tool that could say');

/** A tool over MCP may give its answer as one text, which is JSON. */
const readAnswer = (answer: unknown): unknown => {
  if (typeof answer !== 'string') return answer;
  try {
    return JSON.parse(answer) as unknown;
  } catch {
    return answer;
  }
};

/** A lookup whose parts are read. */
export interface ReadLookup {
  readonly tool: string;
  /** Its input, of the facts of the call in doubt. */
  readonly input: Fill;
  /** What its answer says. */
  readonly read: (answer: unknown, facts: Facts) => VerifyReport;
  /** What a status that it fails with says. */
  readonly absent: (status: number | undefined) => boolean;
}

/** The facts of a call in doubt. */
const NAMES = ['input', 'callKey'];

const same = (one: unknown, other: unknown): boolean => {
  try {
    return canonicalJson(one, { volatile: [] }) === canonicalJson(other, { volatile: [] });
  } catch {
    return false;
  }
};

/**
 * Reads a verification by data.
 * @throws RangeError for a path or a reference that cannot be read
 */
export const lookupOf = ({ tool, input, done, output, otherwise, absentOn = [] }: VerifyLookup): ReadLookup => {
  const place: readonly Step[] = stepsOf('verify.done.path', done.path);
  const isCompared = 'equals' in done && done.equals !== undefined;
  const wanted = filled('verify.done.equals', done.equals, NAMES);
  const outputAt = output === undefined ? undefined : stepsOf('verify.output', output);
  return {
    tool,
    input: input === undefined ? (facts) => facts['input'] : filled('verify.input', input, NAMES),
    absent: (status) => status !== undefined && absentOn.includes(status),
    read: (given, facts) => {
      const answer = readAnswer(given);
      const { values, isOdd, isMissing } = at(answer, place);
      const expected = isCompared ? wanted(facts) : undefined;
      if (values.some((found) => (isCompared ? same(found, expected) : found !== null))) {
        const [value] = outputAt === undefined ? [] : at(answer, outputAt).values;
        return { finding: 'done', ...(value === undefined || value === null ? {} : { output: { value } }) };
      }
      // An answer that is about something else, such as an error with a status of success, lacks the key, too.
      if (isOdd || (isMissing && otherwise === undefined))
        return unknownSince(`the answer of ${tool} has no ${done.path}`);
      return otherwise === 'unknown' ? unknownSince(`the answer of ${tool} does not show it`) : { finding: 'not_done' };
    },
  };
};
