// Was: outcomes too old to count stood in a breaker's state again once it was forced open or disabled. Now: they stay
// gone, and what was kept stays.
import { expect, it } from 'vitest';
import { createBreaker } from '../../src/operators/breaker/breaker.ts';
import { fail, handClock } from '../support.ts';

it.each(['forceOpen', 'disable'] as const)('R-3.2 what is older than the window does not come back with %s', (verb) => {
  const clock = handClock();
  const breaker = createBreaker({}, clock.runtime);
  fail(breaker, 3);
  clock.pass(100_000);
  fail(breaker);
  clock.pass(20_001);
  expect(breaker.state).toMatchObject({ consecutiveFailures: 1, measured: 1, failures: 1 });
  breaker[verb]();
  expect(breaker.state).toMatchObject({ consecutiveFailures: 1, measured: 1, failures: 1 });
  // and what was kept stays
  clock.pass(1_000_000);
  expect(breaker.state).toMatchObject({ consecutiveFailures: 1, measured: 1, failures: 1 });
});
