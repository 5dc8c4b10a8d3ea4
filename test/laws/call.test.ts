import fc from 'fast-check';
import { Observable, filter, map } from 'rxjs';
import { createSpillway, type ToolEvent } from 'spillway';
import { it } from 'vitest';
import {
  guards,
  meaningOf,
  nameOf,
  nameOfMessage,
  observe,
  scenarioOf,
  watchedBreaker,
  watchedReference,
  type Scenario,
  type Way,
  type Work,
} from './attempts.ts';
import { expectToBeSeen, expectToHold, type Law } from './law.ts';
import { plantedIn } from './planted.ts';
import { IN_CALL } from './plants.ts';
import { call } from './reference/call.ts';
import type { Outcome } from './reference/shapes.ts';
import { createBreaker } from './reference/breaker.ts';

const byReference: Way = ({ guards: { timeoutMs = 0, retry = {}, breaker: options = {} } }, runtime) => {
  const breaker = createBreaker(options, runtime);
  const worded = ({ status, attempts, value, error }: Outcome): string =>
    `${status} after ${attempts}: ${error === undefined ? String(value) : nameOf(error)}`;
  return {
    breaker: watchedReference(breaker),
    takesSignals: true,
    call: (work, aborted$) =>
      call(work, { timeoutMs, retry, breaker, read: meaningOf, aborted$ }, runtime).pipe(map(worded)),
  };
};

type Settled = Extract<ToolEvent, { type: 'settled' }>;
const worded = ({ result: { status, attempts, output, error } }: Settled): string => {
  const end = error === undefined ? String(output?.content) : nameOfMessage(error.message, error.code);
  return `${status} after ${attempts}: ${end}`;
};

const byLayer =
  (create: typeof createSpillway): Way =>
  ({ guards: { timeoutMs = 0, retry = {}, breaker = {} } }, runtime) => {
    let work: Work;
    const tried = {
      name: 'tried',
      policy: { timeoutMs, retry, breaker },
      execute: (_: unknown, { signal }: { readonly signal: AbortSignal }) => work(signal),
    };
    const layer = create({ runtime, retryBudget: false, tools: [tried] });
    return {
      breaker: watchedBreaker(layer.breakers.get('tried')),
      takesSignals: true,
      call: (given, aborted$) =>
        new Observable((subscriber) => {
          work = given;
          const caller = new AbortController();
          subscriber.add(aborted$.subscribe(() => caller.abort()));
          const settled$ = layer
            .call({ toolName: 'tried' }, { signal: caller.signal })
            .pipe(filter((event) => event.type === 'settled'));
          subscriber.add(settled$.pipe(map(worded)).subscribe(subscriber));
        }),
    };
  };

const scenario = scenarioOf(fc.record(guards));
const law =
  (create: typeof createSpillway): Law<Scenario> =>
  (given) => ({ actual: { call: observe(given, byLayer(create)) }, expected: observe(given, byReference) });
const ENDS = [
  'is aborted',
  'breaker open',
  'breaker half_open',
  'success after 2',
  'circuit_open after 0',
  'retry_exhausted',
  'timeout after 1',
  'retriable_error after 1',
  'error after 1: permanent',
  'error after 1: canceled',
  'error after 0: canceled',
];

const AT_100 = { atMs: 100, cancelMs: undefined, by: 'leaving', enough: undefined } as const;
/** A retry is left by whoever hears that its breaker is half-open, after an attempt that gave a value and failed. */
const FOUND: Scenario = {
  attempts: [{ afterMs: 0, earlier: 1, end: 'limited' }],
  calls: [AT_100, AT_100],
  canceledBy: 'half_open',
  lateMs: 0,
  guards: {
    timeoutMs: 20,
    breaker: { failureThreshold: 2, cooldownMs: 50, successThreshold: 1, probes: 1, rampMs: 0 },
    retry: {
      strategy: 'exponential',
      initialDelayMs: 10,
      jitterPercent: 0,
      maxAttempts: 2,
      maxTotalTimeMs: 100,
    },
  },
  seed: 0,
};

it('R-8.2 R-2.8 a call of a layer is its attempts guarded, in status, output, instants, states and signals', () => {
  expectToHold(scenario, law(createSpillway), ENDS, [FOUND]);
}, 240_000);

it.each(IN_CALL)('R-8.2 the law of calls sees a mistake: $mistake', async (plant) => {
  const planted = (await import(/* @vite-ignore */ plantedIn('spillway.ts', plant))) as {
    readonly createSpillway: typeof createSpillway;
  };
  expectToBeSeen(scenario, law(planted.createSpillway));
});
