// Was: the undoing of one effect was taken for that of another under the same key, and was forgotten before its
// journal, so that it was left out or made twice. Now: it is known by the call that it undoes, and longer than any
// journal.
import { expect, it } from 'vitest';
import type { Tool, ToolPolicy } from 'spillway';
import { DEAD_MS, World, isJournal, never, refused } from './settling.ts';

const DAY_MS = 86_400_000;
const nodes = [
  { id: 'p', tool: 'pay', input: {}, idempotencyKey: 'o1' },
  { id: 'x', tool: 'refused', input: {}, needs: ['p'] },
] as const;

const refunding = (world: World, refund: () => unknown = () => undefined, policy: ToolPolicy = {}): readonly Tool[] => [
  {
    name: 'pay',
    policy: {
      effects: 'mutating',
      dedupe: { doneTtlMs: 3_600_000 },
      compensate: { tool: 'refund', input: { of: '${callKey}' } },
    },
    execute: (_: unknown, { callKey }) => world.ledger.push(`+${callKey}`),
  },
  {
    name: 'refund',
    policy: { effects: 'mutating', ...policy },
    execute: (input: unknown) => {
      world.ledger.push(`-${(input as { readonly of: string }).of}`);
      return refund();
    },
  },
  refused,
];

const settled = async (world: World, tools: readonly Tool[]): Promise<readonly string[] | undefined> => {
  const turn = world.turn(world.process(tools), nodes);
  await world.runtime.advance(DEAD_MS);
  return turn.result?.compensation?.compensated;
};

it('R-18.12 what is done again under a key once that was flushed is undone again', async () => {
  const world = new World();
  const tools = [world.books('pay'), refused];
  expect(await settled(world, tools)).toEqual(['p']);
  await world.process(tools).flush({ tool: 'pay' });
  expect(await settled(world, tools)).toEqual(['p']);
  expect(world.ledger).toEqual(['+o1', '-o1', '+o1', '-o1']);
});

it('R-18.12 what is done again under a key that was forgotten is undone again, by another tool', async () => {
  const world = new World();
  expect(await settled(world, refunding(world))).toEqual(['p']);
  await world.runtime.advance(2 * 3_600_000);
  expect(await settled(world, refunding(world))).toEqual(['p']);
  expect(world.ledger).toEqual(['+o1', '-o1', '+o1', '-o1']);
});

it('R-18.12 two nodes whose calls one tool answered under one key are undone each', async () => {
  const world = new World();
  const other: Tool = { ...refused, name: 'pay_a', policy: { effects: 'mutating', alternatives: ['pay'] } };
  const layer = world.process([other, world.books('pay'), refused]);
  const turn = world.turn(layer, [
    { id: 'n1', tool: 'pay_a', input: { n: 1 }, idempotencyKey: 'o1' },
    { id: 'n2', tool: 'pay', input: { n: 2 }, idempotencyKey: 'o1' },
    { id: 'x', tool: 'refused', input: {}, needs: ['n1', 'n2'] },
  ]);
  await world.runtime.advance(DEAD_MS);
  expect(turn.result?.compensation?.compensated).toEqual(['n1', 'n2']);
  expect(world.ledger).toEqual(['+o1', '+o1', '-o1', '-o1']);
});

it.each([
  ['after it', undefined, ['p']],
  ['in it', 'hang', []],
] as const)('R-18.12 a process that dies in an undoing, %s, and is down for two days', async (_when, how, undone) => {
  const world = new World();
  const store = world.gated({
    compareAndSet: (key, version, outcome) => {
      if (isJournal(outcome) && outcome.payload?.includes('"compensated"') === true) store.dead = true;
      return store.dead ? never() : world.store.compareAndSet(key, version, outcome);
    },
  });
  const pay = world.books(
    'pay',
    { dedupe: { doneTtlMs: 60_000 } },
    {
      compensate: (_, { callKey }) => {
        world.ledger.push(`-${callKey}`);
        if (how === undefined || store.dead) return undefined;
        store.dead = true;
        return never();
      },
    },
  );
  world.turn(world.process([pay, refused], { store }), nodes);
  await world.runtime.advance(5_000);
  expect(store.dead).toBe(true);
  await world.runtime.advance(2 * DAY_MS);
  const [resumed] = await world.resume(world.process([pay, refused]));
  expect(world.ledger).toEqual(['+o1', '-o1']);
  expect(resumed?.compensation?.compensated).toEqual(undone);
  // Whether it was undone is not known: the person who looks is told so.
  expect(resumed?.compensation?.stays.map(({ halfUndone }) => halfUndone)).toEqual(how === undefined ? [] : [true]);
});

it.each([
  ['says nothing', {}, ['+o1', '-o1'], ['p']],
  ['checks its key', { enforcesKey: true }, ['+o1', '-o1', '-o1'], []],
] as const)(
  'R-18.12 a process that dies while another tool undoes, and that %s',
  async (_what, policy, ledger, stays) => {
    const world = new World();
    const store = world.gated();
    let hangs = true;
    const tools = refunding(
      world,
      () => {
        store.dead = true;
        return hangs ? never() : undefined;
      },
      policy,
    );
    world.turn(world.process(tools, { store }), nodes);
    await world.runtime.advance(DEAD_MS);
    hangs = false;
    const [resumed] = await world.resume(world.process(tools));
    expect(world.ledger).toEqual(ledger);
    // What cannot be known is for a person at once, and for no further resume().
    expect(resumed?.compensation?.stays.map(({ id }) => id)).toEqual(stays);
  },
);

it('R-18.12 R-18.4 an undoing that died, and of which verify cannot say, is for a person at once', async () => {
  const world = new World();
  const store = world.gated();
  let asked = 0;
  const pay = world.books(
    'pay',
    {},
    {
      verify: () => {
        asked++;
        return 'unknown';
      },
      compensate: (_, { callKey }) => {
        world.ledger.push(`-${callKey}`);
        store.dead = true;
        return never();
      },
    },
  );
  world.turn(world.process([pay, refused], { store }), nodes);
  await world.runtime.advance(DEAD_MS);
  const [resumed] = await world.resume(world.process([pay, refused]));
  expect(asked).toBeGreaterThan(0);
  expect(world.ledger).toEqual(['+o1', '-o1']);
  expect(resumed?.compensation?.stays).toMatchObject([{ id: 'p', halfUndone: true }]);
});
