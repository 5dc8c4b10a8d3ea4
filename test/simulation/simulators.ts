import type { ScenarioName } from './findings.ts';
import type { Outcome } from './simulate.ts';

/** One run of a scenario. @param log hears every event, for a person */
export type Simulator = (seed: number, log?: (line: string) => void) => Promise<Outcome>;

/** What runs each scenario: loaded when it is asked for, so that what was planted before is what is loaded. */
export async function loadSimulators(): Promise<Readonly<Record<ScenarioName, Simulator>>> {
  const [layer, keys, recovery, switches, hedge, shared, fleet, settle] = await Promise.all([
    import('./simulate.ts'),
    import('./idempotency/simulate.ts'),
    import('./recovery.ts'),
    import('./switches.ts'),
    import('./hedge.ts'),
    import('./shared-breakers.ts'),
    import('./fleet/simulate.ts'),
    import('./settle.ts'),
  ]);
  return {
    layer: layer.simulate,
    idempotency: keys.simulateKeys,
    recovery: recovery.simulateRecovery,
    switches: switches.simulateSwitches,
    hedge: hedge.simulateHedge,
    breakers: shared.simulateSharedBreakers,
    fleet: fleet.simulateFleet,
    settle: settle.simulateSettle,
  };
}
