// Was: a turn with the turnId of one whose process had died wrote over its journal, also across tenants, and what that
// had done stayed untold. Now: turns of two tenants or sessions are two, and an id whose turn is not settled is
// refused.
import { expect, it } from 'vitest';
import { scopedKey } from '../../src/policy/key/call-key.ts';
import { DEAD_MS, World, hanging } from './settling.ts';

const flight = { id: 'f', tool: 'flight', input: {}, idempotencyKey: 'order-1' } as const;

it.each([
  ['of another tenant', { tenant: 'B' }, 'completed', ['+A', '+B', '-A']],
  ['of another session', { tenant: 'A', session: 's2' }, 'completed', ['+A', '+A', '-A']],
  ['of its own', { tenant: 'A' }, 'failed', ['+A', '-A']],
])('R-18.13 a turnId used again by a turn %s', async (_whose, identity, status, ledger) => {
  const world = new World();
  const store = world.gated();
  const tools = [world.books('flight'), hanging];
  const nodes = [flight, { id: 'h', tool: 'hanging', input: {}, needs: ['f'] }];
  world.turn(world.process(tools, { store }), nodes, { turnId: 't1', tenant: 'A' });
  await world.runtime.advance(100);
  store.dead = true;
  await world.runtime.advance(DEAD_MS);
  const next = world.process(tools);
  const later = world.turn(next, [flight], { turnId: 't1', ...identity });
  await world.runtime.advance(DEAD_MS);
  expect(later.result?.status).toBe(status);
  if (status === 'failed')
    expect(later.result?.nodes[0]?.result?.error).toMatchObject({
      code: 'conflict',
      message: expect.stringContaining('let resume() finish it, or use another turnId') as string,
    });
  const all = await world.resume(next);
  expect(all.map(({ turnId, compensation }) => [turnId, compensation?.compensated])).toEqual([['t1', ['f']]]);
  // A resource is given the key within its tenant.
  const given = new Map([
    [scopedKey('A', 'order-1'), 'A'],
    [scopedKey('B', 'order-1'), 'B'],
  ]);
  expect(world.ledger.map((line) => `${line[0]}${given.get(line.slice(1))}`)).toEqual(ledger);
  // It is settled now.
  const again = world.turn(next, [{ ...flight, idempotencyKey: 'order-2' }], { turnId: 't1', tenant: 'A' });
  await world.runtime.advance(DEAD_MS);
  expect(again.result?.status).toBe('completed');
});
