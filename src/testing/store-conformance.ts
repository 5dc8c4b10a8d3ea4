import type { Awaitable } from '../contract/store.ts';
import { checkedStore } from '../operators/dedupe/checked-store.ts';
import { checkNumber, integer } from '../policy/check.ts';
import type { HarnessCase, StoreHarness } from './store-conformance/check.ts';
import { claimCases } from './store-conformance/claims.ts';
import { dataCases } from './store-conformance/data.ts';
import { listCases } from './store-conformance/lists.ts';
import { outcomeCases } from './store-conformance/outcomes.ts';
import { raceCases } from './store-conformance/races.ts';

/** One thing that every store must do. */
export interface StoreCase {
  /** What the store must do, as the name of a test. */
  readonly name: string;
  /** Rejects with an Error that says what was expected and what came instead. */
  run(): Promise<void>;
}

/** How the random cases are drawn. */
export interface StoreConformanceOptions {
  /** The seed of the random cases, which name it when they fail: an integer from 0. Default 1. */
  readonly seed?: number;
}

/**
 * What a `DedupeStore` must do, as cases for any test runner. Each makes a store of its own and closes it. They take
 * seconds where `pass` is virtual, and up to half a minute where it waits.
 *
 * @param makeStore makes an empty store that nobody else uses, and what the cases need around it
 * @param options the seed of the random cases
 * @throws RangeError for a seed out of range
 *
 * @example
 * const cases = storeConformance(() => {
 *   const runtime = virtualRuntime();
 *   const store = memoryStore({ runtime });
 *   return { store, pass: (ms) => runtime.advance(ms), close: () => store.close?.() };
 * });
 * for (const { name, run } of cases) await run().catch((error: unknown) => console.error(name, error));
 */
export function storeConformance(
  makeStore: () => Awaitable<StoreHarness>,
  { seed = 1 }: StoreConformanceOptions = {},
): readonly StoreCase[] {
  checkNumber('seed', seed, integer(0, Number.MAX_SAFE_INTEGER));
  const cases: readonly HarnessCase[] = [
    ...claimCases,
    ...outcomeCases,
    ...dataCases,
    ...listCases,
    ...raceCases(seed),
  ];
  return cases.map(({ name, run }) => ({
    name,
    run: async () => {
      const harness = await makeStore();
      try {
        const { open } = harness;
        // Each answer is looked at as calls look at it: what they would refuse fails the case.
        await run({
          ...harness,
          store: checkedStore(harness.store),
          ...(open === undefined ? {} : { open: async () => checkedStore(await open()) }),
        });
      } finally {
        await harness.close();
      }
    },
  }));
}
