// Was: an answer of the store from before a breaker was opened closed it again, and a probe's end was told twice, which
// let one probe too many through. Now: neither.
import { describe, expect, it } from 'vitest';
import { simulateSharedBreakers } from '../simulation/shared-breakers.ts';

/** Worlds in which it went wrong: a store that takes up to 40 ms, and two processes or three. */
describe('R-3.10 a store whose answers are overtaken', () => {
  it('R-3.10 that there was no record, asked before one was made, does not close what it opened', async () => {
    expect((await simulateSharedBreakers(111_827)).violations).toStrictEqual([]);
  });

  it.each([101_341, 104_208, 111_342])(
    'R-3.5 R-3.10 a probe’s end is told once, and never more probes run than are allowed: world %i',
    async (seed) => {
      expect((await simulateSharedBreakers(seed)).violations).toStrictEqual([]);
    },
  );
});
