// Was: a node that a worker had begun before it died was told as "It had not started" where the turn then ended by its
// deadline or a cancel. Now: what an earlier worker may have begun is told as that.
import { expect, it } from 'vitest';
import { plan, tool } from 'spillway';
import { handFleet } from '../fleet/by-hand.ts';

/** A turn of three payments, one after the other, whose worker has paid the first and dies in the second. */
const begunElsewhere = async (timeoutMs: number) => {
  const world = handFleet();
  const paid: string[] = [];
  const pay = tool({
    name: 'pay',
    policy: { effects: 'mutating' },
    execute: async ({ what }: { what: string }) => {
      paid.push(what);
      if (what === 'b') await new Promise(() => undefined);
      return what;
    },
  });
  const [one, two] = [world.worker('one', [pay]), world.worker('two', [pay])];
  const nodes = ['a', 'b', 'c'].map((id, at, ids) => {
    const before = ids[at - 1];
    return { id, tool: 'pay', input: { what: id }, needs: before === undefined ? [] : [before] };
  });
  await world.fleet.submit('t', plan.from(nodes, { timeoutMs }));
  await one.give('t');
  expect(paid).toStrictEqual(['a', 'b']);
  one.machine.kill();
  return { world, two };
};

const SAID = 'It may have been running elsewhere when';

it('R-17.3 a node that an earlier worker may have begun is not told as never started at the deadline', async () => {
  const { world, two } = await begunElsewhere(5_000);
  await world.runtime.advance(10_000);
  await two.give('t');
  expect(world.result('t')?.nodes.map(({ reason }) => reason)).toStrictEqual([
    undefined,
    `${SAID} the turn ended`,
    'It had not started when the turn ended',
  ]);
});

it('R-17.6 nor where the turn is canceled while it moves', async () => {
  const { world, two } = await begunElsewhere(60_000);
  await world.fleet.cancel('t');
  await two.give('t');
  expect(world.result('t')?.nodes.map(({ reason }) => reason)).toStrictEqual([
    undefined,
    `${SAID} the turn was canceled`,
    'It had not started when the turn was canceled',
  ]);
});

it('R-17.6 a turn that no worker had is told as not started', async () => {
  const { world, two } = await begunElsewhere(60_000);
  await world.fleet.submit('new', plan.from([{ id: 'n', tool: 'pay', input: { what: 'n' } }]));
  await world.fleet.cancel('new');
  await two.give('new');
  expect(world.result('new')?.nodes[0]?.reason).toBe('It had not started when the turn was canceled');
});
