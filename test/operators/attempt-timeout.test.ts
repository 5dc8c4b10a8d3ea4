import {
  EMPTY,
  NEVER,
  Subject,
  catchError,
  concat,
  defer,
  map,
  mergeMap,
  of,
  pipe,
  throwError,
  type Observable,
} from 'rxjs';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { ToolExecutionError } from '../../src/contract/tool-error.ts';
import { abortable } from '../../src/operators/work/abortable.ts';
import { attemptTimeout } from '../../src/operators/attempt-timeout.ts';
import { classify } from '../../src/policy/recovery/classify.ts';
import { liveRuntime } from '../../src/runtime.ts';
import { runtimeOn } from '../../src/testing/runtime-on.ts';
import { marbles } from '../marbles.ts';
import { counting, handClock, transient } from '../support.ts';

const timedOut = new ToolExecutionError('timeout', 'Tool timeout after 5ms');

describe('R-4.1 a hard limit', () => {
  it(
    'R-4.1 a source that ends in time is left alone',
    marbles((m) => {
      const source = m.cold<string>('-a-(b|)');
      const subs = '                 ^--!   ';
      const expected = '             -a-(b|)';
      m.expect(source.pipe(attemptTimeout(5, runtimeOn(m.scheduler)))).toBeObservable(expected);
      m.expect(source).toHaveSubscriptions(subs);
    }),
  );

  it(
    'R-4.1 at the limit it errors, and the source is unsubscribed at that instant',
    marbles((m) => {
      const source = m.cold<string>('--------a|');
      const subs = '                 ^----!    ';
      const expected = '             -----#    ';
      m.expect(source.pipe(attemptTimeout(5, runtimeOn(m.scheduler)))).toBeObservable(expected, undefined, timedOut);
      m.expect(source).toHaveSubscriptions(subs);
    }),
  );

  it(
    'R-4.1 from subscription to completion: values do not extend it, and a value without completion still times out',
    marbles((m) => {
      const source = m.cold<string>('a-b-c-d-e|');
      const subs = '                 ^----!    ';
      const expected = '             a-b-c#    ';
      m.expect(source.pipe(attemptTimeout(5, runtimeOn(m.scheduler)))).toBeObservable(expected, undefined, timedOut);
      m.expect(source).toHaveSubscriptions(subs);
    }),
  );

  it(
    'R-4.1 an error of the source passes through',
    marbles((m) => {
      const source = m.cold<string>('-a-#', undefined, transient);
      const subs = '                 ^--!';
      const expected = '             -a-#';
      m.expect(source.pipe(attemptTimeout(5, runtimeOn(m.scheduler)))).toBeObservable(expected, undefined, transient);
      m.expect(source).toHaveSubscriptions(subs);
    }),
  );

  it(
    'R-4.1 each subscription has its own limit',
    marbles((m) => {
      const source = m.cold<string>('-------|');
      const first = '                ^-------';
      const expectedFirst = '        -----#';
      const second = '               ---^----';
      const expectedSecond = '       --------#';
      const guarded = source.pipe(attemptTimeout(5, runtimeOn(m.scheduler)));
      m.expect(guarded, first).toBeObservable(expectedFirst, undefined, timedOut);
      m.expect(guarded, second).toBeObservable(expectedSecond, undefined, timedOut);
      m.expect(source).toHaveSubscriptions(['^----!', '---^----!']);
    }),
  );

  it(
    'R-4.1 unsubscribing unsubscribes the source, and no error follows',
    marbles((m) => {
      const source = m.cold<string>('--------|');
      const subs = '                 ^--!     ';
      const unsub = '                ^--!     ';
      const expected = '             ---------';
      m.expect(source.pipe(attemptTimeout(5, runtimeOn(m.scheduler))), unsub).toBeObservable(expected);
      m.expect(source).toHaveSubscriptions(subs);
    }),
  );

  it.each([
    [30_000, 'Tool timeout after 30s'],
    [1_500, 'Tool timeout after 1.5s'],
    [1_000, 'Tool timeout after 1s'],
    [200, 'Tool timeout after 200ms'],
    [90_000, 'Tool timeout after 90s'],
  ])('R-4.1 the error of %i ms: a timeout, transient and uncertain', (timeoutMs, message) =>
    marbles((m) => {
      const error$ = NEVER.pipe(
        attemptTimeout(timeoutMs, runtimeOn(m.scheduler)),
        catchError((error: unknown) => of(error)),
        map((error) => {
          expect(error).toBeInstanceOf(ToolExecutionError);
          expect(error).toMatchObject({ kind: 'timeout', message, uncertain: true, executed: true });
          return classify(error).classification;
        }),
      );
      m.expect(error$).toBeObservable(`${timeoutMs}ms (t|)`, { t: 'transient' });
    })(),
  );
});

