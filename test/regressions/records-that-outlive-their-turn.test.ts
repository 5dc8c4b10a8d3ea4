// Was: where a tool's results are kept for a shorter time than a turn of a fleet lasts, its worker died before it had
// written them into the journal, and the next one found nothing under the key and paid again. Now: what a turn may yet
// ask for is kept for as long as it may ask.
import { describe, expect, it } from 'vitest';
import { plan, tool, type AnyTool } from 'spillway';
import { virtualRuntime } from 'spillway/testing';
import { handFleet, sharedStore } from '../fleet/by-hand.ts';

const trip = plan.from([{ id: 'n', tool: 'pay', input: {} }], { timeoutMs: 600_000 });
const policy = { effects: 'mutating', dedupe: { doneTtlMs: 1_000, failedTtlMs: 1_000, leaseMs: 2_000 } } as const;

describe('R-17.2 a worker that dies between an effect and the journal', () => {
  it.each(['succeeds', 'fails'])(
    'R-17.2 a payment that %s is not made again once its record would have been forgotten',
    async (how) => {
      const runtime = virtualRuntime();
      const store = sharedStore(runtime);
      const world = handFleet(
        runtime,
        Object.assign(Object.create(store) as typeof store, {
          compareAndSet: (...asked: Parameters<typeof store.compareAndSet>) => {
            const settled = store.compareAndSet(...asked);
            if (asked[0] !== '') a.machine.kill();
            return settled;
          },
        }),
      );
      const paid: string[] = [];
      const toolOf = (worker: string): AnyTool =>
        tool({
          name: 'pay',
          policy,
          execute: () => {
            paid.push(worker);
            if (how === 'fails') throw new Error('the connection was reset');
            return worker;
          },
        });
      const [a, b] = [world.worker('A', [toolOf('A')]), world.worker('B', [toolOf('B')])];
      await world.fleet.submit('t', trip);
      await a.give('t');
      expect(a.machine.isDead).toBe(true);
      await runtime.advance(60_000);
      await b.give('t');
      await runtime.advance(5_000);
      expect(paid).toStrictEqual(['A']);
      expect(world.result('t')?.nodes[0]?.result?.fromCache).toBe(true);
    },
  );

  it('R-17.4 a payment under way stays uncertain, however long no worker is there', async () => {
    const world = handFleet();
    const paid: string[] = [];
    const toolOf = (worker: string): AnyTool =>
      tool({
        name: 'pay',
        policy: { ...policy, timeoutMs: 300_000 },
        execute: () => new Promise<never>(() => paid.push(worker)),
      });
    const [a, b] = [world.worker('A', [toolOf('A')]), world.worker('B', [toolOf('B')])];
    await world.fleet.submit('t', trip);
    await a.give('t');
    a.machine.kill();
    await world.runtime.advance(60_000);
    await b.give('t');
    await world.runtime.advance(5_000);
    expect(paid).toStrictEqual(['A']);
    expect(world.result('t')?.nodes[0]?.result?.error).toMatchObject({ uncertain: true, retriable: false });
  });
});
