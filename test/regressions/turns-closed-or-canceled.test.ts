// Was: a turn that was cut short by close(), or that lacked a canceled call, ended partial, and nothing of it was
// undone or kept. Now: it is undone as one that was canceled, and what close() leaves is there for resume().
import { expect, it } from 'vitest';
import { ToolExecutionError, type Tool } from 'spillway';
import { DEAD_MS, World, states } from './settling.ts';

const nodes = [
  { id: 'f', tool: 'flight', input: {} },
  { id: 'p', tool: 'pay', input: {}, needs: ['f'], idempotencyKey: 'pay-1' },
] as const;

const slowly = (world: World): Tool =>
  world.books(
    'pay',
    { timeoutMs: 60_000, verify: { settleMs: 0 } },
    {
      execute: (_: unknown, { callKey }) =>
        new Promise((resolve) =>
          world.runtime.after(2_000).subscribe(() => {
            world.ledger.push(`+${callKey}`);
            resolve({});
          }),
        ),
      verify: (_, { callKey }) => ({ done: world.has(callKey) }),
    },
  );

it('R-18.5 what close() cuts short is left for resume(), and the result says so', async () => {
  const world = new World();
  const tools = [world.books('flight'), slowly(world)];
  const layer = world.process(tools);
  const turn = world.turn(layer, nodes);
  await world.runtime.advance(1_000);
  void layer.close();
  await world.runtime.advance(DEAD_MS);
  expect(turn.result?.compensation).toMatchObject({ reason: 'canceled', compensated: [] });
  expect(turn.result?.compensation?.stays.map(({ id }) => id)).toEqual(['f', 'p']);
  const [resumed] = await world.resume(world.process(tools));
  expect(resumed?.compensation).toMatchObject({ compensated: ['f', 'p'], stays: [] });
  expect(world.ledger.filter((line) => line.startsWith('+'))).toHaveLength(2);
  expect(world.ledger.filter((line) => line.startsWith('-'))).toHaveLength(2);
});

it.each([
  [true, ['f'], { f: 'compensated', p: 'canceled' }],
  [false, undefined, { f: 'succeeded', p: 'canceled' }],
])('R-18.5 a tool that says canceled, required %s', async (isRequired, compensated, ended) => {
  const world = new World();
  const pay: Tool = {
    name: 'pay',
    policy: { effects: 'mutating' },
    execute: () => {
      throw new ToolExecutionError('canceled', 'the user said no', { executed: false });
    },
  };
  const layer = world.process([world.books('flight'), pay]);
  const turn = world.turn(layer, [nodes[0], isRequired ? nodes[1] : { ...nodes[1], optional: true }]);
  await world.runtime.advance(DEAD_MS);
  expect(turn.result && states(turn.result)).toEqual(ended);
  expect(turn.result?.compensation?.compensated).toEqual(compensated);
});
