// Was: a node whose store gave no answer was called again half a second later, also where its turn had been canceled or
// had gone elsewhere meanwhile: it was paid behind an end that said "It had not started". Now: nothing of a turn begins
// once it is over.
import { expect, it } from 'vitest';
import { plan, tool } from 'spillway';
import { virtualRuntime } from 'spillway/testing';
import { ToolExecutionError } from '../../src/contract/tool-error.ts';
import { handFleet, sharedStore } from '../fleet/by-hand.ts';

/** A payment whose store is lost for its first claim, and back right after it. */
const lostForAMoment = async () => {
  const runtime = virtualRuntime();
  const store = sharedStore(runtime);
  let losses = 1;
  const setIfNotExists = store.setIfNotExists.bind(store);
  store.setIfNotExists = async (...given) => {
    if (losses-- > 0) throw new ToolExecutionError('store_unavailable', 'no answer');
    return setIfNotExists(...given);
  };
  const world = handFleet(runtime, store);
  const paid: string[] = [];
  const pay = tool({ name: 'pay', policy: { effects: 'mutating' }, execute: () => paid.push('pay') });
  const worker = world.worker('one', [pay]);
  await world.fleet.submit('t', plan.from([{ id: 'n', tool: 'pay' }], { timeoutMs: 60_000 }));
  await worker.give('t');
  return { world, worker, paid };
};

it('R-17.6 a turn that is canceled while its store is lost pays nothing afterwards', async () => {
  const { world, paid } = await lostForAMoment();
  await world.fleet.cancel('t');
  await world.runtime.advance(5_000);
  expect(world.result('t')?.nodes[0]?.state).toBe('canceled');
  expect(paid).toStrictEqual([]);
});

it('R-17.4 nor does a worker that has handed it over', async () => {
  const { world, worker, paid } = await lostForAMoment();
  worker.lost$.next(0);
  await world.runtime.advance(5_000);
  expect(paid).toStrictEqual([]);
});
