// Was: a timeout was told before its attempt was unsubscribed, so an alternative started while the old signal was not
// yet aborted. Now: the attempt is aborted first.
import { NEVER, Observable, Subject, catchError, config, of, range, take } from 'rxjs';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { abortable } from '../../src/operators/work/abortable.ts';
import { attemptTimeout } from '../../src/operators/attempt-timeout.ts';
import { idleTimeout } from '../../src/operators/idle-timeout.ts';
import { handClock } from '../support.ts';

describe('RET-2 an attempt that was overtaken is over before what follows it starts', () => {
  it.each([
    ['attemptTimeout', (runtime: ReturnType<typeof handClock>['runtime']) => attemptTimeout(5, runtime)],
    ['idleTimeout', (runtime: ReturnType<typeof handClock>['runtime']) => idleTimeout(5, NEVER, runtime)],
  ] as const)('R-4.1 %s aborts first', (_name, guard) => {
    const clock = handClock();
    const log: string[] = [];
    abortable<string>((signal) => {
      signal.addEventListener('abort', () => log.push('aborted'));
      return new Promise(() => undefined);
    })
      .pipe(
        guard(clock.runtime),
        catchError(() => {
          log.push('alternative');
          return of('b');
        }),
      )
      .subscribe((value) => log.push(value));
    clock.pass(5);
    expect(log).toStrictEqual(['aborted', 'alternative', 'b']);
  });

  it('R-4.1 an endless synchronous source still ends where it is no longer wanted', () => {
    const seen: number[] = [];
    range(0, Infinity)
      .pipe(attemptTimeout(5), idleTimeout(5, NEVER), take(3))
      .subscribe((value) => seen.push(value));
    expect(seen).toStrictEqual([0, 1, 2]);
  });
});

describe('R-4.1 a teardown that throws', () => {
  const unhandled: unknown[] = [];
  beforeEach(() => {
    vi.useFakeTimers();
    unhandled.length = 0;
    config.onUnhandledError = (error) => unhandled.push(error);
  });
  afterEach(() => {
    config.onUnhandledError = null;
    vi.useRealTimers();
  });

  // Deadlines of one instant were told in one loop: the first teardown that threw left all later ones without a
  // timeout.
  it('costs neither its own caller the timeout nor other attempts of the same instant theirs', () => {
    const clock = handClock();
    const hostile = new Observable<never>(() => () => {
      throw new Error('a teardown’s own');
    });
    const kinds: string[] = [];
    for (const source of [hostile, new Subject<never>(), hostile, new Subject<never>()]) {
      source
        .pipe(attemptTimeout(5, clock.runtime))
        .subscribe({ error: ({ kind }: { kind: string }) => kinds.push(kind) });
    }
    clock.pass(5);
    vi.runAllTimers();
    expect(kinds).toStrictEqual(['timeout', 'timeout', 'timeout', 'timeout']);
    expect(clock.runtime.timers).toBe(0);
    expect(unhandled).toHaveLength(2);
  });
});

describe('R-4.1 from subscription', () => {
  // The limit was counted from when the subscription returned.
  it('the time that the work takes to start is in it', () => {
    const clock = handClock();
    const errors: unknown[] = [];
    const blocking = new Observable<never>(() => clock.pass(3));
    blocking.pipe(attemptTimeout(5, clock.runtime)).subscribe({ error: (error) => errors.push(error) });
    clock.pass(1);
    expect(errors).toHaveLength(0);
    clock.pass(1);
    expect(errors).toHaveLength(1);
    expect(errors[0]).toMatchObject({ message: 'Tool timeout after 5ms' });
  });
});
