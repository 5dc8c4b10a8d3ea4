// Was: resume() of a process that had not the tools of a turn used it up, one that was told before the others was
// forgotten before anybody heard, and a call that still ran elsewhere was told as not done. Now: what a process cannot
// know is left, told is told, and a call that runs is waited for.
import { expect, it } from 'vitest';
import type { ResumedTurn } from 'spillway/operate';
import type { Tool } from 'spillway';
import { DEAD_MS, World, hanging, never } from './settling.ts';

const WEEK_MS = 604_800_000;
const nodes = [
  { id: 'f', tool: 'flight', input: {} },
  { id: 'h', tool: 'hanging', input: {}, needs: ['f'] },
] as const;

const died = async (world: World, tools: readonly Tool[]): Promise<void> => {
  const store = world.gated();
  world.turn(world.process(tools, { store }), nodes);
  await world.runtime.advance(100);
  store.dead = true;
  await world.runtime.advance(DEAD_MS);
};

const staysOf = ([turn]: readonly ResumedTurn[]): readonly string[] | undefined =>
  turn?.compensation?.stays.map(({ why }) => why);

it('R-18.12 a process without the tools of a turn tells of it, and leaves it to one that has them', async () => {
  const world = new World();
  const tools = [world.books('flight'), hanging];
  await died(world, tools);
  const mail: Tool = { name: 'mail', policy: { effects: 'mutating' }, execute: () => 1 };
  expect(staysOf(await world.resume(world.process([mail])))).toEqual([
    'no tool is named flight here; give resume({ plans }) its plan',
  ]);
  const [resumed] = await world.resume(world.process(tools));
  expect(resumed?.compensation).toMatchObject({ compensated: ['f'], stays: [] });
  expect(world.ledger).toHaveLength(2);
  expect(await world.resume(world.process(tools))).toEqual([]);
});

it('R-18.12 a process that has some of the tools undoes what it can, and leaves the rest', async () => {
  const world = new World();
  const store = world.gated();
  const tools = [world.books('flight'), world.books('hotel'), hanging];
  const trip = [nodes[0], { id: 'g', tool: 'hotel', input: {} }, nodes[1]];
  world.turn(world.process(tools, { store }), trip);
  await world.runtime.advance(100);
  store.dead = true;
  await world.runtime.advance(DEAD_MS);
  const [some] = await world.resume(world.process([world.books('hotel')]));
  expect(some?.compensation).toMatchObject({ compensated: ['g'], stays: [{ id: 'f' }] });
  const [rest] = await world.resume(world.process(tools));
  expect(rest?.compensation?.compensated).toEqual(['f', 'g']);
  expect(world.ledger).toHaveLength(4);
});

it('R-18.12 before it is forgotten a person is told', async () => {
  const world = new World();
  await died(world, [world.books('flight'), hanging]);
  await world.runtime.advance(WEEK_MS - 43_200_000);
  const other = world.process([]);
  expect(staysOf(await world.resume(other))).toHaveLength(1);
  expect(world.trace.filter(({ source, type }) => source === 'turn' && type === 'escalated')).toHaveLength(1);
  expect(await world.resume(other)).toEqual([]);
});

it('R-18.12 a turn is forgotten once whoever asked has heard of it', async () => {
  const world = new World();
  const stays: Tool = { name: 'stays', policy: { effects: 'mutating' }, execute: () => ({}) };
  const slow = world.books(
    'slow',
    {},
    {
      compensate: () => new Promise<void>((resolve) => world.runtime.after(20_000).subscribe(() => resolve())),
    },
  );
  const tools = [stays, slow, hanging];
  const first = world.gated();
  for (const tool of ['stays', 'slow'])
    world.turn(world.process(tools, { store: first }), [{ id: 'f', tool, input: {} }, nodes[1]], { turnId: tool });
  await world.runtime.advance(100);
  first.dead = true;
  await world.runtime.advance(DEAD_MS);
  const second = world.gated();
  let heard: unknown;
  void world
    .process(tools, { store: second })
    .resume()
    .then((all) => (heard = all));
  await world.runtime.advance(5_000);
  second.dead = true;
  expect(heard).toBeUndefined();
  await world.runtime.advance(DEAD_MS);
  const all = await world.resume(world.process(tools));
  expect(all.map(({ turnId }) => turnId).toSorted()).toEqual(['slow', 'stays']);
});

it('R-18.2 a call that still runs in a process that lost its turn is waited for', async () => {
  const world = new World();
  let isCut = false;
  const cut = <T>(answer: () => T): T | Promise<never> => (isCut ? never() : answer());
  const store = world.gated({
    get: (key) => cut(() => world.store.get(key)),
    setIfNotExists: (claim, over) => cut(() => world.store.setIfNotExists(claim, over)),
    compareAndSet: (key, version, outcome) => cut(() => world.store.compareAndSet(key, version, outcome)),
    renew: (key, version, leaseMs) => cut(() => world.store.renew(key, version, leaseMs)),
  });
  const pay = world.books(
    'pay',
    { timeoutMs: 60_000, verify: { settleMs: 1_000, timeoutMs: 1_000 } },
    {
      execute: (_: unknown, { callKey }) =>
        new Promise((resolve) =>
          world.runtime.after(30_000).subscribe(() => {
            world.ledger.push(`+${callKey}`);
            resolve({});
          }),
        ),
      verify: (_, { callKey }) => ({ done: world.has(callKey) }),
    },
  );
  const node = { id: 'p', tool: 'pay', input: {}, idempotencyKey: 'o1' };
  world.turn(world.process([pay], { store, storeTimeoutMs: 1_000 }), [node], { leaseMs: 5_000 });
  await world.runtime.advance(1_000);
  isCut = true;
  await world.runtime.advance(7_000);
  const [resumed] = await world.resume(world.process([pay]));
  expect(resumed?.compensation?.compensated).toEqual(['p']);
  expect(world.ledger).toEqual(['+o1', '-o1']);
});

it.each([
  ['of another version', '{"version":1,"turnId":"t1","state":"running","entries":[]}'],
  [
    'of more pages than can be',
    '{"version":2,"turnId":"t1","writer":"w","owner":"o","state":"running","pages":4000000000,"entries":[]}',
  ],
])('R-18.13 a journal %s, which cannot be read, is told by the id of its turn', async (_, payload) => {
  const world = new World();
  const claim = { key: `sw1:${'0'.repeat(64)}`, tool: 'spillway/turn', idempotencyKey: 't1', leaseMs: 1, ttlMs: 1e9 };
  const request = { sessionKey: '', actorId: '', requestId: 't1', paramsDigest: '' };
  const { record } = await world.store.setIfNotExists({ ...claim, request });
  await world.store.compareAndSet(claim.key, record.version, { state: 'done', ttlMs: 1e9, payload });
  expect(staysOf(await world.resume(world.process([])))).toEqual([
    'the journal of the turn t1 is damaged, or of another version, and cannot be read',
  ]);
});
