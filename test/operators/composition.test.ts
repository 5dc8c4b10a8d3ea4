import { Observable, defer, of, pipe } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { ToolExecutionError } from '../../src/contract/tool-error.ts';
import { abortable } from '../../src/operators/work/abortable.ts';
import { attemptTimeout } from '../../src/operators/attempt-timeout.ts';
import { createBreaker } from '../../src/operators/breaker/breaker.ts';
import { circuitBreaker } from '../../src/operators/circuit-breaker.ts';
import { idleTimeout } from '../../src/operators/idle-timeout.ts';
import { retryBackoff } from '../../src/operators/retry-backoff.ts';
import { runtimeOn } from '../../src/testing/runtime-on.ts';
import { marbles } from '../marbles.ts';
import { counting, transient } from '../support.ts';

const twoMs = { strategy: 'constant', initialDelayMs: 2, jitterPercent: 0 } as const;
const circuitOpen = new ToolExecutionError('circuit_open', 'The circuit breaker is open; the call was not made');
const types = { c: 'closed', o: 'open', h: 'half_open' } as const;

describe('the three operators together', () => {
  it(
    'R-2.1 R-3.2 R-4.1 an attempt that hangs, one that fails, one that succeeds',
    marbles((m) => {
      const hangs = m.cold<string>('    --------');
      const hangsSubs = '               ^---!';
      const fails = m.cold<string>('          -#', undefined, transient);
      const failsSubs = '               ------^!';
      const succeeds = m.cold<string>('          -a-|');
      const succeedsSubs = '            ---------^--!';
      const expected = '                ----------a-|';
      const runtime = counting(runtimeOn(m.scheduler));
      const breaker = createBreaker({}, runtime);
      const attempts = [hangs, fails, succeeds];
      const source = defer(() => attempts.shift() ?? of('one attempt too many'));
      m.expect(
        source.pipe(attemptTimeout(4, runtime), circuitBreaker(breaker), retryBackoff(twoMs, runtime)),
      ).toBeObservable(expected);
      m.expect(hangs).toHaveSubscriptions(hangsSubs);
      m.expect(fails).toHaveSubscriptions(failsSubs);
      m.expect(succeeds).toHaveSubscriptions(succeedsSubs);
      m.flush();
      expect(breaker.state).toStrictEqual({ type: 'closed', consecutiveFailures: 0, measured: 3, failures: 2 });
      expect(runtime.timers).toBe(0);
    }),
  );

  it(
    'R-3.8 the breaker that its own failures opened stops the retry, and later calls do not reach the source',
    marbles((m) => {
      const source = m.cold<string>('-#', undefined, transient);
      const subs = ['                ^!    ', '---^!'];
      const first = '                ^-------';
      const expectedFirst = '        ------#';
      const second = '               --------^';
      const expectedSecond = '       --------#';
      const states = '               c---o';
      const runtime = runtimeOn(m.scheduler);
      const breaker = createBreaker({ failureThreshold: 2 }, runtime);
      const guarded = source.pipe(attemptTimeout(4, runtime), circuitBreaker(breaker), retryBackoff(twoMs, runtime));
      m.expect(guarded, first).toBeObservable(expectedFirst, undefined, circuitOpen);
      m.expect(guarded, second).toBeObservable(expectedSecond, undefined, circuitOpen);
      m.expect(source).toHaveSubscriptions(subs);
      const type$ = new Observable<string>((subscriber) =>
        breaker.state$.subscribe(({ type }) => subscriber.next(type)),
      );
      m.expect(type$, '^------!').toBeObservable(states, types);
    }),
  );

  it(
    'R-3.5 a retry that meets the half-open breaker is its probe, and closes it',
    marbles((m) => {
      const fails = m.cold<string>('-#', undefined, transient);
      const prompt = m.cold<string>('      (a|)');
      const expected = '            -----(a|)';
      const states = '              co---(hc)';
      const runtime = runtimeOn(m.scheduler);
      const breaker = createBreaker({ failureThreshold: 1, cooldownMs: 4, successThreshold: 1 }, runtime);
      const attempts = [fails, prompt];
      const source = defer(() => attempts.shift() ?? of('one attempt too many'));
      const type$ = new Observable<string>((subscriber) =>
        breaker.state$.subscribe(({ type }) => subscriber.next(type)),
      );
      m.expect(type$, '^---------').toBeObservable(states, types);
      m.expect(
        source.pipe(circuitBreaker(breaker), retryBackoff({ ...twoMs, initialDelayMs: 4 }, runtime)),
      ).toBeObservable(expected);
    }),
  );

  it(
    'R-2.7 R-3.6 R-4.2 unsubscribing lets go of everything at once: source, timers, permit, signal',
    marbles((m) => {
      const source = m.cold<string>('--------|');
      const subs = '                 ^--!     ';
      const unsub = '                ^--!     ';
      const expected = '             ---------';
      const runtime = counting(runtimeOn(m.scheduler));
      const breaker = createBreaker({ failureThreshold: 1 }, runtime);
      const signals: AbortSignal[] = [];
      const work = abortable((signal) => {
        signals.push(signal);
        return source;
      });
      m.expect(
        work.pipe(attemptTimeout(5, runtime), circuitBreaker(breaker), retryBackoff(twoMs, runtime)),
        unsub,
      ).toBeObservable(expected);
      m.expect(source).toHaveSubscriptions(subs);
      m.flush();
      expect(runtime.timers).toBe(0);
      expect(breaker.state).toStrictEqual({ type: 'closed', consecutiveFailures: 0, measured: 0, failures: 0 });
      expect(signals.map(({ aborted }) => aborted)).toStrictEqual([true]);
    }),
  );

  it(
    'R-4.6 a result in the very instant of the timeout is a success for the breaker, and nothing is retried',
    marbles((m) => {
      const source = m.cold<string>('-----(a|)');
      const subs = '                 ^----!   ';
      const expected = '             -----(a|)';
      const runtime = runtimeOn(m.scheduler);
      const breaker = createBreaker({}, runtime);
      m.expect(
        source.pipe(attemptTimeout(5, runtime), circuitBreaker(breaker), retryBackoff(twoMs, runtime)),
      ).toBeObservable(expected);
      m.expect(source).toHaveSubscriptions(subs);
      m.flush();
      expect(breaker.state).toMatchObject({ measured: 1, failures: 0 });
    }),
  );

  it(
    'R-4.1 a timed-out attempt counts against the breaker',
    marbles((m) => {
      const source = m.cold<string>('--------|');
      const subs = '                 ^---!    ';
      const expected = '             ----#    ';
      const runtime = runtimeOn(m.scheduler);
      const breaker = createBreaker({}, runtime);
      m.expect(source.pipe(attemptTimeout(4, runtime), circuitBreaker(breaker))).toBeObservable(
        expected,
        undefined,
        new ToolExecutionError('timeout', 'Tool timeout after 4ms'),
      );
      m.expect(source).toHaveSubscriptions(subs);
      m.flush();
      expect(breaker.state).toMatchObject({ consecutiveFailures: 1, failures: 1 });
    }),
  );

  it('types: point-free guards keep the type of the stream', () => {
    const breaker = createBreaker();
    const guard = pipe(attemptTimeout(4), circuitBreaker(breaker), idleTimeout(3, of(1)), retryBackoff());
    const numbers: Observable<number> = guard(of(1));
    const inline: Observable<{ readonly id: string }> = of({ id: 'a' }).pipe(
      attemptTimeout(4),
      circuitBreaker(breaker),
      retryBackoff(),
    );
    // @ts-expect-error a stream of numbers is not one of strings
    const wrong: Observable<string> = guard(of(1));
    expect([numbers, inline, wrong]).toHaveLength(3);
  });
});
