import { Observable, defer, of, pipe, throwError } from 'rxjs';
import { describe, expect, it } from 'vitest';
import type { RetryPolicy } from '../../src/contract/policy.ts';
import { ToolExecutionError } from '../../src/contract/tool-error.ts';
import { retryBackoff } from '../../src/operators/retry-backoff.ts';
import { runtimeOn } from '../../src/testing/runtime-on.ts';
import { marbles } from '../marbles.ts';
import { counting, transient } from '../support.ts';

/** Three milliseconds between attempts, without jitter, three attempts. */
const threeMs: Partial<RetryPolicy> = { strategy: 'constant', initialDelayMs: 3, jitterPercent: 0, maxAttempts: 3 };

describe('R-2.1 attempts', () => {
  it(
    'R-2.1 a source that succeeds is left alone, and needs no timer',
    marbles((m) => {
      const source = m.cold<string>('--a--b|');
      const subs = '                 ^-----!';
      const expected = '             --a--b|';
      const runtime = counting(runtimeOn(m.scheduler));
      m.expect(source.pipe(retryBackoff(threeMs, runtime))).toBeObservable(expected);
      m.expect(source).toHaveSubscriptions(subs);
      m.flush();
      expect(runtime.started).toBe(0);
    }),
  );

  it(
    'R-2.1 maxAttempts counts the first attempt, and the last failure is the error',
    marbles((m) => {
      const source = m.cold<string>('--#', undefined, transient);
      const subs = [
        '                            ^-!          ',
        '                            -----^-!     ',
        '                            ----------^-!',
      ];
      const expected = '             ------------#';
      m.expect(source.pipe(retryBackoff(threeMs, runtimeOn(m.scheduler)))).toBeObservable(
        expected,
        undefined,
        transient,
      );
      m.expect(source).toHaveSubscriptions(subs);
    }),
  );

  it(
    'R-2.1 one attempt means no retry',
    marbles((m) => {
      const source = m.cold<string>('--#', undefined, transient);
      const subs = '                 ^-!';
      const expected = '             --#';
      m.expect(source.pipe(retryBackoff({ maxAttempts: 1 }, runtimeOn(m.scheduler)))).toBeObservable(
        expected,
        undefined,
        transient,
      );
      m.expect(source).toHaveSubscriptions(subs);
    }),
  );

  it(
    'R-2.1 values from before a failure stay, and the attempt that succeeds ends it',
    marbles((m) => {
      const attempts = [
        m.cold<string>('a-#', undefined, transient),
        m.cold<string>('-b#', undefined, transient),
        m.cold<string>('--c|'),
      ];
      const expected = '                        a-----b-----c|';
      let attempt = 0;
      const source = defer(() => attempts[attempt++] ?? throwError(() => new Error('one attempt too many')));
      m.expect(source.pipe(retryBackoff(threeMs, runtimeOn(m.scheduler)))).toBeObservable(expected);
      m.expect(attempts[0] ?? m.cold('')).toHaveSubscriptions('^-!         ');
      m.expect(attempts[1] ?? m.cold('')).toHaveSubscriptions('-----^-!    ');
      m.expect(attempts[2] ?? m.cold('')).toHaveSubscriptions('----------^--!');
    }),
  );

  it(
    'R-2.1 each subscription is a run of its own, with its own attempts and its own clock',
    marbles((m) => {
      const source = m.cold<string>(' --#', undefined, transient);
      const first = '                 ^---';
      const expectedFirst = '         -------#';
      const second = '                ---------^';
      const expectedSecond = '        ----------------#';
      const guarded = source.pipe(
        retryBackoff({ ...threeMs, maxAttempts: 2, maxTotalTimeMs: 6 }, runtimeOn(m.scheduler)),
      );
      m.expect(guarded, first).toBeObservable(expectedFirst, undefined, transient);
      m.expect(guarded, second).toBeObservable(expectedSecond, undefined, transient);
      m.expect(source).toHaveSubscriptions(['^-!', '-----^-!', '---------^-!', '--------------^-!']);
    }),
  );

  it(
    'R-2.1 a synchronous throw is a failure like any other',
    marbles((m) => {
      let attempt = 0;
      const source = new Observable<string>((subscriber) => {
        attempt++;
        if (attempt < 3) throw transient;
        subscriber.next('a');
        subscriber.complete();
      });
      const expected = '------(a|)';
      m.expect(source.pipe(retryBackoff(threeMs, runtimeOn(m.scheduler)))).toBeObservable(expected);
    }),
  );

  it(
    'R-2.1 interactive is the default: 100, 200, 400 and 800 between five attempts',
    marbles((m) => {
      const source = m.cold<string>('#', undefined, transient);
      const subs = ['(^!)', '100ms (^!)', '300ms (^!)', '700ms (^!)', '1500ms (^!)'];
      const expected = '             1500ms #';
      // 0.5 is the middle of the jitter.
      const runtime = { ...runtimeOn(m.scheduler), random: () => 0.5 };
      m.expect(source.pipe(retryBackoff({}, runtime))).toBeObservable(expected, undefined, transient);
      m.expect(source).toHaveSubscriptions(subs);
    }),
  );

  it(
    'R-2.1 decorrelated grows from the delay before it',
    marbles((m) => {
      const source = m.cold<string>('#', undefined, transient);
      // The middle of [100, 300], of [100, 600] and of [100, 800]: 200, 350, 450.
      const subs = ['(^!)', '200ms (^!)', '550ms (^!)', '1000ms (^!)'];
      const runtime = { ...runtimeOn(m.scheduler), random: () => 0.5 };
      m.expect(source.pipe(retryBackoff({ strategy: 'decorrelated', maxAttempts: 4 }, runtime))).toBeObservable(
        '1000ms #',
        undefined,
        transient,
      );
      m.expect(source).toHaveSubscriptions(subs);
    }),
  );

  it(
    'R-4.2 a cancellation is not retried, whatever class it was given',
    marbles((m) => {
      const canceled = new ToolExecutionError('canceled', 'enough', { classification: 'transient' });
      const source = m.cold<string>('--#', undefined, canceled);
      const subs = '                 ^-!';
      m.expect(source.pipe(retryBackoff(threeMs, runtimeOn(m.scheduler)))).toBeObservable('--#', undefined, canceled);
      m.expect(source).toHaveSubscriptions(subs);
    }),
  );

  it('R-2.1 the type of the stream survives point-free composition', () => {
    const twice = pipe(retryBackoff(), retryBackoff());
    const lengths: Observable<number> = of(1, 2).pipe(retryBackoff());
    const texts: Observable<string> = twice(of('a'));
    // @ts-expect-error a stream of strings is not one of numbers
    const wrong: Observable<number> = of('a').pipe(retryBackoff());
    expect([lengths, texts, wrong]).toHaveLength(3);
  });
});
