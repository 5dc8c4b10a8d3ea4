// Was: a worker that had lost its turn, and had waited for the lease of its journal, got that once the turn had ended
// or gone elsewhere, and wrote what it had begun: a turn that everybody was told had completed stood in the store as
// one to be undone, and a node that was undone was told as undone and as one that stays. Now: whoever gets the lease
// asks its engine whether the turn still is its own.
import { plan, tool, type AnyTool } from 'spillway';
import { describe, expect, it } from 'vitest';
import { JOURNAL_TOOL, LEASE_TOOL } from '../../src/saga/own-records.ts';
import { virtualRuntime } from '../../src/testing/index.ts';
import { handFleet, sharedStore } from '../fleet/by-hand.ts';

const trip = plan.from(
  [
    { id: 'pay', tool: 'pay' },
    { id: 'look', tool: 'look', needs: ['pay'] },
  ],
  { onFailure: 'compensate', timeoutMs: 60_000 },
);

/**
 * A trip of which A paid, and died before that was kept. B is told of the payment, and stands still when it asks for
 * the lease, while C ends the turn.
 */
const lateAtLease = async (looks: boolean) => {
  const runtime = virtualRuntime();
  const store = sharedStore(runtime);
  const world = handFleet(runtime, store);
  const log: string[] = [];
  const toolsOf = (worker: string): AnyTool[] => [
    tool({
      name: 'pay',
      policy: { effects: 'mutating', enforcesKey: true, compensate: { enforcesKey: true } },
      execute: () => {
        log.push(`${worker} pays`);
        return 'paid';
      },
      compensate: () => void log.push(`${worker} undoes`),
    }),
    tool({
      name: 'look',
      policy: { effects: 'read', retry: { maxAttempts: 1 } },
      execute: () => {
        if (!looks) throw Object.assign(new Error('nothing to see'), { status: 422 });
        return 'the sea';
      },
    }),
  ];
  const workerOf = (name: string) => world.worker(name, toolsOf(name));
  const [a, b, c] = [workerOf('A'), workerOf('B'), workerOf('C')];
  await world.fleet.submit('t', trip);
  const { write } = world.ledger;
  world.ledger.write = async (turnId, epoch, batch) => {
    if (epoch > 1 || !batch.nodes.some(([id]) => id === 'pay')) return write.call(world.ledger, turnId, epoch, batch);
    a.machine.kill();
    return new Promise<never>(() => undefined);
  };
  await a.give('t');
  await runtime.advance(1_000);
  const claim = store.setIfNotExists.bind(store);
  let claims = 0;
  store.setIfNotExists = async (claimed, over) => {
    const answer = await claim(claimed, over);
    // B has heard that A has it.
    if (claimed.tool === LEASE_TOOL && ++claims === 1) b.machine.freeze(12_000);
    return answer;
  };
  await b.give('t');
  await runtime.advance(5_000);
  await c.give('t');
  await runtime.advance(5_000);
  const ended = world.result('t');
  await runtime.advance(20_000);
  const left: unknown[] = [];
  for await (const { payload } of store.byTool(JOURNAL_TOOL)) left.push(payload);
  for (const { machine } of [a, b, c]) machine.kill();
  return { ended, log, claims, left };
};

describe('R-18.6 a worker that gets the lease of its turn when that has ended', () => {
  it.each([
    [true, 'completed', ['A pays']],
    [false, 'escalated', ['A pays', 'C undoes']],
  ] as const)('R-18.6 leaves nothing of it in the store: looks %s', async (looks, status, log) => {
    const late = await lateAtLease(looks);
    expect(late.ended?.status).toBe(status);
    expect(late.log).toStrictEqual(log);
    // It has asked again when it woke up.
    expect(late.claims).toBeGreaterThan(2);
    expect(late.left).toStrictEqual([]);
  });
});
