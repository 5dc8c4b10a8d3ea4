import { Observable, defer, of } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { ToolExecutionError } from '../../src/contract/tool-error.ts';
import { abortable } from '../../src/operators/work/abortable.ts';
import { attemptTimeout } from '../../src/operators/attempt-timeout.ts';
import { createBreaker } from '../../src/operators/breaker/breaker.ts';
import { circuitBreaker } from '../../src/operators/circuit-breaker.ts';
import { dedupe } from '../../src/operators/dedupe.ts';
import { guard } from '../../src/operators/guard.ts';
import { hedge } from '../../src/operators/hedge.ts';
import { idleTimeout } from '../../src/operators/idle-timeout.ts';
import { retryBackoff } from '../../src/operators/retry-backoff.ts';
import { memoryStore } from '../../src/stores/memory.ts';
import { runtimeOn } from '../../src/testing/runtime-on.ts';
import { marbles } from '../marbles.ts';
import { instantOf, numberIn, picture, subscribed } from '../picture.ts';
import { counting, fail, transient } from '../support.ts';

const timeout = (message: string): ToolExecutionError => new ToolExecutionError('timeout', message);
const constant = (initialDelayMs: number) => ({ strategy: 'constant', initialDelayMs, jitterPercent: 0 }) as const;

/** Each subscription gets the next one of these. */
const inTurn = <T>(...attempts: Array<Observable<T>>): Observable<T> =>
  defer(() => attempts.shift() ?? (of('one attempt too many') as never));

