// Was: a payment was neither told nor undone where the worker after it had its key and came to nothing before the
// deadline, as when its store was silent: that call, which had done nothing, stood for the one that had paid. And a
// worker that lost its turn while it made its end told that `resume()` goes on with it. Now: what has done nothing says
// nothing of what was done before it, its node says what became of it, and such a turn goes back to its engine.
import { describe, expect, it } from 'vitest';
import type { Fault, Hit } from '../fleet/hit-questions.ts';
import { paidUnder, problemsOf, type Case } from '../fleet/payments-under-faults.ts';

const LEASE = 'setIfNotExists spillway/turn-lease';
const JOURNAL = 'setIfNotExists spillway/turn';

/** The second worker's question of this name, or what it asks so many behind it. */
const questionOf = async (given: Case, hits: readonly Hit[], name: string, behind = 0): Promise<number | undefined> => {
  const at = (await paidUnder(given, hits)).asked.two.indexOf(name);
  return at < 0 ? undefined : at + 1 + behind;
};

/** The turns of which the first worker is hit at any question, and the second one is silent at one. */
const hitBoth = async (given: Case, fault: Fault, name: string, behind: number) => {
  const ends: Array<Awaited<ReturnType<typeof paidUnder>>> = [];
  for (let question = 1; question <= 16; question++) {
    const first: Hit = { worker: 'one', question, fault };
    const second = await questionOf(given, [first], name, behind);
    if (second === undefined) continue;
    ends.push(await paidUnder(given, [first, { worker: 'two', question: second, fault: 'hangs' }]));
  }
  return ends;
};

describe('R-18.6 a payment whose key the next worker has when the deadline comes', () => {
  it.each([
    ['plain', [], ['pay']],
    ['verified', ['pay'], []],
  ] as const)('R-18.6 is undone or told: %s', async (kind, compensated, stays) => {
    const given: Case = { kind, tookMs: 30_000, timeoutMs: 8_000 };
    const question = (await questionOf(given, [], LEASE)) ?? 0;
    const paid = await paidUnder(given, [{ worker: 'two', question, fault: 'hangs' }]);
    expect(paid.made).toBe(1);
    expect(paid.result?.compensation?.compensated).toStrictEqual(compensated);
    expect(paid.result?.compensation?.stays.map(({ id }) => id)).toStrictEqual(stays);
    expect(problemsOf(paid)).toStrictEqual([]);
  });

  it('R-18.6 is undone where the deadline comes while it is kept that the turn relies on it', async () => {
    const ends = await hitBoth({ kind: 'verified', tookMs: 20, timeoutMs: 8_000 }, 'dies behind it', LEASE, 0);
    expect(ends.flatMap(problemsOf)).toStrictEqual([]);
    expect(ends.filter(({ made }) => made === 1).length).toBeGreaterThan(3);
  });

  it('R-18.6 is undone where its worker wakes up while the next one makes its end', async () => {
    const ends = await hitBoth({ kind: 'verified', tookMs: 20, timeoutMs: 8_000 }, 'freezes behind it', JOURNAL, 1);
    expect(ends.flatMap(problemsOf)).toStrictEqual([]);
    expect(ends.flatMap(({ result }) => result?.compensation?.stays ?? [])).toStrictEqual([]);
    expect(ends.filter(({ made }) => made === 1).length).toBeGreaterThan(2);
  });
});
