import { Alphabet } from './alphabet.ts';
import { Automaton } from './automaton.ts';
import type { StepBudget } from './budget.ts';
import { checkSize, compilePattern } from './program.ts';
import { parsePattern, type PatternNode } from './syntax.ts';

/** What Ajv asks of a regular expression. */
export interface LinearPattern {
  /** @throws PatternCostError for a text that would cost more than its share */
  test(text: string): boolean;
  /** As a literal: Ajv knows a pattern by it. */
  toString(): string;
}

/** Longer than patterns get that people write; a table of all emoji takes 10,000. */
const LENGTH_MAX = 16_384;
const SHOWN_MAX = 64;
/**
 * Steps that a text may cost, whatever its length, and for each of its characters: 100 KB are 1.2 million, some 15 ms.
 */
const STEPS = 400_000;
const STEPS_EACH = 8;

const characters = (text: string, unicode: boolean): Uint32Array => {
  const read = new Uint32Array(text.length);
  let length = 0;
  for (let at = 0; at < text.length; at++) {
    const character = (unicode ? text.codePointAt(at) : text.charCodeAt(at)) ?? 0;
    read[length++] = character;
    if (character > 0xffff) at++;
  }
  return read.subarray(0, length);
};

const testerOf = (node: PatternNode, flags: string, pattern: string): ((text: string) => boolean) => {
  const { main, looks, atoms } = compilePattern(node);
  const alphabet = new Alphabet(atoms, flags);
  const mainly = new Automaton(main, alphabet);
  const lookers = looks.map((program) => new Automaton(program, alphabet));
  return (text) => {
    const read = characters(text, flags.includes('u'));
    const budget: StepBudget = { steps: STEPS + STEPS_EACH * read.length, pattern };
    const holding: Uint8Array[] = [];
    for (const looker of lookers) {
      const places = new Uint8Array(read.length + 1);
      looker.read(read, holding, budget, places);
      holding.push(places);
    }
    return mainly.read(read, holding, budget);
  };
};

/**
 * A foreign pattern that is checked in linear time, by an automaton and not by backtracking: whoever wrote it could
 * otherwise stop the whole process with one text. It means what the platform's own `RegExp` means by it,
 * look-arounds and classes of Unicode included.
 *
 * Why no package: `re2js` 2.10 (MIT, 900 KB) has no look-arounds, no repeat above 1,000, its own `\s`, `.` and `$`, and
 * takes 900 ms for 100 KB of `(a|b)*a(a|b){200}$`; `re2-wasm` 1.0.2 (Apache-2.0) runs out of memory on half of our
 * hostile patterns; `re2` 1.27 (BSD-3-Clause) is a native module of 87 MB with its build, which no browser and no
 * worker has. To translate JavaScript for them takes the same parser as this does.
 *
 * @param pattern as a JSON Schema has it
 * @param flags of `RegExp`: `u`, `i` and `s`, or fewer
 * @throws RangeError naming the pattern: for one that is none, that refers back to a group (which has no linear check),
 * or that is too large
 *
 * @example
 * linearPattern('^(a+)+$', 'u').test('a'.repeat(100_000) + '!'); // false, after 2 ms
 */
export function linearPattern(pattern: string, flags = 'u'): LinearPattern {
  const shown = JSON.stringify(pattern.length > SHOWN_MAX ? `${pattern.slice(0, SHOWN_MAX)}...` : pattern);
  let node: PatternNode;
  try {
    if (pattern.length > LENGTH_MAX) throw new RangeError(`it is longer than ${LENGTH_MAX} characters`);
    if (!/^[ius]*$/.test(flags)) throw new RangeError(`its flags are ${flags}; leave all but i, u and s out`);
    // What it may not say is the platform's to know.
    node =
      RegExp(pattern, flags) instanceof RegExp
        ? parsePattern(pattern, flags.includes('u'))
        : { type: 'sequence', parts: [] };
    checkSize(node);
  } catch (error) {
    throw new RangeError(`the pattern ${shown} cannot be used: ${(error as Error).message}`, { cause: error });
  }
  let tester: ((text: string) => boolean) | undefined;
  return {
    // A schema may have many patterns of which few are ever asked.
    test: (text) => (tester ??= testerOf(node, flags, shown))(text),
    toString: () => `/${pattern}/${flags}`,
  };
}
