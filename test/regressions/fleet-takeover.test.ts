// Was: a plain mutating tool ran again after its worker was killed, a claim was ended while its owner lived, and what
// an overtaken worker ran went on. Now: the first is uncertain, a claim is free only when its owner must have stopped,
// and that one is aborted as soon as it learns.
import { describe, expect, it } from 'vitest';
import { plan, tool, type AnyTool, type ToolContext } from 'spillway';
import { handFleet, type HandFleet } from '../fleet/by-hand.ts';

type Terms = Pick<AnyTool, 'policy'> & { readonly verify?: () => Promise<'unknown'> };

/** A payment that takes a while, and what all workers did about it, in order. */
const payments = ({ runtime }: HandFleet, terms: Terms, takesMs = 4_000) => {
  const log: string[] = [];
  const paid: string[] = [];
  const toolOf = (worker: string): AnyTool =>
    tool({
      name: 'pay',
      ...terms,
      ...('verify' in terms
        ? {
            verify: async () => {
              log.push(`${worker} looks`);
              return { done: paid.length > 0 };
            },
          }
        : {}),
      execute: (_input: unknown, { signal }: ToolContext) =>
        new Promise<string>((resolve, reject) => {
          log.push(`${worker} pays`);
          const timer = runtime.after(takesMs).subscribe(() => {
            paid.push(worker);
            resolve(worker);
          });
          signal.addEventListener('abort', () => {
            timer.unsubscribe();
            log.push(`${worker} aborted`);
            reject(new Error('aborted'));
          });
        }),
    });
  return { log, paid, toolOf };
};

const trip = plan.from([{ id: 'n', tool: 'pay', input: {} }], { timeoutMs: 60_000 });
const looked = { verify: async () => 'unknown' as const };

describe('R-17.4 a worker that dies', () => {
  it('R-17.4 leaves a plain mutating tool uncertain: it is not run again', async () => {
    const world = handFleet();
    const { log, toolOf } = payments(world, { policy: { effects: 'mutating' } }, 1e9);
    const [a, b] = [world.worker('A', [toolOf('A')]), world.worker('B', [toolOf('B')])];
    await world.fleet.submit('t', trip);
    await a.give('t');
    a.machine.kill();
    await b.give('t');
    await world.runtime.advance(5_000);
    expect(log).toStrictEqual(['A pays']);
    const [node] = world.result('t')?.nodes ?? [];
    expect(node?.result?.error).toMatchObject({ uncertain: true, retriable: false });
    expect(node?.reason).toMatch(/may have taken effect: it is not run again.*verify.*enforcesKey/);
  });

  it.each([
    ['whose resource checks the key', { policy: { effects: 'mutating', enforcesKey: true } }],
    ['that only reads', { policy: { effects: 'read' } }],
  ] as const)('R-17.4 has a tool run again %s, within 5 s', async (_, terms) => {
    const world = handFleet();
    const { log, toolOf } = payments(world, terms, 100);
    const slow = payments(world, terms, 1e9);
    const [a, b] = [world.worker('A', [slow.toolOf('A')]), world.worker('B', [toolOf('B')])];
    await world.fleet.submit('t', trip);
    await a.give('t');
    a.machine.kill();
    await b.give('t');
    await world.runtime.advance(5_000);
    expect(log).toStrictEqual(['B pays']);
    expect(world.result('t')?.status).toBe('completed');
  });

  it('R-17.4 does not keep a node with a key of its own for as long as its lease', async () => {
    const world = handFleet();
    const terms = { policy: { effects: 'mutating', enforcesKey: true } } as const;
    const [dies, pays] = [payments(world, terms, 1e9), payments(world, terms, 100)];
    const [a, b] = [world.worker('A', [dies.toolOf('A')]), world.worker('B', [pays.toolOf('B')])];
    await world.fleet.submit('t', plan.from([{ id: 'n', tool: 'pay', input: {}, idempotencyKey: 'own' }]));
    await a.give('t');
    a.machine.kill();
    await b.give('t');
    await world.runtime.advance(5_000);
    expect(pays.log).toStrictEqual(['B pays']);
  });

  it('R-17.4 a delay that was still running had nothing under way: it is tried again', async () => {
    const world = handFleet();
    const log: string[] = [];
    const pay = (worker: string): AnyTool =>
      tool({
        name: 'pay',
        policy: { effects: 'mutating', retry: { initialDelayMs: 20_000, maxDelayMs: 20_000, maxTotalTimeMs: 50_000 } },
        execute: async () => {
          log.push(worker);
          if (worker === 'B') return 'paid';
          throw Object.assign(new Error('later'), { kind: 'rate_limited', status: 429, executed: false });
        },
      });
    const [a, b] = [world.worker('A', [pay('A')]), world.worker('B', [pay('B')])];
    await world.fleet.submit('t', trip);
    await a.give('t');
    a.machine.kill();
    await b.give('t');
    await world.runtime.advance(25_000);
    expect(log).toStrictEqual(['A', 'B']);
    expect(world.result('t')?.status).toBe('completed');
  });
});

