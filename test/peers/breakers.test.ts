import { NEVER, Subject, catchError, firstValueFrom, of, throwError } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { ToolExecutionError } from '../../src/contract/tool-error.ts';
import { abortable } from '../../src/operators/work/abortable.ts';
import { attemptTimeout } from '../../src/operators/attempt-timeout.ts';
import { createBreaker } from '../../src/operators/breaker/breaker.ts';
import { circuitBreaker } from '../../src/operators/circuit-breaker.ts';
import { retryBackoff } from '../../src/operators/retry-backoff.ts';
import { backoffDelayMs, retryPolicy } from '../../src/policy/retry/backoff.ts';
import { seededRandom } from '../../src/policy/random.ts';
import { runtimeOn } from '../../src/testing/runtime-on.ts';
import { marbles } from '../marbles.ts';
import { counting, fail, handClock, permit, rejects, succeed, transient } from '../support.ts';

/** Opens after one failure, for a second: the probes of the survey. */
const one = { failureThreshold: 1, cooldownMs: 1_000, successThreshold: 1 } as const;

describe('what other breakers get wrong, measured on current releases', () => {
  it('cockatiel, opossum, Failsafe: the late failure of a call from before the trip reopens half-open', () => {
    const clock = handClock();
    const breaker = createBreaker(one, clock.runtime);
    const late = permit(breaker);
    fail(breaker);
    clock.pass(1_000);
    const probe = permit(breaker);
    late.failure(transient);
    expect(breaker.state.type).toBe('half_open');
    probe.success();
    expect(breaker.state.type).toBe('closed');
  });

  it('opossum, Failsafe: its late success closes half-open, no probe done', () => {
    const clock = handClock();
    const breaker = createBreaker(one, clock.runtime);
    const late = permit(breaker);
    fail(breaker);
    clock.pass(1_000);
    permit(breaker);
    late.success();
    expect(breaker.state.type).toBe('half_open');
    expect(rejects(breaker)).toBe(true);
  });

  it('cockatiel: a second caller waits behind the probe', () => {
    const clock = handClock();
    const breaker = createBreaker(one, clock.runtime);
    fail(breaker);
    clock.pass(1_000);
    NEVER.pipe(circuitBreaker(breaker)).subscribe();
    const kinds: string[] = [];
    of(1)
      .pipe(circuitBreaker(breaker))
      .subscribe({ error: ({ kind }: ToolExecutionError) => kinds.push(kind) });
    expect(kinds).toStrictEqual(['circuit_open']);
  });

  it('seven libraries: a cancelled probe reopens, closes, or wedges half-open', () => {
    const clock = handClock();
    const breaker = createBreaker(one, clock.runtime);
    fail(breaker);
    clock.pass(1_000);
    NEVER.pipe(circuitBreaker(breaker)).subscribe().unsubscribe();
    expect(breaker.state.type).toBe('half_open');
    of(1).pipe(circuitBreaker(breaker)).subscribe();
    expect(breaker.state.type).toBe('closed');
  });

  it('cockatiel, opossum, Effect: a probe that hangs for a day wedges it', () => {
    const clock = handClock();
    const breaker = createBreaker(one, clock.runtime);
    fail(breaker);
    clock.pass(1_000);
    NEVER.pipe(circuitBreaker(breaker)).subscribe();
    clock.pass(24 * 3_600_000);
    succeed(breaker);
    expect(breaker.state.type).toBe('closed');
  });

  it('opossum: one caller’s cancellation trips it', () => {
    const breaker = createBreaker(one, handClock().runtime);
    NEVER.pipe(circuitBreaker(breaker)).subscribe().unsubscribe();
    throwError(() => new DOMException('aborted', 'AbortError'))
      .pipe(
        circuitBreaker(breaker),
        catchError(() => of(0)),
      )
      .subscribe();
    expect(breaker.state).toStrictEqual({ type: 'closed', consecutiveFailures: 0, measured: 0, failures: 0 });
  });

  it('opossum: bulkhead rejections count as failures of a healthy dependency', () => {
    const breaker = createBreaker(one, handClock().runtime);
    throwError(() => new ToolExecutionError('limit_exceeded', 'the bulkhead is full'))
      .pipe(
        circuitBreaker(breaker),
        catchError(() => of(0)),
      )
      .subscribe();
    expect(breaker.state).toMatchObject({ type: 'closed', measured: 0 });
  });

  it('cockatiel: a window forgets too little after an idle hour: four failures, an hour, one failure, and it opens', () => {
    const clock = handClock();
    const breaker = createBreaker({ failureThreshold: Infinity, minimumCalls: 5 }, clock.runtime);
    fail(breaker, 4);
    clock.pass(3_600_000);
    fail(breaker);
    expect(breaker.state).toStrictEqual({ type: 'closed', consecutiveFailures: 1, measured: 1, failures: 1 });
  });

  it(
    'cockatiel: an abort during the backoff is not seen, and the function is called again',
    marbles((m) => {
      const source = m.cold<string>('#        ', undefined, transient);
      const subs = '                 (^!)     ';
      const unsub = '                ^ 2s !   ';
      const runtime = counting(runtimeOn(m.scheduler));
      m.expect(
        source.pipe(retryBackoff({ initialDelayMs: 60_000, maxTotalTimeMs: 600_000 }, runtime)),
        unsub,
      ).toBeObservable('');
      m.expect(source).toHaveSubscriptions(subs);
      m.flush();
      expect(runtime.timers).toBe(0);
      expect(m.scheduler.now()).toBeLessThan(60_000);
    }),
  );

  it('cockatiel: a listener that throws replaces the caller’s error and starves later ones', () => {
    const breaker = createBreaker(one, handClock().runtime, () => {
      throw new Error('a listener’s own');
    });
    const [errors, states] = [[] as unknown[], [] as string[]];
    const watcher = breaker.state$.subscribe(({ type }) => states.push(type));
    throwError(() => transient)
      .pipe(circuitBreaker(breaker))
      .subscribe({ error: (error) => errors.push(error) });
    expect(errors).toStrictEqual([transient]);
    expect(states).toStrictEqual(['closed', 'open']);
    watcher.unsubscribe();
  });

  it('opossum: a listener that throws turns a success into a failure and counts both', () => {
    const clock = handClock();
    const breaker = createBreaker(one, clock.runtime, () => {
      throw new Error('a listener’s own');
    });
    fail(breaker);
    clock.pass(1_000);
    const events: unknown[] = [];
    of('a')
      .pipe(circuitBreaker(breaker))
      .subscribe({
        next: (value) => events.push(value),
        error: () => events.push('#'),
        complete: () => events.push('|'),
      });
    expect(events).toStrictEqual(['a', '|']);
    expect(breaker.state).toStrictEqual({ type: 'closed', consecutiveFailures: 0, measured: 0, failures: 0 });
  });

  it('cockatiel, Effect: the wall clock set back an hour keeps it open, set forward opens it early', () => {
    for (const [jumpMs, afterMs, type] of [
      [-3_600_000, 1_000, 'half_open'],
      [3_600_000, 999, 'open'],
    ] as const) {
      const clock = handClock();
      const breaker = createBreaker(one, clock.runtime);
      fail(breaker);
      clock.jumpWall(jumpMs);
      clock.pass(afterMs);
      expect(breaker.state.type).toBe(type);
    }
  });

  it('p-retry, cockatiel’s decorrelated mode, Polly: at the cap all delays are identical', () => {
    for (const strategy of ['exponential', 'decorrelated', 'full_jitter', 'constant'] as const) {
      const policy = retryPolicy({ strategy, initialDelayMs: 1_000, maxDelayMs: 1_500 });
      const draws = Array.from({ length: 200 }, (_, seed) => backoffDelayMs(policy, 11, 1_500, seededRandom(seed)));
      expect(new Set(draws).size).toBeGreaterThan(150);
    }
  });

  it('opossum: a timeout aborts every concurrent call', () => {
    const clock = handClock();
    const signals: AbortSignal[] = [];
    const call = abortable((signal) => {
      signals.push(signal);
      return NEVER;
    }).pipe(
      attemptTimeout(10, clock.runtime),
      catchError(() => of(0)),
    );
    call.subscribe();
    clock.pass(5);
    call.subscribe();
    clock.pass(5);
    expect(signals.map(({ aborted }) => aborted)).toStrictEqual([true, false]);
    clock.pass(5);
    expect(signals.map(({ aborted }) => aborted)).toStrictEqual([true, true]);
  });

  it('opossum: two timers for each idle breaker', () => {
    const { runtime } = handClock();
    for (let i = 0; i < 100; i++) fail(createBreaker(one, runtime));
    expect(runtime.started).toBe(0);
  });

  it('opossum: an outcome of undefined, given synchronously, is a TypeError', async () => {
    const breaker = createBreaker(one);
    expect(await firstValueFrom(abortable(() => undefined).pipe(circuitBreaker(breaker)))).toBeUndefined();
    expect(breaker.state).toMatchObject({ measured: 1, failures: 0 });
  });

  it('opossum: concurrent failures cancel the reset timer, and it stays open for good', () => {
    const clock = handClock();
    const breaker = createBreaker(one, clock.runtime);
    const watcher = breaker.state$.subscribe();
    const calls = [permit(breaker), permit(breaker), permit(breaker)];
    calls.forEach((call) => call.failure(transient));
    clock.pass(1_000);
    expect(breaker.state.type).toBe('half_open');
    watcher.unsubscribe();
  });

  it('Hystrix: state derived on a timer trips up to 500 ms late', () => {
    const clock = handClock();
    const breaker = createBreaker({}, clock.runtime);
    fail(breaker, 5);
    expect(rejects(breaker)).toBe(true);
  });

  it('cockatiel: a parent’s abort is reported as a timeout', () => {
    const clock = handClock();
    const source = new Subject<never>();
    const kinds: string[] = [];
    source.pipe(attemptTimeout(5_000, clock.runtime)).subscribe({ error: ({ name }: Error) => kinds.push(name) });
    source.error(new DOMException('the parent gave up', 'AbortError'));
    clock.pass(5_000);
    expect(kinds).toStrictEqual(['AbortError']);
  });

  it('cockatiel: isolate and then dispose while open closes it; ours is sticky until reset', () => {
    const clock = handClock();
    const breaker = createBreaker(one, clock.runtime);
    fail(breaker);
    breaker.forceOpen();
    clock.pass(10_000);
    expect(breaker.state.type).toBe('forced_open');
  });
});
