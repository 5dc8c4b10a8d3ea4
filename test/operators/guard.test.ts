import {
  NEVER,
  Subject,
  defer,
  firstValueFrom,
  lastValueFrom,
  of,
  pipe,
  takeUntil,
  throwError,
  type Observable,
} from 'rxjs';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { createBreaker } from '../../src/operators/breaker/breaker.ts';
import { circuitBreaker } from '../../src/operators/circuit-breaker.ts';
import { guard, type GuardOptions } from '../../src/operators/guard.ts';
import { retryBackoff } from '../../src/operators/retry-backoff.ts';
import { runtimeOn } from '../../src/testing/runtime-on.ts';
import { marbles } from '../marbles.ts';
import { counting, handClock, permit, transient } from '../support.ts';

const twoMs = { strategy: 'constant', initialDelayMs: 2, jitterPercent: 0 } as const;

describe('guard', () => {
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
      const guarded = guard({ timeoutMs: 4, breaker: {}, retry: twoMs }, runtime);
      const attempts = [hangs, fails, succeeds];
      m.expect(defer(() => attempts.shift() ?? of('one attempt too many')).pipe(guarded)).toBeObservable(expected);
      m.expect(hangs).toHaveSubscriptions(hangsSubs);
      m.expect(fails).toHaveSubscriptions(failsSubs);
      m.expect(succeeds).toHaveSubscriptions(succeedsSubs);
      m.flush();
      expect(guarded.breaker?.state).toStrictEqual({
        type: 'closed',
        consecutiveFailures: 0,
        measured: 3,
        failures: 2,
      });
      expect(runtime.timers).toBe(0);
    }),
  );

  it(
    'R-2.3 only the guards that were asked for are there',
    marbles((m) => {
      const runtime = runtimeOn(m.scheduler);
      const source = m.cold<string>('-----#', undefined, transient);
      m.expect(source.pipe(guard({ retry: { ...twoMs, maxAttempts: 2 } }, runtime))).toBeObservable(
        '12ms #',
        undefined,
        transient,
      );
      m.expect(source.pipe(guard({ breaker: {} }, runtime))).toBeObservable('-----#', undefined, transient);
      expect(guard({ timeoutMs: 4 }).breaker).toBeUndefined();
    }),
  );

  it('R-3.8 a breaker can be shared by several guards', async () => {
    const breaker = createBreaker({ failureThreshold: 1 });
    const [one, two] = [guard({ breaker }), guard({ breaker, retry: {} })];
    await expect(lastValueFrom(throwError(() => transient).pipe(one))).rejects.toBe(transient);
    await expect(lastValueFrom(two.from(() => 'never asked'))).rejects.toMatchObject({ kind: 'circuit_open' });
    expect(one.breaker).toBe(breaker);
  });

  it('R-3.6 who hears of the admission may unsubscribe: nothing is run, and the place is given back', () => {
    const clock = handClock();
    const breaker = createBreaker({ failureThreshold: 1, cooldownMs: 5 }, clock.runtime);
    permit(breaker).failure(transient);
    clock.pass(5);
    const gone$ = new Subject<void>();
    breaker.inputs$.subscribe(({ type }) => type === 'admit' && gone$.next());
    const work = vi.fn<() => Observable<string>>(() => of('a'));
    guard({ breaker, timeoutMs: 5 }, clock.runtime).from(work).pipe(takeUntil(gone$)).subscribe();
    defer(work).pipe(circuitBreaker(breaker), takeUntil(gone$)).subscribe();
    expect(work).not.toHaveBeenCalled();
    expect(breaker.admit().admitted).toBe(true);
  });

  it('R-2.9 the type of the stream survives point-free composition', () => {
    const twice = pipe(guard({ timeoutMs: 5 }), retryBackoff());
    const numbers: Observable<number> = twice(of(1));
    // @ts-expect-error a stream of numbers is not one of strings
    const wrong: Observable<string> = guard({ timeoutMs: 5 }).from(() => 1);
    expect([numbers, wrong]).toHaveLength(2);
  });

  it.each<[GuardOptions, RegExp]>([
    [{}, /must have timeoutMs, breaker or retry/],
    [{ timeoutMs: 0 }, /^timeoutMs must be .* 0$/],
    [{ breaker: { probes: 0 } }, /^probes must be .* 0$/],
    [{ retry: { maxAttempts: 0.5 } }, /^maxAttempts must be .* 0\.5$/],
    [{ timeout: 5 } as GuardOptions, /timeout/],
  ])('R-2.9 %j is refused when the operator is made', (options, message) => {
    expect(() => guard(options)).toThrow(RangeError);
    expect(() => guard(options)).toThrow(message);
  });
});

