import fc from 'fast-check';
import { Observable, defer, type Observable as O } from 'rxjs';
import { abortable, attemptTimeout, circuitBreaker, createBreaker, guard, retryBackoff } from 'spillway';
import * as mini from 'spillway/mini';
import { expect, it } from 'vitest';
import { guards, meaningOf, observe, scenarioOf, watchedBreaker, watchedReference, type Way } from './attempts.ts';
import * as reference from './reference/operators.ts';

const piped = (source: Observable<unknown>, steps: ReadonlyArray<((source: Observable<unknown>) => Observable<unknown>) | undefined>): O<unknown> =>
  steps.reduce((stream: Observable<unknown>, step) => (step === undefined ? stream : step(stream)), source);

const byReference: (as: 'work' | 'source') => Way = (as) => ({ guards: { timeoutMs, retry, breaker: options } }, runtime) => {
  const breaker = options && reference.createBreaker(options, runtime);
  const steps = [
    timeoutMs === undefined ? undefined : reference.attemptTimeout(timeoutMs, runtime),
    breaker && reference.circuitBreaker(breaker, meaningOf),
    retry && reference.retryBackoff(retry, runtime, meaningOf),
  ];
  return { breaker: breaker && watchedReference(breaker), call: (work) => piped(as === 'work' ? reference.abortable(work) : defer(() => work()), steps) };
};
const composed = (operators: Pick<typeof mini, 'abortable' | 'attemptTimeout' | 'circuitBreaker' | 'createBreaker' | 'retryBackoff'>) => (as: 'work' | 'source'): Way => ({ guards: { timeoutMs, retry, breaker: options } }, runtime) => {
  const breaker = options && operators.createBreaker(options, runtime);
  const steps = [
    timeoutMs === undefined ? undefined : operators.attemptTimeout(timeoutMs, runtime),
    breaker && operators.circuitBreaker(breaker),
    retry && operators.retryBackoff(retry, runtime),
  ];
  return { breaker: breaker && watchedBreaker(breaker), call: (work) => piped(as === 'work' ? operators.abortable(work) : defer(() => work()), steps) };
};
const guarded = (as: 'work' | 'source'): Way => ({ guards }, runtime) => {
  const guardOne = guard(guards, runtime);
  return { breaker: guardOne.breaker && watchedBreaker(guardOne.breaker), call: (work) => (as === 'work' ? guardOne.from(({ signal }) => work(signal)) : defer(() => work()).pipe(guardOne)) };
};

const all = fc.record(guards);
const some = fc.record(guards, { requiredKeys: [] }).filter((given) => Object.keys(given).length > 0);
const scenario = scenarioOf(fc.oneof(all, some));
const WAYS = { 'the three operators composed': composed({ abortable, attemptTimeout, circuitBreaker, createBreaker, retryBackoff }), guard: guarded, 'spillway/mini': composed(mini) };

it.each(['work', 'source'] as const)('R-8.2 on %s', (as) => {
  fc.assert(
    fc.property(scenario, (given) => {
      const expected = observe(given, byReference(as));
      for (const [name, way] of Object.entries(WAYS)) expect(observe(given, way(as)), name).toStrictEqual(expected);
    }),
    { numRuns: Number(process.env.RUNS ?? 5_000) },
  );
}, 600_000);
