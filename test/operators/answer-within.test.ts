import { describe, it } from 'vitest';
import { map } from 'rxjs';
import { answerWithin } from '../../src/operators/timing/answer-within.ts';
import { runtimeOn } from '../../src/testing/runtime-on.ts';
import { marbles } from '../marbles.ts';

describe('R-11.1 somebody else’s answer', () => {
  it.each([
    ['-----a', 3, '---(u|)'],
    ['-----a', 8, '-----(n|)'],
    ['--#', 8, '--(e|)'],
    ['--|', 8, '--(c|)'],
    ['--ab', 8, '--(n|)'],
    ['-', 8, '--------(u|)'],
  ])('R-11.1 %s within %i ms: %s', (answer, timeoutMs, told) => {
    marbles((m) => {
      const kinds = { N: 'n', E: 'e', C: 'c' } as const;
      const given = answerWithin(m.cold<string>(answer), timeoutMs, runtimeOn(m.scheduler)).pipe(
        map((first) => (first === undefined ? 'u' : kinds[first.kind])),
      );
      m.expect(given).toBeObservable(told);
    })();
  });
});
