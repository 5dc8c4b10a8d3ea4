// Was: an outcome classifier that threw kept the probe's permit until half-open's deadline, and its error replaced the
// tool's. Now: the permit comes back and the caller gets the tool's error.
import { throwError } from 'rxjs';
import { expect, it } from 'vitest';
import { createBreaker } from '../../src/operators/breaker/breaker.ts';
import { circuitBreaker } from '../../src/operators/circuit-breaker.ts';
import { fail, handClock, rejects, transient } from '../support.ts';

it('BRK-4 a classifier that throws says nothing about the dependency: the permit comes back and the caller gets the tool’s error', () => {
  const clock = handClock();
  const breaker = createBreaker({ failureThreshold: 1, cooldownMs: 5 }, clock.runtime);
  fail(breaker);
  clock.pass(5);
  const seen: unknown[] = [];
  const outcome = (): never => {
    throw new Error('a classifier’s own');
  };
  throwError(() => transient)
    .pipe(circuitBreaker(breaker, outcome))
    .subscribe({ error: (error) => seen.push(error) });
  expect(seen).toStrictEqual([transient]);
  expect(breaker.state.type).toBe('half_open');
  expect(rejects(breaker)).toBe(false);
});
