// Was: what was decided about an alternative was in no journal: a turn that moved tried the node's own tool once more,
// and the alternative anew. Now: it goes on at the alternative, with its attempts and what is left of its delay.
import { expect, it } from 'vitest';
import { plan, tool, type AnyTool } from 'spillway';
import { handFleet } from '../fleet/by-hand.ts';

const ONCE = { maxAttempts: 2, initialDelayMs: 10, maxDelayMs: 10, jitterPercent: 0 };
const SLOW = { maxAttempts: 4, initialDelayMs: 2_000, maxDelayMs: 2_000, jitterPercent: 0, maxTotalTimeMs: 60_000 };

const reset = (): Error => Object.assign(new Error('reset'), { code: 'ECONNRESET', executed: false });

/** @param other what the alternative does at its attempts on this worker, by their number */
const toolsOf = (log: string[], worker: string, other: (attempt: number) => unknown): AnyTool[] => [
  tool({
    name: 'own',
    policy: { effects: 'read', breaker: false, retry: ONCE, alternatives: ['other'] },
    execute: (_: unknown, { attempt }) => {
      log.push(`${worker} own ${attempt}`);
      throw reset();
    },
  }),
  tool({
    name: 'other',
    policy: { effects: 'read', breaker: false, retry: SLOW },
    execute: (_: unknown, { attempt }) => {
      log.push(`${worker} other ${attempt}`);
      return other(attempt);
    },
  }),
];

/** @param tools those of a worker, by its name: the first dies half a second into the turn, the next goes on */
const movedWith = async (tools: (worker: string) => AnyTool[]) => {
  const world = handFleet();
  const a = world.worker('A', tools('A'));
  const b = world.worker('B', tools('B'));
  await world.fleet.submit('t', plan.from([{ id: 'n', tool: 'own' }], { timeoutMs: 60_000 }));
  await a.give('t');
  await world.runtime.advance(500);
  a.machine.kill();
  await b.give('t');
  await world.runtime.advance(10_000);
  return world.result('t');
};

const moved = async (other: (attempt: number) => unknown) => {
  const log: string[] = [];
  const result = await movedWith((worker) => toolsOf(log, worker, worker === 'A' ? other : () => 'found'));
  return { log, result };
};

it('R-17.2 a turn that moves in the delay of an alternative goes on there, and counts on', async () => {
  const { log, result } = await moved(() => {
    throw reset();
  });
  expect(log).toStrictEqual(['A own 1', 'A own 2', 'A other 1', 'B other 2']);
  expect(result?.values).toStrictEqual({ n: 'found' });
  expect(result?.nodes[0]?.result?.attempts).toBe(4);
});

it('R-17.2 a turn that moves while an alternative runs goes on there, and not at its own tool', async () => {
  const { log, result } = await moved(() => new Promise(() => undefined));
  expect(log).toStrictEqual(['A own 1', 'A own 2', 'A other 1', 'B other 1']);
  expect(result?.values).toStrictEqual({ n: 'found' });
});

it('R-17.2 a turn that moves goes on at the alternative in the journal, and not at one that had failed before it', async () => {
  const log: string[] = [];
  const tools = (worker: string): AnyTool[] => {
    const failing = (name: string, alternatives: readonly string[]): AnyTool =>
      tool({
        name,
        policy: { effects: 'mutating', breaker: false, retry: { maxAttempts: 1 }, alternatives },
        execute: () => {
          log.push(`${worker} ${name}`);
          throw Object.assign(new Error('refused'), { code: 'ECONNREFUSED' });
        },
      });
    const last = tool({
      name: 'last',
      policy: { effects: 'read', breaker: false },
      execute: () => {
        log.push(`${worker} last`);
        return worker === 'A' ? new Promise(() => undefined) : 'found';
      },
    });
    return [failing('own', ['other', 'last']), failing('other', []), last];
  };
  const result = await movedWith(tools);
  // Was: the note of the one that writes, whose failure was certain, went before the journal.
  expect(log).toStrictEqual(['A own', 'A other', 'A last', 'B last']);
  expect(result?.values).toStrictEqual({ n: 'found' });
});
