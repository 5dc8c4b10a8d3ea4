// Was: a turn undid what a later turn, or a caller that had joined its call, was told as a success. Now: it lets go of
// what others rely on, and only the last of them undoes it.
import { describe, expect, it } from 'vitest';
import { DEAD_MS, World, hanging, never, refused, states } from './settling.ts';

const flight = { id: 'f', tool: 'flight', input: {}, idempotencyKey: 'order-1' } as const;
const stuck = { id: 'h', tool: 'hanging', input: {}, needs: ['f'] } as const;
const fails = { id: 'x', tool: 'refused', input: {}, needs: ['f'] } as const;

/** A process books a flight and dies, with the booking known to it or not. */
const died = async (isKnown: boolean): Promise<World> => {
  const world = new World();
  const store = world.gated();
  const booking = world.books('flight', { timeoutMs: 60_000 });
  const first = isKnown
    ? booking
    : world.books(
        'flight',
        { timeoutMs: 60_000, verify: { settleMs: 0 } },
        {
          execute: (_: unknown, { callKey }) => {
            world.ledger.push(`+${callKey}`);
            return never();
          },
          verify: () => 'unknown',
        },
      );
  world.turn(world.process([first, hanging], { store }), [flight, stuck]);
  await world.runtime.advance(100);
  store.dead = true;
  await world.runtime.advance(DEAD_MS);
  return world;
};

const nextTools = (world: World) => [
  world.books(
    'flight',
    { verify: { settleMs: 0 } },
    {
      verify: (_, { callKey }) => (world.has(callKey) ? { done: true, output: { key: callKey } } : { done: false }),
    },
  ),
  hanging,
  refused,
];

describe('an effect that others rely on', () => {
  it.each([true, false])('R-18.11 a later turn that completed keeps it, known to the first: %s', async (isKnown) => {
    const world = await died(isKnown);
    const next = world.process(nextTools(world));
    const later = world.turn(next, [flight]);
    await world.runtime.advance(DEAD_MS);
    expect(later.result?.status).toBe('completed');
    const [resumed] = await world.resume(next);
    expect(world.ledger).toEqual(['+order-1']);
    expect(resumed?.compensation).toMatchObject({ compensated: [], stays: [], shared: ['f'] });
  });

  it('R-18.11 when the later turn fails, too, the last to let go undoes it, once', async () => {
    const world = await died(true);
    const next = world.process(nextTools(world));
    const later = world.turn(next, [flight, fails]);
    await world.runtime.advance(DEAD_MS);
    expect(later.result?.compensation).toMatchObject({ compensated: [], shared: ['f'] });
    expect(world.ledger).toEqual(['+order-1']);
    const [resumed] = await world.resume(next);
    expect(resumed?.compensation?.compensated).toEqual(['f']);
    expect(world.ledger).toEqual(['+order-1', '-order-1']);
  });

  it('R-18.11 a turn whose process dies once it relies on it lets go, too', async () => {
    const world = await died(true);
    const store = world.gated();
    world.turn(world.process(nextTools(world), { store }), [flight, stuck]);
    await world.runtime.advance(100);
    store.dead = true;
    await world.runtime.advance(DEAD_MS);
    const all = await world.resume(world.process(nextTools(world)));
    expect(world.ledger).toEqual(['+order-1', '-order-1']);
    expect(all.flatMap(({ compensation }) => compensation?.compensated ?? [])).toEqual(['f']);
    expect(all).toHaveLength(2);
  });

  it('R-18.11 a caller outside of a turn that was told keeps it', async () => {
    const world = await died(true);
    const next = world.process(nextTools(world));
    const told = next.execute({ toolName: 'flight', input: {}, idempotencyKey: 'order-1' });
    await world.runtime.advance(100);
    expect((await told).status).toBe('success');
    await world.resume(next);
    expect(world.ledger).toEqual(['+order-1']);
  });

  it.each(['leaves', 'cancels', 'fails'] as const)(
    'R-18.11 who joined the call of a turn that %s keeps it',
    async (how) => {
      const world = new World();
      const slow = world.books(
        'flight',
        { verify: { settleMs: 0 } },
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
      const layer = world.process([slow, refused]);
      const abort = new AbortController();
      const first = world.turn(layer, how === 'fails' ? [flight, fails] : [flight], { signal: abort.signal });
      await world.runtime.advance(500);
      const joiner = world.turn(layer, [flight]);
      await world.runtime.advance(500);
      if (how === 'leaves') first.leave();
      if (how === 'cancels') abort.abort();
      await world.runtime.advance(DEAD_MS);
      expect(joiner.result && states(joiner.result)).toEqual({ f: 'succeeded' });
      expect(world.ledger).toEqual(['+order-1']);
    },
  );
});
