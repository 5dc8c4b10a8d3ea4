import type { SharedBreakers } from '../layer/shared-breakers/registry.ts';
import type { resumeTurns } from './resume.ts';

/**
 * What a layer does only with what outlives it. Stores that other processes see bring it along, and plans what is
 * theirs, so that the bundle of a program without them holds nothing of it.
 */
interface Parts {
  readonly resume: typeof resumeTurns;
  readonly shareBreakers: typeof SharedBreakers;
}

const parts: Partial<Parts> = {};

/** From now on every layer of this program has it. */
export const bring = (some: Partial<Parts>): void => {
  Object.assign(parts, some);
};

export const isBrought = (name: keyof Parts): boolean => parts[name] !== undefined;

/** @throws RangeError where the program has nothing that brings it along */
export const brought = <Name extends keyof Parts>(name: Name): Parts[Name] => {
  const part = parts[name];
  if (part === undefined)
    throw new RangeError(
      `${name} is not in this bundle: redisStore, sqliteStore and, for resume, plan bring it along; ` +
        'hand a store of another kind over as acrossProcesses(store)',
    );
  return part;
};
