// Was: a watcher that called back into a breaker made `onChange` hear of `closed -> closed`, and of later changes
// first. Now: everyone hears each change, in the order in which they were.
import { scan } from 'rxjs';
import { expect, it } from 'vitest';
import { createBreaker } from '../../src/operators/breaker/breaker.ts';
import { breakerSettings } from '../../src/policy/breaker/settings.ts';
import { initialBreaker, reduceBreaker, type BreakerInput } from '../../src/policy/breaker/reducer.ts';
import { fail, handClock, rejects } from '../support.ts';

const one = { failureThreshold: 1 } as const;

it('R-3.4 onChange hears every change, with its own states, in the order in which they were', () => {
  const changes: string[] = [];
  const breaker = createBreaker(one, handClock().runtime, (from, to) => changes.push(`${from} -> ${to}`));
  const watcher = breaker.state$.subscribe(({ type }) => {
    if (type === 'open') breaker.reset();
  });
  fail(breaker);
  expect(changes).toStrictEqual(['closed -> open', 'open -> closed']);
  watcher.unsubscribe();
});

it('R-3.4 onChange may call back too, and watchers hear in the same order', () => {
  const changes: string[] = [];
  const seen: string[] = [];
  const breaker = createBreaker(one, handClock().runtime, (from, to) => {
    changes.push(`${from} -> ${to}`);
    if (to === 'open') breaker.forceOpen();
  });
  const watcher = breaker.state$.subscribe(({ type }) => seen.push(type));
  fail(breaker);
  expect(changes).toStrictEqual(['closed -> open', 'open -> forced_open']);
  expect(seen).toStrictEqual(['closed', 'open', 'forced_open']);
  watcher.unsubscribe();
});

// What a watcher did in its very first notification happened before it was subscribed to changes, and was lost on it.
it('R-3.4 a watcher that calls back at once sees what came of it', () => {
  const breaker = createBreaker(one, handClock().runtime);
  const seen: string[] = [];
  const watcher = breaker.state$.subscribe(({ type }) => {
    seen.push(type);
    if (type === 'closed') breaker.forceOpen();
  });
  expect(seen).toStrictEqual(['closed', 'forced_open']);
  watcher.unsubscribe();
});

// Such a watcher saw the present state, and then older ones that were still on their way to others.
it('R-3.4 a watcher that comes in the middle of a change starts with the present state and goes on from there', () => {
  const breaker = createBreaker(one, handClock().runtime);
  const late: string[] = [];
  const watcher = breaker.state$.subscribe(({ type }) => {
    if (type !== 'open') return;
    breaker.forceOpen();
    breaker.disable();
    breaker.state$.subscribe((state) => late.push(state.type));
  });
  fail(breaker);
  breaker.reset();
  expect(late).toStrictEqual(['disabled', 'closed']);
  watcher.unsubscribe();
});

// An observer of `inputs$` that called back replaced the permit that was being given.
it('R-3.1 an observer of inputs$ may call back: the admission stands, and all record one order', () => {
  const breaker = createBreaker(one, handClock().runtime);
  const records: BreakerInput[][] = [[], []];
  breaker.inputs$.subscribe((input) => {
    records[0]?.push(input);
    if (input.type === 'admit') breaker.disable();
  });
  breaker.inputs$.subscribe((input) => records[1]?.push(input));
  expect(rejects(breaker)).toBe(false);
  expect(records[0]?.map(({ type }) => type)).toStrictEqual(['admit', 'disable', 'outcome']);
  expect(records[1]).toStrictEqual(records[0]);
});

it('R-3.1 inputs recorded beside one that calls back replay to the present state', () => {
  const breaker = createBreaker(one, handClock().runtime);
  const settings = breakerSettings(one);
  let replayed = initialBreaker(settings).type;
  breaker.inputs$.subscribe(({ type }) => {
    if (type === 'outcome') breaker.forceOpen();
  });
  breaker.inputs$
    .pipe(scan((memory, input) => reduceBreaker(memory, input, settings), initialBreaker(settings)))
    .subscribe(({ type }) => (replayed = type));
  fail(breaker);
  expect(breaker.state.type).toBe('forced_open');
  expect(replayed).toBe('forced_open');
});
