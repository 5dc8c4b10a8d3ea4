// Was: an undoing that the store, a hook or an empty retry budget did not let run once was given up for good. Now: it
// is tried again, and what stays so is left for resume().
import { expect, it } from 'vitest';
import type { SpillwayOptions, Tool } from 'spillway';
import { DEAD_MS, World, refused, states, type Watched } from './settling.ts';

const nodes = [
  { id: 'f', tool: 'flight', input: {} },
  { id: 'x', tool: 'refused', input: {}, needs: ['f'] },
] as const;

const settled = async (world: World, tools: readonly Tool[], options: SpillwayOptions): Promise<Watched> => {
  const turn = world.turn(world.process(tools, options), nodes);
  await world.runtime.advance(DEAD_MS);
  return turn;
};

const isUndone = (world: World, { result }: Watched): void => {
  expect(result && states(result)).toEqual({ f: 'compensated', x: 'failed' });
  expect(world.ledger).toHaveLength(2);
};

it('R-18.12 one claim that the store refuses is made again', async () => {
  const world = new World();
  let refusals = 0;
  const store = world.gated({
    setIfNotExists: (claim, over) => {
      if (claim.tool === 'flight/undo' && refusals++ === 0) throw new Error('ECONNREFUSED');
      return world.store.setIfNotExists(claim, over);
    },
  });
  isUndone(world, await settled(world, [world.books('flight'), refused], { store }));
  expect(refusals).toBe(2);
});

/** A store that is lost when the turn fails. */
const losing = (world: World, ms: number) => {
  let isDown = false;
  const up = <T>(answer: T): T => {
    if (isDown) throw new Error('ECONNREFUSED');
    return answer;
  };
  const store = world.gated({
    get: (key) => up(world.store.get(key)),
    setIfNotExists: (claim, over) => up(isDown ? undefined : world.store.setIfNotExists(claim, over)) as never,
    compareAndSet: (key, version, outcome) => up(isDown ? undefined : world.store.compareAndSet(key, version, outcome)),
    renew: (key, version, leaseMs) => up(isDown ? false : world.store.renew(key, version, leaseMs)),
  });
  const fails: Tool = {
    ...refused,
    execute: () => {
      isDown = true;
      world.runtime.after(ms).subscribe(() => (isDown = false));
      throw Object.assign(new Error('no'), { status: 409 });
    },
  };
  return { store, tools: [world.books('flight'), fails] };
};

it('R-18.12 a store that is lost for a moment does not leave anything behind', async () => {
  const world = new World();
  const { store, tools } = losing(world, 300);
  isUndone(world, await settled(world, tools, { store }));
});

it('R-18.12 a store that is lost for longer leaves it to resume(), and the result says so', async () => {
  const world = new World();
  const { store, tools } = losing(world, 150_000);
  const { result } = await settled(world, tools, { store });
  expect(result?.compensation?.stays).toMatchObject([
    { id: 'f', why: expect.stringContaining('resume() goes on') as string },
  ]);
  expect(result?.nodes[0]?.reason).toContain('resume() goes on with it');
  expect(world.ledger).toHaveLength(1);
  const [resumed] = await world.resume(world.process(tools));
  expect(resumed?.compensation?.compensated).toEqual(['f']);
  expect(world.ledger).toHaveLength(2);
});

it('R-18.12 a hook that fails once is asked again; one that refuses is obeyed', async () => {
  for (const fails of [true, false]) {
    const world = new World();
    let asked = 0;
    const beforeToolCall = ({ toolName }: { readonly toolName: string }): { block: string } | undefined => {
      if (toolName !== 'flight/undo' || asked++ > 0) return undefined;
      if (fails) throw new Error('the policy service is down');
      return { block: 'not on Sundays' };
    };
    const turn = await settled(world, [world.books('flight'), refused], { hooks: { beforeToolCall } });
    if (fails) isUndone(world, turn);
    else expect(turn.result?.compensation?.stays).toHaveLength(1);
    expect(asked).toBe(fails ? 2 : 1);
  }
});

it('R-18.12 an undoing is tried again without a retry budget', async () => {
  const world = new World();
  let tries = 0;
  const flight = world.books(
    'flight',
    {},
    {
      compensate: () => {
        if (++tries === 1) throw Object.assign(new Error('busy'), { status: 503 });
        world.ledger.push('-');
      },
    },
  );
  isUndone(world, await settled(world, [flight, refused], { retryBudget: { ratio: 0, minPerSecond: 0 } }));
  expect(tries).toBe(2);
});
