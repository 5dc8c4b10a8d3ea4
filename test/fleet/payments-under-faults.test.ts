import { describe, expect, it } from 'vitest';
import { FAULTS, type Fault, type Hit } from './hit-questions.ts';
import { paidUnder, problemsOf, type Case } from './payments-under-faults.ts';

// Every question of two workers to their ledger and their store is hit, one at a time, and those around the moment at
// which the turn moves also two at a time. All single faults in fifteen cases (7,440 turns), and all pairs of one of
// each worker's in the second case below (30,240), take minutes, and found no more.

const IN_DOUBT: Case = { kind: 'plain', tookMs: 30_000, timeoutMs: 8_000 };
const PAID: Case = { kind: 'verified', tookMs: 20, timeoutMs: 8_000 };

/** What they ask before they settle, with some to spare for what is asked again. */
const LAST: Readonly<Record<Hit['worker'], number>> = { one: 16, two: 36 };

const hitsOf = (worker: Hit['worker'], from: number, to: number, faults: readonly Fault[] = FAULTS): Hit[] =>
  Array.from({ length: to - from + 1 }, (_, at) => from + at).flatMap((question) =>
    faults.map((fault) => ({ worker, question, fault })),
  );

const worded = (hits: readonly Hit[]): string =>
  hits.map(({ worker, question, fault }) => `${worker} ${question} ${fault}`).join(' and ');

/** The problems of each, and how many of the turns had their payment made. */
const searched = async (given: Case, all: readonly Hit[][]): Promise<{ found: string[]; paid: number }> => {
  const found: string[] = [];
  let paid = 0;
  for (const hits of all) {
    const run = await paidUnder(given, hits);
    if (run.made > 0) paid++;
    found.push(...problemsOf(run).map((problem) => `${problem} (${worded(hits)})`));
  }
  return { found, paid };
};

describe('R-18.6 a payment of a turn that two workers have one after the other', () => {
  it.each([
    ['that outlasts its deadline', IN_DOUBT],
    ['that was made in time', PAID],
  ] as const)('R-18.6 %s is told or undone under every single fault', { timeout: 120_000 }, async (_, given) => {
    const { asked } = await paidUnder(given, []);
    expect(Math.min(LAST.one, asked.one.length, LAST.two, asked.two.length)).toBeGreaterThan(10);
    const all = [...hitsOf('one', 1, LAST.one), ...hitsOf('two', 1, LAST.two)];
    const { found, paid } = await searched(
      given,
      all.map((hit) => [hit]),
    );
    expect(found).toStrictEqual([]);
    expect(paid).toBeGreaterThan(all.length / 2);
  });

  it(
    'R-18.6 is told or undone where both workers are silent or stand still for a while',
    { timeout: 120_000 },
    async () => {
      const away: readonly Fault[] = ['hangs', 'freezes behind it'];
      const seconds = hitsOf('two', 6, 15, away);
      const all = hitsOf('one', 1, 12, away).flatMap((first) => seconds.map((second) => [first, second]));
      const { found, paid } = await searched(PAID, all);
      expect(found).toStrictEqual([]);
      expect(paid).toBeGreaterThan(all.length / 2);
    },
  );
});
