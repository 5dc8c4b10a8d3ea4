// Was: a subscriber that left while a turn was undone began a second undoing, keys were in the trace, an undoing that
// may have taken effect was told as one that had not, and nothing was said of calls that the layer had let straight
// through. Now: there is one undoing, the trace has fingerprints, and what stays is told as far as it is known.
import { expect, it } from 'vitest';
import { DEAD_MS, World, refused } from './settling.ts';

const nodes = [
  { id: 'f', tool: 'flight', input: {}, idempotencyKey: 'order-77' },
  { id: 'x', tool: 'refused', input: {}, needs: ['f'] },
] as const;

it('R-18.5 who leaves while a turn is undone does not begin another undoing', async () => {
  const world = new World();
  const flight = world.books(
    'flight',
    {},
    {
      compensate: (_, { callKey }) =>
        new Promise<void>((resolve) =>
          world.runtime.after(500).subscribe(() => {
            world.ledger.push(`-${callKey}`);
            resolve();
          }),
        ),
    },
  );
  const turn = world.turn(world.process([flight, refused]), nodes);
  await world.runtime.advance(100);
  turn.leave();
  await world.runtime.advance(DEAD_MS);
  expect(world.ledger).toEqual(['+order-77', '-order-77']);
  const told = world.trace.filter(({ source }) => source === 'turn').map(({ type }) => type);
  expect(told.filter((type) => type === 'compensation_started' || type === 'node_compensated')).toHaveLength(2);
  expect(told.slice(-2)).toEqual(['compensation_settled', 'abandoned']);
});

it('R-18.5 keys are for the caller: the trace has the fingerprint that its other events have', async () => {
  const world = new World();
  const flight = world.books('flight', {}, { compensate: undefined as never });
  const turn = world.turn(world.process([flight, refused]), nodes);
  await world.runtime.advance(DEAD_MS);
  expect(turn.result?.compensation?.stays).toMatchObject([{ callKey: 'order-77' }]);
  expect(JSON.stringify(world.trace)).not.toContain('order-77');
  const fingerprint = world.trace.flatMap((event) => (event.type === 'dedupe' ? [event.keyFingerprint] : []))[0];
  const settled = world.trace.flatMap((event) => (event.type === 'compensation_settled' ? [event.compensation] : []));
  expect(settled[0]?.stays).toMatchObject([{ callKey: fingerprint }]);
});

it('R-18.5 an undoing that may have taken effect is told so', async () => {
  const world = new World();
  const flight = world.books(
    'flight',
    {},
    {
      compensate: (_, { callKey }) => {
        world.ledger.push(`-${callKey}`);
        throw Object.assign(new Error('socket hang up'), { code: 'ECONNRESET' });
      },
    },
  );
  const turn = world.turn(world.process([flight, refused]), nodes);
  await world.runtime.advance(DEAD_MS);
  expect(turn.result?.compensation?.stays).toMatchObject([{ id: 'f', halfUndone: true }]);
  const sentences = world.trace.flatMap((event) =>
    event.type === 'escalated' && event.source === 'turn' && event.nodeId === 'f' ? [event.message] : [],
  );
  expect(sentences).toEqual([
    [
      'Flight was done, and may have been undone: socket hang up.',
      'A person must look whether it is still there before it is undone by hand.',
    ].join(' '),
  ]);
});

it.each(['off', 'shadow'] as const)('R-18.5 what went straight through in mode %s stays, and is told', async (mode) => {
  const world = new World();
  const look = { name: 'look', policy: { effects: 'read' as const }, execute: () => 'seen' };
  const layer = world.process([world.books('flight'), look, refused], { mode });
  const turn = world.turn(layer, [...nodes, { id: 'l', tool: 'look', input: {} }]);
  await world.runtime.advance(DEAD_MS);
  expect(turn.result?.compensation?.stays).toMatchObject([{ id: 'f', toolName: 'flight' }]);
  expect(turn.result?.compensation?.stays[0]?.why).toContain('off or in shadow mode');
});
