import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { stripTypeScriptTypes } from 'node:module';
import { join } from 'node:path';
import { edited, placesOf } from '../code-edit.ts';
import { AGENT } from './list/agent.ts';
import { ERRORS } from './list/errors.ts';
import { GATEWAY } from './list/gateway.ts';
import { MONEY } from './list/money.ts';
import { OPERATORS } from './list/operators.ts';
import { POLICY } from './list/policy.ts';
import { STORES } from './list/stores.ts';
import { TURN } from './list/turn.ts';
import type { Mutant } from './mutant.ts';

/** A mutant with the text of its whole file, right and wrong. */
export interface Candidate {
  /** Tells it from all others, and from itself with another text. */
  readonly id: string;
  readonly file: string;
  readonly breaks: string;
  readonly right: string;
  readonly wrong: string;
}

const LISTS = [POLICY, ERRORS, OPERATORS, TURN, STORES, AGENT, GATEWAY, MONEY];

const faultOf = (text: string, [, from, to]: Mutant): string | undefined => {
  const times = placesOf(text, from);
  if (times !== 1) return `its text stands there ${times} times, not once`;
  if (from === to) return 'it changes nothing';
  try {
    stripTypeScriptTypes(edited(text, from, to));
    return undefined;
  } catch {
    return 'with it the file is no TypeScript';
  }
};

/**
 * Reads all mutants whose file begins with one of the given.
 * @throws RangeError that names every mutant whose text is not found exactly once, or that would not even compile: no
 * test would have to notice it
 */
export function candidates(root: string, only: readonly string[]): readonly Candidate[] {
  const faults: string[] = [];
  const found = LISTS.flat()
    .filter(({ file }) => only.length === 0 || only.some((start) => file.startsWith(start)))
    .flatMap(({ file, mutants }): Candidate[] => {
      const right = readFileSync(join(root, 'src', file), 'utf8');
      return mutants.flatMap((mutant): Candidate[] => {
        const [breaks, from, to] = mutant;
        const fault = faultOf(right, mutant);
        if (fault !== undefined) faults.push(`src/${file} (${breaks}): ${fault}: ${JSON.stringify(from)}`);
        const id = createHash('sha256')
          .update(JSON.stringify([file, mutant]))
          .digest('hex')
          .slice(0, 16);
        return fault === undefined ? [{ id, file, breaks, right, wrong: edited(right, from, to) }] : [];
      });
    });
  if (faults.length > 0)
    throw new RangeError(`${faults.length} mutants have to be mended, in test/mutants/list:\n${faults.join('\n')}`);
  return found;
}
