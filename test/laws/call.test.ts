import fc from 'fast-check';
import { Observable, filter, map } from 'rxjs';
import { createSpillway, type ToolEvent } from 'spillway';
import { expect, it } from 'vitest';
import { guards, meaningOf, nameOf, nameOfMessage, observe, scenarioOf, watchedBreaker, watchedReference, type Way, type Work } from './attempts.ts';
import { call, type Outcome } from './reference/call.ts';
import { createBreaker } from './reference/operators.ts';

const byReference: Way = ({ guards: { timeoutMs = 0, retry = {}, breaker: options = {} } }, runtime) => {
  const breaker = createBreaker(options, runtime);
  const worded = ({ status, attempts, value, error }: Outcome): string => `${status} after ${attempts}: ${error === undefined ? String(value) : nameOf(error)}`;
  return {
    breaker: watchedReference(breaker),
    takesSignals: true,
    call: (work, aborted$) => call(work, { timeoutMs, retry, breaker, read: meaningOf, aborted$ }, runtime).pipe(map(worded)),
  };
};

type Settled = Extract<ToolEvent, { type: 'settled' }>;
const worded = ({ result: { status, attempts, output, error } }: Settled): string => `${status} after ${attempts}: ${error === undefined ? String(output?.content) : nameOfMessage(error.message, error.code)}`;

const byLayer: Way = ({ guards: { timeoutMs = 0, retry = {}, breaker = {} } }, runtime) => {
  let work: Work;
  const tried = { name: 'tried', policy: { timeoutMs, retry, breaker }, execute: (_: unknown, { signal }: { readonly signal: AbortSignal }) => work(signal) };
  const layer = createSpillway({ runtime, retryBudget: false, tools: [tried] });
  return {
    breaker: watchedBreaker(layer.breakers.get('tried')),
    takesSignals: true,
    call: (given, aborted$) =>
      new Observable((subscriber) => {
        work = given;
        const caller = new AbortController();
        subscriber.add(aborted$.subscribe(() => caller.abort()));
        const settled$ = layer.call({ toolName: 'tried' }, { signal: caller.signal }).pipe(filter((event) => event.type === 'settled'));
        subscriber.add(settled$.pipe(map(worded)).subscribe(subscriber));
      }),
  };
};

it('R-8.2 a call', () => {
  fc.assert(
    fc.property(scenarioOf(fc.record(guards)), (given) => {
      expect(observe(given, byLayer)).toStrictEqual(observe(given, byReference));
    }),
    { numRuns: Number(process.env.RUNS ?? 5_000) },
  );
}, 600_000);
