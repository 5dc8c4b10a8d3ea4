import fc from 'fast-check';
import { defer, type Observable } from 'rxjs';
import { abortable, attemptTimeout, circuitBreaker, createBreaker, guard, retryBackoff } from 'spillway';
import * as mini from 'spillway/mini';
import { describe, it } from 'vitest';
import {
  guards,
  meaningOf,
  observe,
  scenarioOf,
  watchedBreaker,
  watchedReference,
  type Scenario,
  type Way,
  type Work,
} from './attempts.ts';
import { expectToBeSeen, expectToHold, type Law } from './law.ts';
import { plantedIn, type Plant } from './planted.ts';
import { IN_GUARD, IN_MINI, IN_OPERATORS } from './plants.ts';
import { createBreaker as createReferenceBreaker } from './reference/breaker.ts';
import * as reference from './reference/operators.ts';
import { retryBackoff as referenceRetryBackoff } from './reference/retry.ts';

/** What is guarded: work that is given a signal, or a stream. */
type Kind = 'work' | 'stream';
type Step = reference.Operator | undefined;

const piped = (source: Observable<unknown>, steps: readonly Step[]): Observable<unknown> =>
  steps.reduce((stream, step) => (step === undefined ? stream : step(stream)), source);
const streamOf = (work: Work): Observable<unknown> => defer(() => work());

const byReference =
  (kind: Kind): Way =>
  ({ guards: { timeoutMs, retry, breaker: options } }, runtime) => {
    const breaker = options && createReferenceBreaker(options, runtime);
    const steps = [
      timeoutMs === undefined ? undefined : reference.attemptTimeout(timeoutMs, runtime),
      breaker && reference.circuitBreaker(breaker, meaningOf),
      retry && referenceRetryBackoff(retry, runtime, meaningOf),
    ];
    return {
      breaker: breaker && watchedReference(breaker),
      call: (work) => piped(kind === 'work' ? reference.abortable(work) : streamOf(work), steps),
    };
  };

type Operators = Pick<
  typeof mini,
  'abortable' | 'attemptTimeout' | 'circuitBreaker' | 'createBreaker' | 'retryBackoff'
>;
const composedOf =
  (operators: Operators, kind: Kind): Way =>
  ({ guards: { timeoutMs, retry, breaker: options } }, runtime) => {
    const breaker = options && operators.createBreaker(options, runtime);
    const steps: readonly Step[] = [
      timeoutMs === undefined ? undefined : operators.attemptTimeout(timeoutMs, runtime),
      breaker && operators.circuitBreaker(breaker),
      retry && operators.retryBackoff(retry, runtime),
    ];
    return {
      breaker: breaker && watchedBreaker(breaker),
      call: (work) => piped(kind === 'work' ? operators.abortable(work) : streamOf(work), steps),
    };
  };

const guardedBy =
  (by: typeof guard, kind: Kind): Way =>
  (given, runtime) => {
    const guarded = by(given.guards, runtime);
    const { breaker } = guarded;
    return {
      breaker: breaker && watchedBreaker(breaker),
      call: (work) => (kind === 'work' ? guarded.from(({ signal }) => work(signal)) : streamOf(work).pipe(guarded)),
    };
  };

const allGuards = fc.record(guards);
const someGuards = fc.record(guards, { requiredKeys: [] }).filter((given) => Object.keys(given).length > 0);
const scenario = scenarioOf(fc.oneof(allGuards, someGuards));
const lawOf =
  (ways: Readonly<Record<string, Way>>, kind: Kind): Law<Scenario> =>
  (given) => ({
    actual: Object.fromEntries(Object.entries(ways).map(([name, way]) => [name, observe(given, way)])),
    expected: observe(given, byReference(kind)),
  });

const ours: Operators = { abortable, attemptTimeout, circuitBreaker, createBreaker, retryBackoff };
const ENDS = [
  'is left',
  'breaker open',
  'breaker half_open',
  'breaker closed',
  'fails with timeout',
  'fails with circuit_open',
  'fails with plain',
  'has value',
  ' ends',
];

describe.each(['work', 'stream'] as const)('R-8.2 on %s', { timeout: 240_000 }, (kind) => {
  it('the three operators, guard and spillway/mini are the reference, in values, instants, states and signals', () => {
    expectToHold(
      scenario,
      lawOf({ composed: composedOf(ours, kind), guard: guardedBy(guard, kind), mini: composedOf(mini, kind) }, kind),
      kind === 'work' ? ['is aborted', ...ENDS] : ENDS,
    );
  });
});

const planted = async <M>(file: string, plant: Plant): Promise<M> =>
  (await import(/* @vite-ignore */ plantedIn(file, plant))) as M;
const plantedOperators = async (plant: Plant): Promise<Operators> => {
  const files = ['work/abortable', 'attempt-timeout', 'breaker/breaker', 'circuit-breaker', 'retry-backoff'];
  return Object.assign(
    {},
    ...(await Promise.all(files.map((file) => planted(`operators/${file}.ts`, plant)))),
  ) as Operators;
};

describe('R-8.2 the law sees a mistake', () => {
  it.each(IN_OPERATORS)('of the operators: $mistake', async (plant) => {
    expectToBeSeen(scenario, lawOf({ composed: composedOf(await plantedOperators(plant), 'work') }, 'work'));
  });

  it.each(IN_GUARD)('of guard: $mistake', async (plant) => {
    const { guard: wrong } = await planted<{ readonly guard: typeof guard }>('operators/guard.ts', plant);
    expectToBeSeen(scenario, lawOf({ guard: guardedBy(wrong, 'work') }, 'work'));
  });

  it.each(IN_MINI)('of spillway/mini: $mistake', async (plant) => {
    expectToBeSeen(scenario, lawOf({ mini: composedOf(await planted<typeof mini>('mini.ts', plant), 'work') }, 'work'));
  });
});
