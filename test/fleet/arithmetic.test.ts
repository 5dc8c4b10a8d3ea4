import { describe, expect, it } from 'vitest';
import { plan } from 'spillway';
import { FleetWorld } from '../simulation/fleet/simulate.ts';

const NODES = 3;
const TURNS_EACH = 5;
const SPAN_MS = 20_000;

/** What the ledger is asked while so many workers run their share of turns, a few nodes each. */
const asked = async (
  workers: number,
): Promise<{ readonly spanMs: number; readonly counts: Record<string, number> }> => {
  const world = new FleetWorld(7);
  for (let at = 0; at < workers; at++) world.start();
  const chain = plan.from(
    Array.from({ length: NODES }, (_, at) => ({
      id: `n${at}`,
      tool: 'work',
      input: { ms: 100, failures: 0 },
      needs: at === 0 ? [] : [`n${at - 1}`],
    })),
  );
  for (let at = 0; at < workers * TURNS_EACH; at++) await world.enter(`turn-${at}`, chain);
  await world.side.runtime.advance(SPAN_MS);
  expect([...world.ledger.turns.values()].every(({ isSettled }) => isSettled)).toBe(true);
  for (const machine of world.machines) machine.kill();
  return { spanMs: world.side.elapsedMs, counts: Object.fromEntries(world.ledger.asked) };
};

describe('R-17.7 what a turn costs', () => {
  it.each([1, 10, 100])('R-17.7 is the same however many workers there are: %i', async (workers) => {
    const { spanMs, counts } = await asked(workers);
    const { enter, begin, write = 0, beat = 0 } = counts;
    const turns = workers * TURNS_EACH;
    expect({ enter, begin }).toStrictEqual({ enter: turns, begin: turns });
    // A node begins, has its key, has its value, and has settled; what falls into one moment is one write.
    expect(write / turns).toBeGreaterThanOrEqual(NODES + 1);
    expect(write / turns).toBeLessThanOrEqual(4 * NODES + 2);
    // A sign of life a second.
    expect(beat / workers).toBeGreaterThan((spanMs / 1_000) * 0.9);
    expect(beat / workers).toBeLessThan((spanMs / 1_000) * 1.2);
  });
});