describe('R-4.6 one and the same instant', () => {
  it(
    'R-4.6 a result beats its deadline',
    marbles((m) => {
      const source = m.cold<string>('-----(a|)');
      const subs = '                 ^----!   ';
      const expected = '             -----(a|)';
      m.expect(source.pipe(attemptTimeout(5, runtimeOn(m.scheduler)))).toBeObservable(expected);
      m.expect(source).toHaveSubscriptions(subs);
    }),
  );

  it(
    'R-4.6 so does an error, a completion after a value, and a hot source',
    marbles((m) => {
      const failing = m.cold<string>('-----#    ', undefined, transient);
      const ending = m.cold<string>(' -a---|    ');
      const hot = m.hot<string>('     -----(a|) ');
      const runtime = runtimeOn(m.scheduler);
      m.expect(failing.pipe(attemptTimeout(5, runtime))).toBeObservable('-----#', undefined, transient);
      m.expect(ending.pipe(attemptTimeout(5, runtime))).toBeObservable(' -a---|');
      m.expect(hot.pipe(attemptTimeout(5, runtime))).toBeObservable('   -----(a|)');
    }),
  );

  it(
    'R-4.6 so does one that took two steps at that instant',
    marbles((m) => {
      const runtime = runtimeOn(m.scheduler);
      const source = runtime.after(5).pipe(
        mergeMap(() => runtime.after(0)),
        map(() => 'a'),
      );
      m.expect(source.pipe(attemptTimeout(5, runtime))).toBeObservable('-----(a|)');
    }),
  );

  it(
    'R-4.6 so does one whose timer was set after the deadline’s',
    marbles((m) => {
      const runtime = runtimeOn(m.scheduler);
      const source = runtime.after(2).pipe(
        mergeMap(() => runtime.after(3)),
        map(() => 'a'),
      );
      m.expect(source.pipe(attemptTimeout(5, runtime))).toBeObservable('-----(a|)');
    }),
  );

  it(
    'R-4.6 and one that did both',
    marbles((m) => {
      const runtime = runtimeOn(m.scheduler);
      const source = runtime.after(2).pipe(
        mergeMap(() => runtime.after(3)),
        mergeMap(() => runtime.after(0)),
        map(() => 'a'),
      );
      m.expect(source.pipe(attemptTimeout(5, runtime))).toBeObservable('-----(a|)');
    }),
  );

  it(
    'R-4.6 a value at that instant without completion is emitted, and then it times out',
    marbles((m) => {
      const source = m.cold<string>('-----a-|   ');
      const subs = '                 ^----!     ';
      const expected = '             -----(a#)  ';
      m.expect(source.pipe(attemptTimeout(5, runtimeOn(m.scheduler)))).toBeObservable(expected, undefined, timedOut);
      m.expect(source).toHaveSubscriptions(subs);
    }),
  );

  it(
    'R-4.6 a result of a millisecond later is too late',
    marbles((m) => {
      const source = m.cold<string>('------(a|)');
      const subs = '                 ^----!    ';
      const expected = '             -----#    ';
      m.expect(source.pipe(attemptTimeout(5, runtimeOn(m.scheduler)))).toBeObservable(expected, undefined, timedOut);
      m.expect(source).toHaveSubscriptions(subs);
    }),
  );

  it(
    'R-4.6 deadlines of one length that were set at different times each keep their own instant',
    marbles((m) => {
      const runtime = runtimeOn(m.scheduler);
      const expectations = [
        ['^--------', '     -----#   '],
        ['--^------', '     -------# '],
        ['--^--!---', '     ---------'],
        ['---^-----', '     --------#'],
      ] as const;
      for (const [subscription, expected] of expectations)
        m.expect(NEVER.pipe(attemptTimeout(5, runtime)), subscription).toBeObservable(
          expected.trim(),
          undefined,
          timedOut,
        );
      const result = m.cold<string>('-----(a|)');
      m.expect(result.pipe(attemptTimeout(5, runtime)), '-^').toBeObservable('------(a|)');
    }),
  );
});

