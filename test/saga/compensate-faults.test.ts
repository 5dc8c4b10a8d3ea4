import type { TurnEvent, TurnResult } from 'spillway';
import { memoryStore } from 'spillway/stores/memory';
import { virtualRuntime } from 'spillway/testing';
import { describe, expect, it } from 'vitest';
import { turnResultOf } from '../call/kit.ts';
import { Agency, FAULTS, SITES, TripProcess, wrongs, type Fault, type Site } from './trip.ts';

const LONG_MS = 3_600_000;

const settled = async (
  faults: ReadonlyMap<Site, Fault>,
  endsBadly: boolean,
): Promise<{ readonly agency: Agency; readonly result: TurnResult }> => {
  const runtime = virtualRuntime();
  const agency = new Agency();
  const trip = new TripProcess(runtime, memoryStore({ runtime }), agency, { faults, endsBadly });
  const events: TurnEvent[] = [];
  trip.layer.turn(trip.plan).subscribe((event) => events.push(event));
  await runtime.advance(LONG_MS);
  return { agency, result: turnResultOf(events) };
};

type Strike = readonly [Site, Fault];
const strikes: readonly Strike[] = SITES.flatMap((site) => FAULTS.map((fault): Strike => [site, fault]));

/** Whether a person has to be asked: only where nothing can find out or undo. */
const hopeless = (struck: readonly Strike[]): boolean =>
  struck.some(([site, fault]) => (site.startsWith('undo') ? fault === 'refuses' : fault === 'deaf'));

const problemsOf = async (struck: readonly Strike[], endsBadly: boolean): Promise<string[]> => {
  const { agency, result } = await settled(new Map(struck), endsBadly);
  const found = wrongs(agency, result.nodes);
  const stays = result.compensation?.stays ?? [];
  if (stays.length > 0 && !hopeless(struck)) found.push(`${stays.map(({ id }) => id).join(' ')} stays for no reason`);
  if (endsBadly && result.nodes.some(({ id, state }) => id !== 'pay' && state === 'succeeded'))
    found.push('something stays booked of a trip that failed');
  return found.map((problem) => `${struck.map((strike) => strike.join(' ')).join(', ')}: ${problem}`);
};

describe('a trip of five bookings', () => {
  it.each([true, false])('R-18.5 under every single fault, when it fails in the end: %s', async (endsBadly) => {
    const problems: string[] = [];
    for (const strike of strikes) problems.push(...(await problemsOf([strike], endsBadly)));
    expect(problems).toEqual([]);
    expect(strikes).toHaveLength(80);
  });

  it('R-18.5 under every pair of faults', { timeout: 300_000 }, async () => {
    const problems: string[] = [];
    let pairs = 0;
    for (const [index, one] of strikes.entries())
      for (const other of strikes.slice(index + 1)) {
        if (one[0] === other[0]) continue;
        pairs++;
        problems.push(...(await problemsOf([one, other], true)));
      }
    expect(problems).toEqual([]);
    expect(pairs).toBe(2_880);
  });
});