describe('the pictures in the docstrings are what the operators do', () => {
  it(
    'R-2.1 retryBackoff',
    marbles((m) => {
      const labels = ['first attempt', 'backoff of', 'second attempt', 'retryBackoff('] as const;
      const [first, backoff, second, result] = picture('src/operators/retry-backoff.ts', labels);
      const [fails, succeeds] = [m.cold<string>(first.marbles, undefined, transient), m.cold<string>(second.marbles)];
      expect(backoff.marbles).toHaveLength(numberIn(backoff));
      m.expect(
        inTurn(fails, succeeds).pipe(retryBackoff(constant(numberIn(backoff)), runtimeOn(m.scheduler))),
      ).toBeObservable(result.marbles);
      m.expect(fails).toHaveSubscriptions(subscribed(first, backoff.startMs));
      m.expect(succeeds).toHaveSubscriptions(subscribed(second, instantOf(second, '|')));
    }),
  );

  it(
    'R-3.2 R-3.8 circuitBreaker',
    marbles((m) => {
      const labels = ['source', 'circuitBreaker(', 'breaker.state$', 'the next subscription'] as const;
      const [source, result, states, next] = picture('src/operators/circuit-breaker.ts', labels);
      const runtime = runtimeOn(m.scheduler);
      const breaker = createBreaker({}, runtime);
      fail(breaker, 4);
      const failing = m.cold<string>(source.marbles, undefined, transient);
      const guarded = failing.pipe(circuitBreaker(breaker));
      const type$ = new Observable<string>((subscriber) =>
        breaker.state$.subscribe(({ type }) => subscriber.next(type)),
      );
      m.expect(guarded).toBeObservable(result.marbles, undefined, transient);
      m.expect(guarded, `${'-'.repeat(next.startMs)}^`).toBeObservable(
        next.fromStart,
        undefined,
        new ToolExecutionError('circuit_open', 'The circuit breaker is open; the call was not made'),
      );
      m.expect(type$, '^-----!').toBeObservable(states.marbles, { c: 'closed', o: 'open' });
      m.expect(failing).toHaveSubscriptions(subscribed(source, instantOf(source, '#')));
    }),
  );

  it(
    'R-4.1 attemptTimeout',
    marbles((m) => {
      const [source, result] = picture('src/operators/attempt-timeout.ts', ['source', 'attemptTimeout(']);
      const work = m.cold<string>(source.marbles);
      const ms = numberIn(result);
      m.expect(work.pipe(attemptTimeout(ms, runtimeOn(m.scheduler)))).toBeObservable(
        result.marbles,
        undefined,
        timeout(`Tool timeout after ${ms}ms`),
      );
      m.expect(work).toHaveSubscriptions(subscribed(source, instantOf(result, '#')));
    }),
  );

  it(
    'R-4.3 idleTimeout',
    marbles((m) => {
      const [source, activity, result] = picture('src/operators/idle-timeout.ts', [
        'source',
        'activity$',
        'idleTimeout(',
      ]);
      const work = m.cold<string>(source.marbles);
      const ms = numberIn(result);
      const limited = work.pipe(idleTimeout(ms, m.hot(activity.marbles), runtimeOn(m.scheduler)));
      m.expect(limited).toBeObservable(
        result.marbles,
        undefined,
        timeout(`Tool made no progress, timeout after ${ms}ms`),
      );
      m.expect(work).toHaveSubscriptions(subscribed(source, instantOf(result, '#')));
    }),
  );

  it(
    'R-4.2 abortable',
    marbles((m) => {
      const [work, result, left] = picture('src/operators/work/abortable.ts', ['work', 'abortable(', 'unsubscribed']);
      const runtime = runtimeOn(m.scheduler);
      const abortedAtMs: number[] = [];
      const abortable$ = abortable((signal) => {
        signal.addEventListener('abort', () => abortedAtMs.push(runtime.now()));
        return m.cold<string>(work.marbles);
      });
      m.expect(abortable$).toBeObservable(result.marbles);
      m.expect(abortable$, `^${left.marbles.slice(1)}`).toBeObservable('-');
      m.flush();
      expect(abortedAtMs).toStrictEqual([instantOf(left, '!')]);
    }),
  );

  it(
    'R-2.6 hedge',
    marbles((m) => {
      const [first, second, result] = picture('src/operators/hedge.ts', ['first attempt', 'second attempt', 'hedge(']);
      const [slow, quick] = [m.cold<string>(first.marbles), m.cold<string>(second.marbles)];
      m.expect(inTurn(slow, quick).pipe(hedge({ delayMs: numberIn(result) }, runtimeOn(m.scheduler)))).toBeObservable(
        result.marbles,
      );
      m.expect(slow).toHaveSubscriptions(subscribed(first, instantOf(result, 'b')));
      m.expect(quick).toHaveSubscriptions(subscribed(second, instantOf(second, '|')));
    }),
  );

  it(
    'R-9.4 dedupe',
    marbles((m) => {
      const labels = ['source', 'dedupe(', 'one that waits', 'one that comes late'] as const;
      const [source, first, waits, late] = picture('src/operators/dedupe.ts', labels);
      const runtime = runtimeOn(m.scheduler);
      const work = m.cold<string>(source.marbles);
      const deduped = work.pipe(dedupe(memoryStore({ runtime, sweepMs: Infinity }), 'key', {}, runtime));
      for (const row of [first, waits, late])
        m.expect(deduped, `${'-'.repeat(row.startMs)}^`).toBeObservable(row.fromStart);
      m.expect(work).toHaveSubscriptions(subscribed(source, instantOf(source, '|')));
    }),
  );

  it(
    'R-2.1 R-3.2 R-4.1 guard',
    marbles((m) => {
      const labels = ['first attempt', 'second attempt', 'third attempt', 'guard('] as const;
      const [first, second, third, result] = picture('src/operators/guard.ts', labels);
      const runtime = counting(runtimeOn(m.scheduler));
      const [hangs, fails, succeeds] = [
        m.cold<string>(first.marbles),
        m.cold<string>(second.marbles, undefined, transient),
        m.cold<string>(third.marbles),
      ];
      const timeoutMs = numberIn(result);
      const guarded = guard({ timeoutMs, breaker: {}, retry: constant(2) }, runtime);
      m.expect(inTurn(hangs, fails, succeeds).pipe(guarded)).toBeObservable(result.marbles);
      m.expect(hangs).toHaveSubscriptions(subscribed(first, timeoutMs));
      m.expect(fails).toHaveSubscriptions(subscribed(second, instantOf(second, '#')));
      m.expect(succeeds).toHaveSubscriptions(subscribed(third, instantOf(third, '|')));
      m.flush();
      expect(guarded.breaker?.state).toMatchObject({ type: 'closed', measured: 3, failures: 2 });
      expect(runtime.timers).toBe(0);
    }),
  );
});
