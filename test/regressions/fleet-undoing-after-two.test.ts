// Was: what a frozen worker had done was not undone where the worker after it had claimed the key and died before it
// began anything: "another call under its key may rely on it". And what two workers had done under one key was told as
// undone and as shared. Now: a claim of the turn's own earlier owners is nobody else's.
import { firstValueFrom } from 'rxjs';
import { expect, it } from 'vitest';
import { plan, tool } from 'spillway';
import { virtualRuntime } from 'spillway/testing';
import { handFleet, sharedStore } from '../fleet/by-hand.ts';

const NODES = [
  { id: 'hotel', tool: 'hotel' },
  { id: 'look', tool: 'look', needs: ['hotel'] },
];
const book = plan.from(NODES, { onFailure: 'compensate', timeoutMs: 20_000 });

const look = tool({
  name: 'look',
  policy: { effects: 'read', retry: { maxAttempts: 1 } },
  execute: () => {
    throw Object.assign(new Error('there is nothing to see'), { status: 422 });
  },
});

/** A booking by a worker that then stands still; the next one dies with its key, and a third has the turn later. */
const bookedByTwo = async (afterMs: number) => {
  const runtime = virtualRuntime();
  const store = sharedStore(runtime);
  const world = handFleet(runtime, store);
  const booked = new Set<string>();
  const hotel = (done: () => void) =>
    tool({
      name: 'hotel',
      policy: { effects: 'mutating', enforcesKey: true, retry: { maxAttempts: 1 }, compensate: { enforcesKey: true } },
      execute: async (_: unknown, { callKey }) => {
        booked.add(callKey);
        done();
        await firstValueFrom(runtime.after(10));
        return 'a room';
      },
      compensate: (_: unknown, { callKey }) => void booked.delete(callKey),
    });
  const one = world.worker('one', [hotel(() => one.machine.freeze(6_000)), look]);
  const two = world.worker('two', [hotel(() => undefined), look]);
  const three = world.worker('three', [hotel(() => undefined), look]);
  await world.fleet.submit('t', book);
  await one.give('t');
  const setIfNotExists = store.setIfNotExists.bind(store);
  store.setIfNotExists = async (claim, over) => {
    const answer = await setIfNotExists(claim, over);
    if (claim.tool === 'hotel' && answer.created && runtime.now() < givenAtMs + 8_000) two.machine.kill();
    return answer;
  };
  const givenAtMs = runtime.now();
  await runtime.advance(4_000);
  await two.give('t');
  await runtime.advance(afterMs);
  expect(two.machine.isDead).toBe(true);
  await three.give('t');
  await runtime.advance(60_000);
  return { booked, compensation: world.result('t')?.compensation };
};

it.each([
  ['deadline', 20_000],
  ['escalated', 5_000],
] as const)('R-18.6 what a frozen worker booked is undone once, and told once: %s', async (reason, afterMs) => {
  const { booked, compensation } = await bookedByTwo(afterMs);
  expect(compensation).toStrictEqual({ reason, compensated: ['hotel'], stays: [] });
  expect([...booked]).toStrictEqual([]);
});
