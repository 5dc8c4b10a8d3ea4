// Was: a turn's journal could be evicted or flushed, was taken for another's when two answers of the store were lost,
// and could not be read back with a long word in it: nothing was undone, or the turn never settled. Now: it stays, is
// known as its own, and is always readable.
import { describe, expect, it } from 'vitest';
import type { Tool } from 'spillway';
import { DEAD_MS, World, hanging, isJournal, never, refused } from './settling.ts';

const HOUR_MS = 3_600_000;

const takes = (world: World, name: string, ms: number): Tool =>
  world.books(
    name,
    {},
    {
      execute: (_: unknown, { callKey }) =>
        new Promise((resolve) =>
          world.runtime.after(ms).subscribe(() => {
            world.ledger.push(`+${callKey}`);
            resolve({});
          }),
        ),
    },
  );

const balanced = ({ ledger }: World): boolean => {
  const [made, undone] = ['+', '-'].map((sign) => ledger.filter((line) => line.startsWith(sign)).length);
  return made === undone && (made ?? 0) > 0;
};

describe('the journal of a turn', () => {
  it('R-18.13 is not given up for lack of room', async () => {
    const world = new World(10);
    const late: Tool = {
      ...refused,
      execute: () =>
        new Promise((_, reject) =>
          world.runtime.after(10_000).subscribe(() => reject(Object.assign(new Error('no'), { status: 409 }))),
        ),
    };
    const other: Tool = { name: 'other', policy: { effects: 'mutating' }, execute: () => 1 };
    const layer = world.process([world.books('flight'), late, other]);
    const turn = world.turn(layer, [
      { id: 'f', tool: 'flight', input: {} },
      { id: 'x', tool: 'refused', input: {}, needs: ['f'] },
    ]);
    await world.runtime.advance(1_000);
    for (let n = 0; n < 30; n++) void layer.execute({ toolName: 'other', input: {}, idempotencyKey: `k${n}` });
    await world.runtime.advance(HOUR_MS);
    expect(turn.result?.compensation?.compensated).toEqual(['f']);
  });

  it('R-18.13 is not flushed', async () => {
    const world = new World();
    const store = world.gated();
    const tools = [world.books('flight'), hanging];
    const nodes = [
      { id: 'f', tool: 'flight', input: {} },
      { id: 'h', tool: 'hanging', input: {}, needs: ['f'] },
    ];
    world.turn(world.process(tools, { store }), nodes, { session: 's1' });
    await world.runtime.advance(100);
    store.dead = true;
    await world.runtime.advance(DEAD_MS);
    const next = world.process(tools);
    expect(await next.flush({ session: '' })).toBe(0);
    const [resumed] = await world.resume(next);
    expect(resumed?.compensation?.compensated).toEqual(['f']);
  });

  it('R-18.13 is written anew where the store has lost it', async () => {
    const world = new World();
    const keys: string[] = [];
    const store = world.gated({
      compareAndSet: (key, version, outcome) => {
        if (isJournal(outcome)) keys.push(key);
        return world.store.compareAndSet(key, version, outcome);
      },
    });
    const layer = world.process([takes(world, 'flight', 2_000), takes(world, 'hotel', 4_000), refused], { store });
    const turn = world.turn(layer, [
      { id: 'f', tool: 'flight', input: {} },
      { id: 'g', tool: 'hotel', input: {} },
      { id: 'x', tool: 'refused', input: {}, needs: ['f', 'g'] },
    ]);
    await world.runtime.advance(1_000);
    void world.store.delete(keys[0] ?? '');
    await world.runtime.advance(HOUR_MS);
    expect(turn.result?.compensation?.compensated).toEqual(['f', 'g']);
    expect(balanced(world)).toBe(true);
  });

  it.each(['detach', 'abort'] as const)(
    'R-18.13 is known as its own when two answers in a row are lost, with onDeadline %s',
    async (onDeadline) => {
      const world = new World();
      let lost = 0;
      const store = world.gated({
        compareAndSet: (key, version, outcome) => {
          const written = world.store.compareAndSet(key, version, outcome);
          if (lost === 0 || !isJournal(outcome)) return written;
          lost--;
          return never();
        },
      });
      const retried: Tool = {
        name: 'retried',
        policy: {
          effects: 'mutating',
          compensate: false,
          retry: { initialDelayMs: 20_000, maxDelayMs: 20_000, maxTotalTimeMs: 100_000 },
        },
        execute: () => {
          throw Object.assign(new Error('busy'), { status: 503 });
        },
      };
      const tools = [takes(world, 'a', 3_000), takes(world, 'b', 3_500), takes(world, 'c', 5_000), retried];
      const layer = world.process(tools, { store, storeTimeoutMs: 1_000 });
      const ids = ['a', 'b', 'c', 'retried'];
      const turn = world.turn(
        layer,
        ids.map((id) => ({ id, tool: id, input: {} })),
        { timeoutMs: 60_000, onDeadline },
      );
      await world.runtime.advance(2_500);
      lost = 2;
      await world.runtime.advance(HOUR_MS);
      expect(turn.result?.compensation?.compensated).toEqual(['a', 'b', 'c']);
      expect(balanced(world)).toBe(true);
    },
  );

  it('R-18.13 that another process has written ends the turn here: no call waits for ever', async () => {
    const world = new World();
    const retried: Tool = {
      name: 'retried',
      policy: { effects: 'mutating', retry: { initialDelayMs: 20_000, maxDelayMs: 20_000, maxTotalTimeMs: 100_000 } },
      execute: () => {
        throw Object.assign(new Error('busy'), { status: 503 });
      },
    };
    const turn = world.turn(
      world.process([takes(world, 'a', 3_000), retried]),
      ['a', 'retried'].map((id) => ({ id, tool: id, input: {} })),
      { timeoutMs: 60_000 },
    );
    await world.runtime.advance(2_500);
    for await (const { key, version, payload = '' } of world.store.byTool('spillway/turn'))
      await world.store.compareAndSet(key, version, {
        state: 'done',
        ttlMs: HOUR_MS,
        payload: payload.replace(/"writer":"[^"]*"/, '"writer":"another"'),
      });
    await world.runtime.advance(HOUR_MS);
    expect(turn.result?.recorded).toBe('superseded');
    expect(balanced(world)).toBe(false);
  });

  it('R-18.13 can be read back with long words in it', async () => {
    const world = new World();
    const session = 's'.repeat(5_000);
    const store = world.gated({
      compareAndSet: (key, version, outcome) => {
        if (isJournal(outcome) && outcome.payload?.includes('compensation_failed') === true)
          world.runtime.after(1).subscribe(() => (store.dead = true));
        return world.store.compareAndSet(key, version, outcome);
      },
    });
    const slow = (ms: number, then: () => unknown) => () =>
      new Promise<void>((resolve) => world.runtime.after(ms).subscribe(() => resolve(then() as void)));
    const tools = [
      world.books('flight', {}, { compensate: slow(100, () => world.ledger.push('-')) }),
      world.books(
        'hotel',
        {},
        {
          compensate: () => {
            throw Object.assign(new Error(`<html>${'x'.repeat(20_000)}`), { status: 409 });
          },
        },
      ),
      refused,
    ];
    const nodes = [
      { id: 'f', tool: 'flight', input: {} },
      { id: 'h', tool: 'hotel', input: {}, needs: ['f'] },
      { id: 'x', tool: 'refused', input: {}, needs: ['h'] },
    ];
    world.turn(world.process(tools, { store }), nodes, { session });
    await world.runtime.advance(50);
    expect(store.dead).toBe(true);
    await world.runtime.advance(DEAD_MS);
    const [resumed] = await world.resume(world.process(tools));
    expect(resumed?.compensation?.stays.map(({ id }) => id)).toContain('h');
    expect(resumed?.compensation?.stays.map(({ why }) => why).join(' ')).not.toContain('cannot be read');
  });
});
