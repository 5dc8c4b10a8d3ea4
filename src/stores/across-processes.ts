import type { DedupeStore } from '../contract/store.ts';
import { SharedBreakers } from '../layer/shared-breakers/registry.ts';
import { bring } from '../saga/brought.ts';
import { resumeTurns } from '../saga/resume.ts';

const bringAll = (): void => bring({ resumeTurns, SharedBreakers });

// Where modules are loaded one by one, every layer has both with this one. A bundler leaves this module out of a
// program that calls nothing of it.
bringAll();

/**
 * Puts into a program's bundle what a layer does over a store that other processes use, too: `shareBreakers` and
 * `resume()`. `redisStore` and `sqliteStore` do so themselves. It is for a store of another kind in a program that is
 * bundled; where modules are loaded one by one, every layer has both.
 *
 * @param store any store; nothing about it is changed
 * @returns the same store
 *
 * @example
 * const spillway = createSpillway({ tools, store: acrossProcesses(store), shareBreakers: true });
 */
export const acrossProcesses = <Store extends DedupeStore>(store: Store): Store => {
  // A call that only gave its argument back could be dropped by a bundler, and this module with it.
  bringAll();
  return store;
};
