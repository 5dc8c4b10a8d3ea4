import { defer, of, throwError, timer, type Observable } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { createRetryBudget } from '../../src/policy/retry-budget.ts';
import { hedge } from '../../src/operators/hedge.ts';
import { runtimeOn } from '../../src/testing/runtime-on.ts';
import { marbles } from '../marbles.ts';

describe('hedge', () => {
  it(
    'a second attempt starts after the delay, the first to answer wins, the loser is unsubscribed',
    marbles((m) => {
      const slow = m.cold('   --------s|');
      const quick = m.cold('     --q|   ');
      const slowSub = '       ^----!    ';
      const quickSub = '      ---^--!   ';
      const expected = '      -----q|   ';
      let attempt = 0;
      const source = defer(() => (++attempt === 1 ? slow : quick));
      m.expect(source.pipe(hedge({ delayMs: 3 }, runtimeOn(m.scheduler)))).toBeObservable(expected);
      m.expect(slow).toHaveSubscriptions(slowSub);
      m.expect(quick).toHaveSubscriptions(quickSub);
    }),
  );

  it(
    'an answer within the delay is not hedged and leaves no timer',
    marbles((m) => {
      const source = m.cold(' -a-b|');
      const subs = '          ^---!';
      const expected = '      -a-b|';
      m.expect(source.pipe(hedge({ delayMs: 3 }, runtimeOn(m.scheduler)))).toBeObservable(expected);
      m.expect(source).toHaveSubscriptions(subs);
    }),
  );

  it(
    'the first attempt may still win after the hedge has started',
    marbles((m) => {
      const first = m.cold(' ----f|   ');
      const second = m.cold('  -----s|');
      const secondSub = '    --^-!    ';
      const expected = '     ----f|   ';
      let attempt = 0;
      const source = defer(() => (++attempt === 1 ? first : second));
      m.expect(source.pipe(hedge({ delayMs: 2 }, runtimeOn(m.scheduler)))).toBeObservable(expected);
      m.expect(second).toHaveSubscriptions(secondSub);
    }),
  );

  it(
    'one that fails drops out of the race; the error of the last one is the stream’s',
    marbles((m) => {
      const first = m.cold('  ---#         ', {}, new Error('first'));
      const second = m.cold('   ----#      ', {}, new Error('second'));
      const expected = '      ------#';
      let attempt = 0;
      const source = defer(() => (++attempt === 1 ? first : second));
      m.expect(source.pipe(hedge({ delayMs: 2 }, runtimeOn(m.scheduler)))).toBeObservable(expected, {}, new Error('second'));
    }),
  );

  it(
    'a failure before the delay is the stream’s: retrying is for retryBackoff',
    marbles((m) => {
      const source = m.cold(' -#');
      const expected = '      -#';
      m.expect(source.pipe(hedge({ delayMs: 5 }, runtimeOn(m.scheduler)))).toBeObservable(expected);
      m.expect(source).toHaveSubscriptions('^!');
    }),
  );

  it(
    'unsubscribing aborts every attempt and the timer of the next',
    marbles((m) => {
      const source = m.cold(' ----------a|');
      const subs = ['         ^----!', '        --^--!'];
      const unsub = '         -----!';
      const expected = '      ------';
      m.expect(source.pipe(hedge({ delayMs: 2, maxHedges: 2 }, runtimeOn(m.scheduler))), unsub).toBeObservable(expected);
      m.expect(source).toHaveSubscriptions([...subs, '----^!']);
    }),
  );

  it(
    'its own p95 is waited for once enough answers are measured; each source is hedged by what it measured',
    marbles((m) => {
      const runtime = runtimeOn(m.scheduler);
      const hedged = hedge({ minimumSamples: 2 }, runtime);
      let started = 0;
      const answering = (ms: number): Observable<number> =>
        defer(() => {
          started++;
          return timer(ms);
        }).pipe(hedged);
      answering(2).subscribe();
      answering(4).subscribe();
      m.scheduler.schedule(() => {
        started = 0;
        answering(100).subscribe();
      }, 10);
      m.scheduler.schedule(() => expect(started).toBe(1), 13);
      m.scheduler.schedule(() => expect(started).toBe(2), 15);
    }),
  );

  it(
    'a budget that allows no retry allows no hedge, and a hedge is charged',
    marbles((m) => {
      const runtime = runtimeOn(m.scheduler);
      const budget = createRetryBudget({ ratio: 0, minPerSecond: 1, windowMs: 1000 });
      const slow = m.cold(' ------a|');
      const hedged = hedge({ delayMs: 2, budget }, runtime);
      m.expect(slow.pipe(hedged)).toBeObservable('------a|');
      m.expect(slow.pipe(hedged)).toBeObservable('------a|');
      m.expect(slow).toHaveSubscriptions(['^------!', '^------!', '--^---!']);
    }),
  );

  it('options out of range are refused', () => {
    expect(() => hedge({ delayMs: -1 })).toThrow(RangeError);
    expect(() => hedge({ quantile: 2 })).toThrow(/quantile must be a number from 0 to 1, not 2/);
    expect(() => hedge({ maxHedges: 0 })).toThrow(RangeError);
  });

  it('a synchronous answer and a synchronous failure pass at once', () => {
    const seen: unknown[] = [];
    of(1)
      .pipe(hedge({ delayMs: 1 }))
      .subscribe((value) => seen.push(value));
    throwError(() => 'no')
      .pipe(hedge({ delayMs: 1 }))
      .subscribe({ error: (error: unknown) => seen.push(error) });
    expect(seen).toEqual([1, 'no']);
  });
});
