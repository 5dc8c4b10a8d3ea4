// Was: each call of a turn that can be undone wrote the journal of all of them: 1,000 calls took 4 s and 2,000 took 18.
// Now: it is in pages, and a call writes its own.
import { describe, expect, it } from 'vitest';
import type { DedupeStore, PlanNode } from 'spillway';
import { DEAD_MS, World, never, refused } from './settling.ts';

const chain = (count: number): readonly PlanNode[] => [
  ...Array.from({ length: count }, (_, place) => ({
    id: `n${place}`,
    tool: 'book',
    input: { place },
    needs: place === 0 ? [] : [`n${place - 1}`],
  })),
  { id: 'x', tool: 'refused', input: {}, needs: [`n${count - 1}`] },
];

const fan = (count: number): readonly PlanNode[] => [
  ...Array.from({ length: count }, (_, place) => ({ id: `n${place}`, tool: 'book', input: { place } })),
  { id: 'x', tool: 'refused', input: {}, needs: Array.from({ length: count }, (_, place) => `n${place}`) },
];

const booking = (world: World) =>
  world.books(
    'book',
    { verify: { settleMs: 0 } },
    {
      verify: (_, { callKey }) => ({ done: world.has(callKey) }),
    },
  );

/** What the journal of a turn of so many calls writes for each of them. */
const charsPerCall = async (nodes: readonly PlanNode[]): Promise<number> => {
  const world = new World();
  let chars = 0;
  const store = world.gated({
    compareAndSet: (key, version, outcome) => {
      if (outcome.pinned === true) chars += outcome.payload?.length ?? 0;
      return world.store.compareAndSet(key, version, outcome);
    },
  });
  const turn = world.turn(world.process([booking(world), refused], { store }), nodes);
  await world.runtime.advance(DEAD_MS);
  expect(turn.result?.compensation?.compensated).toHaveLength(nodes.length - 1);
  for (const name of ['spillway/turn', 'spillway/turn-page', 'spillway/turn-lease'])
    for await (const record of world.store.byTool(name)) expect(record).toBeUndefined();
  return chars / (nodes.length - 1);
};

/** A process that dies after so many questions to its store: emits whether it came to that. */
const dyingAfter = (world: World, questions: number): DedupeStore & { readonly dead: boolean } => {
  let left = questions;
  const counted = <T>(question: () => T): T | Promise<never> => {
    if (left-- > 0) return question();
    store.dead = true;
    return never();
  };
  const store = world.gated({
    get: (key) => counted(() => world.store.get(key)),
    setIfNotExists: (claim, over) => counted(() => world.store.setIfNotExists(claim, over)),
    compareAndSet: (key, version, outcome) => counted(() => world.store.compareAndSet(key, version, outcome)),
    delete: (key, version) => counted(() => world.store.delete(key, version)),
  });
  return store;
};

describe('a turn of many calls', () => {
  it('R-5.2 R-18.13 what a call writes does not grow with its turn', async () => {
    const [few, many] = [await charsPerCall(chain(200)), await charsPerCall(chain(800))];
    expect(many / few).toBeLessThan(1.2);
  });

  it.each([
    ['one after the other', chain(130)],
    ['at once', fan(130)],
  ])('R-18.13 %s, that dies anywhere leaves nothing behind', async (_how, nodes) => {
    let deaths = 0;
    for (let questions = 3; questions < 2_000; questions += 61) {
      const world = new World();
      const store = dyingAfter(world, questions);
      world.turn(world.process([booking(world), refused], { store }), nodes);
      await world.runtime.advance(DEAD_MS);
      if (!store.dead) break;
      deaths++;
      // The one after it may die, too.
      const second = dyingAfter(world, questions);
      void world.process([booking(world), refused], { store: second }).resume();
      await world.runtime.advance(DEAD_MS);
      if (second.dead) await world.resume(world.process([booking(world), refused]));
      const made = world.ledger.filter((line) => line.startsWith('+'));
      const undone = world.ledger.filter((line) => line.startsWith('-'));
      expect(new Set(made).size).toBe(made.length);
      expect(undone.map((line) => line.slice(1)).toSorted()).toEqual(made.map((line) => line.slice(1)).toSorted());
      expect(await world.resume(world.process([booking(world), refused]))).toEqual([]);
    }
    expect(deaths).toBeGreaterThan(10);
  });

  it('R-18.13 one of whose pages is lost is told, and nothing is undone on the word of the others', async () => {
    const world = new World();
    const store = world.gated();
    const hanging = { id: 'h', tool: 'book_slowly', input: {}, needs: ['n69'] };
    const slow = { ...booking(world), name: 'book_slowly', execute: never };
    world.turn(world.process([booking(world), slow], { store }), [...chain(70).slice(0, 70), hanging]);
    await world.runtime.advance(100);
    store.dead = true;
    await world.runtime.advance(DEAD_MS);
    for await (const { key } of world.store.byTool('spillway/turn-page')) void world.store.delete(key);
    const [resumed] = await world.resume(world.process([booking(world), slow]));
    expect(resumed?.compensation?.stays[0]?.why).toContain('cannot be read');
    expect(world.ledger.filter((line) => line.startsWith('-'))).toEqual([]);
  });
});