describe('work that takes a signal', () => {
  afterEach(() => void vi.unstubAllGlobals());

  it('R-4.2 it is made when it is first asked for, fresh for each attempt', async () => {
    const made = vi.fn<() => void>();
    vi.stubGlobal(
      'AbortController',
      class extends AbortController {
        constructor() {
          super();
          made();
        }
      },
    );
    const guarded = guard({ timeoutMs: 1_000, retry: { initialDelayMs: 0 } });
    await firstValueFrom(guarded.from(() => 'a'));
    expect(made).not.toHaveBeenCalled();
    const signals: AbortSignal[] = [];
    const attempts: number[] = [];
    const work = guarded.from((context) => {
      signals.push(context.signal, context.signal);
      attempts.push(context.attempt);
      return context.attempt < 3 ? Promise.reject(transient) : Promise.resolve('b');
    });
    expect(await firstValueFrom(work)).toBe('b');
    expect(attempts).toStrictEqual([1, 2, 3]);
    expect(new Set(signals).size).toBe(3);
    expect(signals.map(({ aborted }) => aborted)).not.toContain(true);
    expect(made).toHaveBeenCalledTimes(3);
  });

  it('R-4.2 one that is first asked for after the end knows whether it was an abort', async () => {
    const clock = handClock();
    const guarded = guard({ timeoutMs: 5 }, clock.runtime);
    const contexts: Array<{ readonly signal: AbortSignal }> = [];
    guarded.from((context) => (contexts.push(context), NEVER)).subscribe({ error: () => undefined });
    guarded.from((context) => contexts.push(context)).subscribe();
    clock.pass(5);
    expect(contexts.map(({ signal }) => signal.aborted)).toStrictEqual([true, false]);
  });

  it.each([
    ['a value', (): unknown => 'a'],
    ['a Promise', (): unknown => Promise.resolve('a')],
    ['an Observable', (): unknown => of('a')],
    [
      'an AsyncIterable',
      (): unknown =>
        (async function* () {
          yield 'a';
        })(),
    ],
  ])('R-4.1 it may give %s', async (_what, work) => {
    expect(await lastValueFrom(guard({ timeoutMs: 1_000 }).from(work))).toBe('a');
  });

  it('R-4.1 a synchronous throw is a failed attempt', async () => {
    const guarded = guard({ timeoutMs: 1_000, retry: { initialDelayMs: 0, maxAttempts: 2 } });
    const work = vi.fn<() => string>(() => {
      throw transient;
    });
    await expect(lastValueFrom(guarded.from(work))).rejects.toBe(transient);
    expect(work).toHaveBeenCalledTimes(2);
  });
});

describe('the machine’s own clock', () => {
  it('R-4.1 a deadline fires, and counts from the start', async () => {
    const started = performance.now();
    await expect(lastValueFrom(guard({ timeoutMs: 20 }).from(() => NEVER))).rejects.toMatchObject({
      kind: 'timeout',
      message: 'Tool timeout after 20ms',
    });
    expect(performance.now() - started).toBeGreaterThanOrEqual(19);
  });
});
