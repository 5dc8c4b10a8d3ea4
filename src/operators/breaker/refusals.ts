import type { Breaker } from './breaker.ts';

/** The errors of refusals, each with the breaker that refused. */
const refusals = new WeakMap<object, Breaker>();

/**
 * Remembers whose refusal an error is, so that a probe that ends with it can tell its breaker that it needed a second
 * place.
 */
export function refusedBy<E extends object>(breaker: Breaker, refusal: E): E {
  refusals.set(refusal, breaker);
  return refusal;
}

/** Whether an error is the refusal of this very breaker. */
export const wasRefusedBy = (breaker: Breaker, error: unknown): boolean => refusals.get(error as object) === breaker;
