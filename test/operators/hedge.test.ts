import { concatMap, defer, of, range, throwError, timer, type Observable } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { createRetryBudget } from '../../src/policy/retry/budget.ts';
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
      m.expect(source.pipe(hedge({ delayMs: 2 }, runtimeOn(m.scheduler)))).toBeObservable(
        expected,
        {},
        new Error('second'),
      );
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
      m.expect(source.pipe(hedge({ delayMs: 2, maxHedges: 2 }, runtimeOn(m.scheduler))), unsub).toBeObservable(
        expected,
      );
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
    'its p95 is the 95th of a hundred: of 20 answers the 19th is waited for, not the slowest',
    marbles((m) => {
      const hedged = hedge({}, runtimeOn(m.scheduler));
      const startedAtMs: number[] = [];
      const answering = (ms: number): Observable<number> =>
        defer(() => {
          startedAtMs.push(m.scheduler.now());
          return timer(ms);
        }).pipe(hedged);
      for (let ms = 1; ms <= 20; ms++) answering(ms).subscribe();
      m.scheduler.schedule(() => answering(100).subscribe(), 50);
      m.flush();
      expect(startedAtMs.slice(20)).toEqual([50, 69]);
    }),
  );

  it(
    'the latest hundred answers count, and no older ones',
    marbles((m) => {
      const hedged = hedge({}, runtimeOn(m.scheduler));
      const startedAtMs: number[] = [];
      const answering = (ms: number): Observable<number> =>
        defer(() => {
          startedAtMs.push(m.scheduler.now());
          return timer(ms);
        }).pipe(hedged);
      // All begin before any has answered, so none of them is hedged.
      for (let n = 0; n < 100; n++) answering(500).subscribe();
      for (let n = 0; n < 50; n++) answering(600 + n).subscribe();
      for (let n = 0; n < 100; n++) answering(1_000).subscribe();
      m.scheduler.schedule(() => answering(90_000).subscribe(), 2_000);
      m.flush();
      expect(startedAtMs.slice(250)).toEqual([2_000, 3_000]);
    }),
  );

  it(
    'an attempt that lost counts as far as it came: what is hedged always does not become ever quicker',
    marbles((m) => {
      const hedged = hedge({}, runtimeOn(m.scheduler));
      const ANSWERS = 20;
      const startedAtMs: number[] = [];
      let hedging = false;
      // Before it hedges: 20 answers after 10 ms each. Then each first attempt is slow and each second one answers at
      // once.
      const call = defer(() => {
        startedAtMs.push(m.scheduler.now());
        if (!hedging) return timer(10);
        return startedAtMs.length % 2 === 1 ? timer(1_000) : timer(1);
      }).pipe(hedged);
      const row = (calls: number): Observable<unknown> => range(calls).pipe(concatMap(() => call));
      row(ANSWERS).subscribe({
        complete: () => {
          hedging = true;
          row(100).subscribe();
        },
      });
      m.flush();
      const [first = 0, second = 0] = startedAtMs.slice(-2);
      expect(startedAtMs.length).toBe(ANSWERS + 200);
      expect(second - first).toBeGreaterThanOrEqual(10);
    }),
  );

  it(
    'R-2.6 a budget that allows no retry allows no hedge',
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

  it(
    'R-2.6 each hedge is charged once, as a retry, when it starts and not before; a call that needs none is not',
    marbles((m) => {
      const budget = createRetryBudget({ ratio: 0, minPerSecond: 5, windowMs: 1000 });
      const left: number[] = [];
      for (const atMs of [1, 3, 5, 9]) m.scheduler.schedule(() => left.push(budget.left(m.scheduler.now())), atMs);
      const slow = m.cold('   ------a|');
      const prompt = m.cold(' -a|');
      const hedged = hedge({ delayMs: 2, maxHedges: 2, budget }, runtimeOn(m.scheduler));
      m.expect(slow.pipe(hedged)).toBeObservable('  ------a|');
      m.expect(prompt.pipe(hedged)).toBeObservable('-a|');
      m.flush();
      expect(left).toEqual([5, 4, 3, 3]);
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
