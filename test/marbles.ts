import { configure, type MarblesFunction } from 'rxjs-marbles';
import { expect } from 'vitest';

/**
 * Wraps a marble test for vitest: `it('R-4.6 ...', marbles((m) => { ... }))`. Time is virtual, one character is a
 * millisecond, and what differs is shown by vitest. `m.scheduler` goes into `runtimeOn`.
 */
export const marbles: MarblesFunction = configure({
  run: true,
  assertDeepEqual: (actual: unknown, expected: unknown) => expect(actual).toStrictEqual(expected),
  frameworkMatcher: true,
}).marbles;
