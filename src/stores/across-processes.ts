import type { DedupeStore } from '../contract/store.ts';
import { SharedBreakers } from '../layer/shared-breakers/registry.ts';
import { bring } from '../saga/brought.ts';
import { resumeTurns } from '../saga/resume.ts';

// With this module, whoever loads it: a bundle has it with the first that calls what is exported here.
bring({ resume: resumeTurns, shareBreakers: SharedBreakers });

/**
 * Puts into a program's bundle what a layer does over a store that others see, too: `shareBreakers` and `resume()`.
 * `redisStore` and `sqliteStore` have it done. It is for a store of another kind in a program that is bundled; where
 * modules are loaded one by one, all is there.
 *
 * @param store any store; gone through untouched
 * @returns the same store
 *
 * @example
 * const spillway = createSpillway({ tools, store: acrossProcesses(store), shareBreakers: true });
 */
export const acrossProcesses = <Store extends DedupeStore>(store: Store): Store => store;
