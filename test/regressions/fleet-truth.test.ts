// Was: a fleet's turn was known by its id in the layer's trace, where redaction could change it and another turn could
// have it, and an end that came while it moved dropped what was journalled. Now: it is followed by its own stream, and
// what was journalled is part of its end.
import { Subject } from 'rxjs';
import { expect, it } from 'vitest';
import { createSpillway, plan, tool, type AnyTool } from 'spillway';
import { sharedStore, handFleet } from '../fleet/by-hand.ts';

const work = (name: string, execute: () => unknown): AnyTool => tool({ name, policy: { effects: 'read' }, execute });

it('R-17.3 a turn settles whose id the redaction of its layer changes', async () => {
  const world = handFleet();
  const options = { redact: { also: (text: string) => text.replaceAll(/\d{6,}/g, '***') } };
  const a = world.worker('A', [work('pay', () => 'paid')], options);
  await world.fleet.submit('trip-1234567', plan.from([{ id: 'n7654321', tool: 'pay' }]));
  const ends = await a.give('trip-1234567');
  expect(ends).toStrictEqual([{ act: 'done' }]);
  expect(world.result('trip-1234567')?.values).toStrictEqual({ n7654321: 'paid' });
});

it('R-17.3 another turn of that id on the same layer has nothing to do with it', async () => {
  const world = handFleet();
  const paid$ = new Subject<string>();
  const layer = createSpillway({
    tools: [work('pay', () => paid$), work('look', () => 'seen')],
    store: sharedStore(world.runtime),
    runtime: world.runtime,
  });
  const a = world.worker('A', [], { layer });
  await world.fleet.submit('t', plan.from([{ id: 'n', tool: 'pay' }]));
  const ends = await a.give('t');
  layer.turn(plan.from([{ id: 'other', tool: 'look' }]), { turnId: 't' }).subscribe();
  await world.runtime.advance(100);
  expect(ends).toStrictEqual([]);
  expect(world.ledger.turns.get('t')?.events.join('\n')).not.toContain('other');
  paid$.next('paid');
  paid$.complete();
  await world.runtime.advance(100);
  expect(world.result('t')?.values).toStrictEqual({ n: 'paid' });
});

/** A turn whose first node is journalled, and whose worker has died in the second. */
const moved = async (timeoutMs: number) => {
  const world = handFleet();
  const tools = [work('pay', () => 'paid'), work('hang', () => new Promise(() => undefined))];
  const [a, b] = [world.worker('A', tools), world.worker('B', tools)];
  const nodes = [
    { id: 'pay', tool: 'pay' },
    { id: 'then', tool: 'hang', needs: ['pay'] },
  ];
  await world.fleet.submit('t', plan.from(nodes, { timeoutMs }));
  await a.give('t');
  a.machine.kill();
  return { world, b };
};

it('R-17.2 a cancel while it moves drops nothing that was journalled', async () => {
  const { world, b } = await moved(60_000);
  await world.fleet.cancel('t');
  await b.give('t');
  expect(world.result('t')).toMatchObject({ values: { pay: 'paid' }, executedTools: 1 });
  expect(world.result('t')?.nodes.map(({ state }) => state)).toStrictEqual(['succeeded', 'canceled']);
});

it('R-17.3 nor does a deadline that is over before a wide plan is taken up', async () => {
  const world = handFleet();
  const WIDE = 300;
  const tools = [work('pay', () => 'paid'), work('hang', () => new Promise(() => undefined))];
  const [a, b] = [world.worker('A', tools), world.worker('B', tools)];
  const nodes = Array.from({ length: WIDE }, (_, at) => ({ id: `n${at}`, tool: 'pay' }));
  await world.fleet.submit('t', plan.from([...nodes, { id: 'last', tool: 'hang' }], { timeoutMs: 5_000 }));
  await a.give('t');
  await world.runtime.advance(1_000);
  a.machine.kill();
  await world.runtime.advance(10_000);
  await b.give('t');
  await world.runtime.advance(1_000);
  expect(Object.keys(world.result('t')?.values ?? {})).toHaveLength(WIDE);
});

it('R-17.5 a secret in the words of a failure is in no journal and no end', async () => {
  const world = handFleet();
  const fail = (): never => {
    throw new Error('refused for hunter2');
  };
  const a = world.worker('A', [work('pay', fail)], { redact: { secrets: ['hunter2'] } });
  await world.fleet.submit('t', plan.from([{ id: 'n', tool: 'pay' }]));
  await a.give('t');
  await world.runtime.advance(60_000);
  const turn = world.ledger.turns.get('t');
  expect(world.result('t')?.nodes[0]?.state).toBe('failed');
  expect([...(turn?.nodes.values() ?? []), ...(turn?.events ?? [])].join('\n')).not.toContain('hunter2');
});
