// Was: a process that died when it had undone all it could, and not yet said so, left a turn whose staying effects
// named nobody who must act about them. Now: whoever goes on with it names the same owner as the first would have.
import { memoryStore } from 'spillway/stores/memory';
import { virtualRuntime } from 'spillway/testing';
import { expect, it } from 'vitest';
import type { LeftBehind } from '../../src/contract/turn.ts';
import { Agency, Mortal, TripProcess } from '../saga/trip.ts';

const LONG_MS = 600_000;

/** What a process finds to stay of a trip whose hotel cannot be canceled, and whose process died at a step. */
const staying = async (life: Mortal): Promise<readonly LeftBehind[]> => {
  const runtime = virtualRuntime();
  const store = memoryStore({ runtime });
  const agency = new Agency();
  const first = new TripProcess(runtime, store, agency, { faults: new Map([['undo hotel', 'refuses']]), life });
  first.layer.turn(first.plan).subscribe();
  await runtime.advance(LONG_MS);
  const resuming = new TripProcess(runtime, store, agency).layer.resume();
  await runtime.advance(LONG_MS);
  return (await resuming).flatMap(({ compensation }) => compensation?.stays ?? []);
};

it('R-18.6 whoever goes on with a turn names who must act about what stays, wherever its process died', async () => {
  const whole = new Mortal();
  expect(await staying(whole)).toEqual([]);
  const found: LeftBehind[] = [];
  for (let last = 0; last < whole.steps.length; last++) found.push(...(await staying(new Mortal(last))));
  expect(found.length).toBeGreaterThan(0);
  expect(found.filter(({ owner }) => owner !== 'a person')).toEqual([]);
});
