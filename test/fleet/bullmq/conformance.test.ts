import { describe, it } from 'vitest';
import { fleetConformance } from 'spillway/testing';
import { harness } from '../kit.ts';

// The whole sizes are those of test/soak/fleet.ts.
const cases = fleetConformance(() => harness(), { turns: 12, workers: 2, everyMs: 1_000, freezeMs: 4_000 });

describe('R-16 conformance of BullMQ', () => {
  for (const { name, run } of cases) it(name, run, 120_000);
});
