// Was: a retry that one version had decided of a tool that reads was made by another version that has the tool as
// mutating: it paid again. Now: what may have taken effect is found out there, or is left to a person.
import { expect, it } from 'vitest';
import { plan, tool, type AnyTool, type ToolPolicy } from 'spillway';
import { handFleet } from '../fleet/by-hand.ts';

/** Its delay is longer than it takes until the turn is given to another worker. */
const SLOW = { maxAttempts: 4, initialDelayMs: 20_000, maxDelayMs: 20_000, jitterPercent: 0, maxTotalTimeMs: 60_000 };

/** The first worker's tool reads, as far as that knows; it dies while its retry is waited for. */
const moved = async (policy: ToolPolicy, more: Partial<AnyTool> = {}, isCertain = false) => {
  const log: string[] = [];
  const toolOf = (worker: string, own: ToolPolicy): AnyTool => ({
    ...tool({
      name: 'pay',
      policy: { ...own, breaker: false, retry: SLOW },
      execute: (_: unknown, { attempt }) => {
        log.push(`${worker} ${attempt}`);
        if (worker === 'B') return 'paid';
        throw Object.assign(new Error('reset'), { code: isCertain ? 'ECONNREFUSED' : 'ECONNRESET' });
      },
    }),
    ...(worker === 'B' ? more : {}),
  });
  const world = handFleet();
  const a = world.worker('A', [toolOf('A', { effects: 'read' })]);
  const b = world.worker('B', [toolOf('B', policy)]);
  await world.fleet.submit('t', plan.from([{ id: 'n', tool: 'pay' }], { timeoutMs: 60_000 }));
  await a.give('t');
  await world.runtime.advance(500);
  a.machine.kill();
  await b.give('t');
  await world.runtime.advance(40_000);
  return { log, node: world.result('t')?.nodes[0] };
};

it('R-2.5 R-17.2 what may have taken effect is not retried by a version that has the tool as mutating', async () => {
  const { log, node } = await moved({ effects: 'mutating' });
  expect(log).toStrictEqual(['A 1']);
  expect(node).toMatchObject({ state: 'failed', result: { error: { code: 'duplicate_in_flight', uncertain: true } } });
});

it('R-2.5 R-17.2 that version asks its verify, and goes by what it says', async () => {
  const found = async (done: boolean) =>
    moved(
      { effects: 'mutating' },
      {
        verify: () => Promise.resolve({ done, ...(done ? { output: 'paid once' } : { final: true }) }),
      },
    );
  expect(await found(true)).toMatchObject({ log: ['A 1'], node: { result: { output: { content: 'paid once' } } } });
  expect(await found(false)).toMatchObject({ log: ['A 1', 'B 2'], node: { result: { output: { content: 'paid' } } } });
});

it('R-17.2 it is retried where that does no harm: a read, a key that is checked, nothing begun', async () => {
  const made = ['A 1', 'B 2'];
  expect((await moved({ effects: 'read' })).log).toStrictEqual(made);
  expect((await moved({ effects: 'mutating', enforcesKey: true })).log).toStrictEqual(made);
  expect((await moved({ effects: 'mutating' }, {}, true)).log).toStrictEqual(made);
});
