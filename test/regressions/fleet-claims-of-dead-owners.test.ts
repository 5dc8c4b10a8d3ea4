// Was: a payment whose tool can be asked about it stayed, for a person to look at, where a later worker of the same
// turn had died with its key, and had begun nothing: "another call under its key may have taken effect". Now: a claim
// of the turn's own says nothing, and the tool is asked.
import { expect, it } from 'vitest';
import { paidUnder, problemsOf, type Case } from '../fleet/payments-under-faults.ts';

const LEASE = 'setIfNotExists spillway/turn-lease';
const given: Case = { kind: 'verified', tookMs: 30_000, timeoutMs: 8_000 };

it('R-18.6 a payment whose key a dead worker of its turn has claimed is asked about, and undone', async () => {
  const question = (await paidUnder(given, [])).asked.two.indexOf(LEASE) + 1;
  expect(question).toBeGreaterThan(0);
  const paid = await paidUnder(given, [{ worker: 'two', question, fault: 'dies' }]);
  expect(paid).toMatchObject({ made: 1, isThere: false });
  expect(paid.result?.compensation).toMatchObject({ compensated: ['pay'], stays: [] });
  expect(problemsOf(paid)).toStrictEqual([]);
});
