import { describe, it } from 'vitest';
import { fleetConformance } from 'spillway/testing';
import { harness } from '../kit.ts';
import { startRestate } from './server.ts';

/** The whole sizes are those of `test/soak/fleet.ts`. */
const SIZES = { turns: 12, workers: 2, everyMs: 1_000, freezeMs: 4_000, nodeCostMs: 25 } as const;
const CASE_MS = 150_000;

describe('R-17 conformance of Restate', () => {
  it.each(fleetConformance(async () => harness(await startRestate()), SIZES))(
    'R-17 $name',
    ({ run }) => run(),
    CASE_MS,
  );
});