describe('R-17.4 a worker that lives and was given up', () => {
  it('R-17.4 has stopped before another looks and runs its tool', async () => {
    const world = handFleet();
    const { log, paid, toolOf } = payments(world, {
      policy: { effects: 'mutating', verify: { settleMs: 1_000 } },
      ...looked,
    });
    const [a, b] = [world.worker('A', [toolOf('A')]), world.worker('B', [toolOf('B')])];
    await world.fleet.submit('t', trip);
    await a.give('t');
    await b.give('t');
    await world.runtime.advance(20_000);
    // That nothing was done is looked at twice.
    expect(log).toStrictEqual(['A pays', 'A aborted', 'B looks', 'B looks', 'B pays']);
    expect(paid).toStrictEqual(['B']);
  });

  it('R-17.4 so, too, where it is cut off from what would tell it', async () => {
    const world = handFleet();
    const { log, paid, toolOf } = payments(
      world,
      { policy: { effects: 'mutating', verify: { settleMs: 1_000 } }, ...looked },
      10_000,
    );
    const [a, b] = [world.worker('A', [toolOf('A')]), world.worker('B', [toolOf('B')])];
    await world.fleet.submit('t', trip);
    await a.give('t');
    a.machine.cut(60_000);
    await b.give('t');
    await world.runtime.advance(30_000);
    // That nothing was done is looked at twice.
    expect(log).toStrictEqual(['A pays', 'A aborted', 'B looks', 'B looks', 'B pays']);
    expect(paid).toStrictEqual(['B']);
  });

  it('R-17.4 is aborted a second after it wakes up, also where its turn was handed over before', async () => {
    const world = handFleet();
    const { log, toolOf } = payments(world, { policy: { effects: 'mutating', enforcesKey: true } }, 60_000);
    const [a, b] = [world.worker('A', [toolOf('A')]), world.worker('B', [toolOf('B')])];
    await world.fleet.submit('t', trip);
    const ends = await a.give('t');
    a.lost$.next(0);
    expect(ends).toStrictEqual([{ act: 'done' }]);
    a.machine.freeze(7_000);
    await b.give('t');
    await world.runtime.advance(6_000);
    expect(log).toStrictEqual(['A pays', 'B pays']);
    await world.runtime.advance(2_100);
    expect(log).toStrictEqual(['A pays', 'B pays', 'A aborted']);
  });

  it('R-17.4 goes on with what nobody would run again while the ledger gives no answer', async () => {
    const world = handFleet();
    const { log, toolOf } = payments(world, { policy: { effects: 'mutating' } }, 8_000);
    const a = world.worker('A', [toolOf('A')]);
    await world.fleet.submit('t', trip);
    await a.give('t');
    a.machine.cut(6_000);
    await world.runtime.advance(20_000);
    expect(log).toStrictEqual(['A pays']);
    expect(world.result('t')?.status).toBe('completed');
  });
});