describe('R-4.2 what is left behind', () => {
  const live: { abortedAt: number | undefined; signal: AbortSignal | undefined } = {
    abortedAt: undefined,
    signal: undefined,
  };
  beforeEach(() => Object.assign(live, { abortedAt: undefined, signal: undefined }));

  it(
    'R-4.1 the signal is aborted at the limit, though the tool ignores it',
    marbles((m) => {
      const work = abortable((signal) => {
        live.signal = signal;
        signal.addEventListener('abort', () => (live.abortedAt = m.scheduler.now()));
        return new Promise<string>(() => undefined);
      });
      m.expect(work.pipe(attemptTimeout(5, runtimeOn(m.scheduler)))).toBeObservable('-----#', undefined, timedOut);
      m.flush();
      expect(live.abortedAt).toBe(5);
    }),
  );

  it(
    'R-4.2 the signal is not aborted after a success, nor the next attempt’s with the first’s',
    marbles((m) => {
      const signals: AbortSignal[] = [];
      const slow = m.cold<string>('--------|');
      const prompt = m.cold<string>('-(a|)');
      const work = abortable((signal) => (signals.push(signal) === 1 ? slow : prompt));
      const guarded = work.pipe(attemptTimeout(5, runtimeOn(m.scheduler)));
      m.expect(concat(guarded.pipe(catchError(() => EMPTY)), guarded)).toBeObservable('------(a|)');
      m.flush();
      expect(signals.map(({ aborted }) => aborted)).toStrictEqual([true, false]);
    }),
  );

  it(
    'R-4.2 no timer is left after the end, however it ended',
    marbles((m) => {
      const runtime = counting(runtimeOn(m.scheduler));
      const after: Array<readonly [number, number]> = [];
      const cases = [m.cold<string>('-a|'), m.cold<string>('-#', undefined, transient), m.cold<string>('----')];
      for (const source of cases) {
        const work = source.pipe(attemptTimeout(50, runtime)).subscribe({ error: () => undefined });
        m.scheduler.schedule(() => {
          work.unsubscribe();
          after.push([m.scheduler.now(), runtime.timers]);
        }, 4);
      }
      m.flush();
      expect(after).toHaveLength(3);
      expect(after.at(-1)).toStrictEqual([4, 0]);
      expect(m.scheduler.now()).toBeLessThan(50);
    }),
  );

  it(
    'R-4.2 none after a timeout, and a result in the very instant leaves none either',
    marbles((m) => {
      const runtime = counting(runtimeOn(m.scheduler));
      m.expect(NEVER.pipe(attemptTimeout(5, runtime))).toBeObservable('-----#', undefined, timedOut);
      m.expect(m.cold<string>('-----|').pipe(attemptTimeout(5, runtime))).toBeObservable('-----|');
      m.flush();
      expect(runtime.timers).toBe(0);
    }),
  );

  it('R-4.2 not even in the instant in which the deadline gave way', () => {
    const clock = handClock();
    const left: number[] = [];
    const source = clock.runtime.after(5).pipe(mergeMap(() => clock.runtime.after(0)));
    source
      .pipe(attemptTimeout(5, clock.runtime))
      .subscribe()
      .add(() => left.push(clock.runtime.timers));
    clock.pass(5);
    expect(left).toStrictEqual([0]);
  });

  it('R-4.2 what settles synchronously needs no timer at all', () => {
    const runtime = counting(liveRuntime);
    of(1).pipe(attemptTimeout(5, runtime)).subscribe();
    throwError(() => transient)
      .pipe(attemptTimeout(5, runtime))
      .subscribe({ error: () => undefined });
    expect(runtime.started).toBe(0);
  });

  it('R-4.2 what arrives after the end is dropped', () => {
    const late = new Subject<string>();
    const seen: string[] = [];
    late
      .pipe(attemptTimeout(5))
      .subscribe((value) => seen.push(value))
      .unsubscribe();
    late.next('a');
    expect(seen).toStrictEqual([]);
    expect(late.observed).toBe(false);
  });
});

