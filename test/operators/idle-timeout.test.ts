import { NEVER, Subject, of, pipe, type Observable } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { ToolExecutionError } from '../../src/contract/tool-error.ts';
import { attemptTimeout } from '../../src/operators/attempt-timeout.ts';
import { idleTimeout } from '../../src/operators/idle-timeout.ts';
import { classify } from '../../src/policy/recovery/classify.ts';
import { runtimeOn } from '../../src/testing/runtime-on.ts';
import { marbles } from '../marbles.ts';
import { counting, handClock, transient } from '../support.ts';

const idle = new ToolExecutionError('timeout', 'Tool made no progress, timeout after 4ms');
const hard = new ToolExecutionError('timeout', 'Tool timeout after 9ms');

describe('R-4.3 idle timeout', () => {
  it(
    'R-4.3 silence from the start times out',
    marbles((m) => {
      const source = m.cold<string>('  -----------|');
      const subs = '                   ^---!       ';
      const progress = m.hot<string>(' ------------');
      const progressSubs = '           ^---!       ';
      const expected = '               ----#       ';
      m.expect(source.pipe(idleTimeout(4, progress, runtimeOn(m.scheduler)))).toBeObservable(expected, undefined, idle);
      m.expect(source).toHaveSubscriptions(subs);
      m.expect(progress).toHaveSubscriptions(progressSubs);
    }),
  );

  it(
    'R-4.3 each progress resets it',
    marbles((m) => {
      const source = m.cold<string>('  --------------|');
      const subs = '                   ^---------!    ';
      const progress = m.hot<string>(' ---p--p--------');
      const expected = '               ----------#    ';
      m.expect(source.pipe(idleTimeout(4, progress, runtimeOn(m.scheduler)))).toBeObservable(expected, undefined, idle);
      m.expect(source).toHaveSubscriptions(subs);
    }),
  );

  it(
    'R-4.3 with progress often enough the source ends as it likes, and values alone are no progress',
    marbles((m) => {
      const ending = m.cold<string>('  --------(a|)');
      const progress = m.hot<string>(' ---p--p-----');
      const expected = '               --------(a|)';
      const chatty = m.cold<string>('  a-a-a-a|');
      const expectedChatty = '         a-a-(a#)';
      const runtime = runtimeOn(m.scheduler);
      m.expect(ending.pipe(idleTimeout(4, progress, runtime))).toBeObservable(expected);
      m.expect(progress).toHaveSubscriptions('^-------!');
      m.expect(chatty.pipe(idleTimeout(4, NEVER, runtime))).toBeObservable(expectedChatty, undefined, idle);
    }),
  );

  it(
    'R-4.6 progress in the very instant counts, and so does a result',
    marbles((m) => {
      const source = m.cold<string>('  ----------------|');
      const progress = m.hot<string>(' ----p---p-------');
      const expected = '               ------------#';
      const result = m.cold<string>('  ----(a|)');
      const expectedResult = '         ----(a|)';
      const runtime = runtimeOn(m.scheduler);
      m.expect(source.pipe(idleTimeout(4, progress, runtime))).toBeObservable(expected, undefined, idle);
      m.expect(result.pipe(idleTimeout(4, new Subject(), runtime))).toBeObservable(expectedResult);
    }),
  );

  it(
    'R-4.3 the hard limit is never extended by progress',
    marbles((m) => {
      const source = m.cold<string>('  ----------------|');
      const subs = '                   ^--------!       ';
      const progress = m.hot<string>(' --p--p--p--p--p--');
      const progressSubs = '           ^--------!       ';
      const expected = '               ---------#       ';
      const runtime = runtimeOn(m.scheduler);
      m.expect(source.pipe(idleTimeout(4, progress, runtime), attemptTimeout(9, runtime))).toBeObservable(
        expected,
        undefined,
        hard,
      );
      m.expect(source).toHaveSubscriptions(subs);
      m.expect(progress).toHaveSubscriptions(progressSubs);
    }),
  );

  it(
    'R-4.3 progress that ended is progress no more',
    marbles((m) => {
      const source = m.cold<string>('  -----------|');
      const progress = m.hot<string>(' --p-|');
      const expected = '               ------#';
      m.expect(source.pipe(idleTimeout(4, progress, runtimeOn(m.scheduler)))).toBeObservable(expected, undefined, idle);
    }),
  );

  it(
    'R-4.3 each subscription has a silence of its own; unsubscribing lets go of everything',
    marbles((m) => {
      const source = m.cold<string>('  -----------|');
      const progress = m.hot<string>(' ------------');
      const first = '                  ^--!';
      const second = '                 --^---------';
      const expected = '               ------#';
      const runtime = counting(runtimeOn(m.scheduler));
      const guarded = source.pipe(idleTimeout(4, progress, runtime));
      m.expect(guarded, first).toBeObservable('------');
      m.expect(guarded, second).toBeObservable(expected, undefined, idle);
      m.expect(source).toHaveSubscriptions(['^--!', '--^---!']);
      m.expect(progress).toHaveSubscriptions(['^--!', '--^---!']);
      m.flush();
      expect(runtime.timers).toBe(0);
    }),
  );

  it('R-4.3 the error is a timeout, transient and uncertain', () => {
    const clock = handClock();
    const seen: unknown[] = [];
    new Subject()
      .pipe(idleTimeout(1_500, new Subject(), clock.runtime))
      .subscribe({ error: (error) => seen.push(error) });
    clock.pass(1_500);
    expect(seen).toHaveLength(1);
    expect(seen[0]).toMatchObject({ kind: 'timeout', uncertain: true });
    expect((seen[0] as Error).message).toContain('timeout after 1.5s');
    expect(classify(seen[0]).classification).toBe('transient');
  });

  it('R-4.2 what settles synchronously needs no timer', () => {
    const clock = handClock();
    of(1)
      .pipe(idleTimeout(4, new Subject(), clock.runtime))
      .subscribe();
    expect(clock.runtime.started).toBe(0);
  });

  it.each([0, -1, Number.NaN, Infinity])('R-2.9 %s is refused when the operator is made', (idleTimeoutMs) => {
    expect(() => idleTimeout(idleTimeoutMs, new Subject())).toThrow(RangeError);
    expect(() => idleTimeout(idleTimeoutMs, new Subject())).toThrow(/^idleTimeoutMs must be /);
  });

  it('R-2.9 the type of the stream survives point-free composition', () => {
    const guard = pipe(idleTimeout(4, new Subject()), idleTimeout(5, new Subject()));
    const numbers: Observable<number> = guard(of(1));
    // @ts-expect-error a stream of numbers is not one of strings
    const wrong: Observable<string> = guard(of(1));
    expect([numbers, wrong, transient]).toHaveLength(3);
  });
});
