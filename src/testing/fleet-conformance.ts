import type { Awaitable } from '../contract/store.ts';
import { checkKeys, checkNumber, integer } from '../policy/check.ts';
import type { FleetSizes } from './fleet-conformance/check.ts';
import { faultCases } from './fleet-conformance/faults.ts';
import { loadCases } from './fleet-conformance/load.ts';
import { ruleCases } from './fleet-conformance/rules.ts';
import type { FleetHarness } from './fleet-conformance/world.ts';

/** One thing that every engine of a fleet must do. */
export interface FleetCase {
  /** What the engine must do, as the name of a test. */
  readonly name: string;
  /** Rejects with an Error that says what was expected and what came instead. Takes seconds: processes die in it. */
  run(): Promise<void>;
}

/** How large the cases with faults are. */
export interface FleetConformanceOptions {
  /** Turns that run while there are faults, 1 to 10,000. Default 60. */
  readonly turns?: number;
  /** Workers that are killed or stand still, 2 to 16. Default 3. */
  readonly workers?: number;
  /** Milliseconds between two faults, 100 to 60,000. Default 1,500. */
  readonly everyMs?: number;
  /** How long a worker stands still, in milliseconds, 100 to 60,000. Default 4,000. */
  readonly freezeMs?: number;
  /** Milliseconds that a node may cost more than in process, 1 to 1,000. Default 25. */
  readonly nodeCostMs?: number;
}

/**
 * What an engine must do, as cases for any test runner. Each makes a fleet of its own and closes it. Workers are real
 * processes, which serve with `fleetConformanceTools`.
 *
 * @param makeFleet makes an engine without turns, and what the cases need around it
 * @param options how large the cases with faults are
 * @throws RangeError for a size out of its range
 */
export function fleetConformance(
  makeFleet: () => Awaitable<FleetHarness>,
  options: FleetConformanceOptions = {},
): readonly FleetCase[] {
  checkKeys('fleetConformance', options, ['turns', 'workers', 'everyMs', 'freezeMs', 'nodeCostMs']);
  const sizes: FleetSizes = { turns: 60, workers: 3, everyMs: 1_500, freezeMs: 4_000, nodeCostMs: 25, ...options };
  checkNumber('turns', sizes.turns, integer(1, 10_000));
  checkNumber('workers', sizes.workers, integer(2, 16));
  checkNumber('everyMs', sizes.everyMs, integer(100, 60_000));
  checkNumber('freezeMs', sizes.freezeMs, integer(100, 60_000));
  checkNumber('nodeCostMs', sizes.nodeCostMs, integer(1, 1_000));
  return [...ruleCases, ...faultCases, ...loadCases].map((one) => ({
    name: one.name,
    run: async () => {
      const harness = await makeFleet();
      try {
        await one.run(harness, sizes);
      } finally {
        await harness.close();
      }
    },
  }));
}