describe('R-2.9 durations', () => {
  it.each([0, -1, Number.NaN, Infinity, 2 ** 53, '5'])('R-2.9 %s is refused when the operator is made', (timeoutMs) => {
    expect(() => attemptTimeout(timeoutMs as number)).toThrow(RangeError);
    expect(() => attemptTimeout(timeoutMs as number)).toThrow(
      new RegExp(`^timeoutMs must be .*${String(timeoutMs).replace('+', '\\+')}`),
    );
  });

  it('R-2.9 the type of the stream survives point-free composition', () => {
    const twice = pipe(attemptTimeout(5), attemptTimeout(6));
    const numbers: Observable<number> = twice(of(1));
    // @ts-expect-error a stream of numbers is not one of strings
    const wrong: Observable<string> = twice(of(1));
    expect([numbers, wrong]).toHaveLength(2);
  });
});

describe('R-2.9 the live clock', () => {
  beforeEach(
    () =>
      void vi.useFakeTimers({
        toFake: ['setTimeout', 'clearTimeout', 'setImmediate', 'clearImmediate', 'Date', 'performance'],
      }),
  );
  afterEach(() => void vi.useRealTimers());
  const DAY_MS = 24 * 3_600_000;

  it('R-2.9 a limit beyond 2^31 - 1 ms neither fires at once nor early', () => {
    const seen: unknown[] = [];
    defer(() => NEVER)
      .pipe(attemptTimeout(60 * DAY_MS))
      .subscribe({ error: (error) => seen.push(error) });
    vi.advanceTimersByTime(60 * DAY_MS - 1);
    expect(seen).toStrictEqual([]);
    vi.advanceTimersByTime(10);
    expect(seen).toHaveLength(1);
    expect(vi.getTimerCount()).toBe(0);
  });

  it('R-2.9 a long timer can be cancelled in each of its parts', () => {
    for (const days of [1, 30, 55]) {
      const timer = liveRuntime.after(60 * DAY_MS).subscribe();
      vi.advanceTimersByTime(days * DAY_MS);
      expect(vi.getTimerCount()).toBe(1);
      timer.unsubscribe();
      expect(vi.getTimerCount()).toBe(0);
    }
  });

  it.each([2 ** 31 - 1, 2 ** 31, 2 ** 32, 3 * (2 ** 31 - 1)])('R-2.9 a timer of %i ms fires then and once', (ms) => {
    const seen: number[] = [];
    liveRuntime.after(ms).subscribe((value) => seen.push(value));
    vi.advanceTimersByTime(ms - 1);
    expect(seen).toStrictEqual([]);
    vi.advanceTimersByTime(1);
    expect(seen).toStrictEqual([0]);
    expect(vi.getTimerCount()).toBe(0);
  });
});
