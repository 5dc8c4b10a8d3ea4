import type { BreakerOptions } from '../../src/contract/policy.ts';
import { createBreaker, type Breaker } from '../../src/operators/breaker/breaker.ts';
import { fail, handClock, type HandClock } from '../support.ts';

interface Made {
  readonly breaker: Breaker;
  readonly clock: HandClock;
}

/** A breaker that opens after one failure, for a second, and its clock. */
export const make = (options: BreakerOptions = {}): Made => {
  const clock = handClock();
  return { breaker: createBreaker({ failureThreshold: 1, cooldownMs: 1_000, ...options }, clock.runtime), clock };
};

export const opened = (options: BreakerOptions = {}): Made => {
  const made = make(options);
  fail(made.breaker);
  return made;
};

export const halfOpen = (options: BreakerOptions = {}): Made => {
  const made = opened(options);
  made.clock.pass(1_000);
  return made;
};
