import { EMPTY, NEVER, Observable, Subject, firstValueFrom, of, pipe, take, throwError } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { ToolExecutionError, isToolExecutionError } from '../../src/contract/tool-error.ts';
import { createBreaker } from '../../src/operators/breaker/breaker.ts';
import { circuitBreaker } from '../../src/operators/circuit-breaker.ts';
import { runtimeOn } from '../../src/testing/runtime-on.ts';
import { marbles } from '../marbles.ts';
import { fail, handClock, permanent, permit, rejects, succeed, transient } from '../support.ts';

const quick = { failureThreshold: 1, successThreshold: 1, cooldownMs: 5 } as const;
const circuitOpen = new ToolExecutionError('circuit_open', 'The circuit breaker is open; the call was not made');
const closed = { type: 'closed', consecutiveFailures: 0, measured: 0, failures: 0 } as const;

describe('R-3.6 what a subscription tells the breaker', () => {
  it(
    'R-3.6 completion is a success, and everything passes through unchanged',
    marbles((m) => {
      const source = m.cold<string>('-a-b-|');
      const subs = '                 ^----!';
      const expected = '             -a-b-|';
      const breaker = createBreaker({}, runtimeOn(m.scheduler));
      m.expect(source.pipe(circuitBreaker(breaker))).toBeObservable(expected);
      m.expect(source).toHaveSubscriptions(subs);
      m.flush();
      expect(breaker.state).toMatchObject({ type: 'closed', measured: 1, failures: 0 });
    }),
  );

  it('R-3.6 completion without a value is a success too', () => {
    const breaker = createBreaker();
    EMPTY.pipe(circuitBreaker(breaker)).subscribe();
    expect(breaker.state).toMatchObject({ measured: 1, failures: 0 });
  });

  it(
    'R-3.2 a transient failure counts, also after values, and reaches the caller as it is',
    marbles((m) => {
      const source = m.cold<string>('-a-#', undefined, transient);
      const subs = '                 ^--!';
      const expected = '             -a-#';
      const breaker = createBreaker({}, runtimeOn(m.scheduler));
      m.expect(source.pipe(circuitBreaker(breaker))).toBeObservable(expected, undefined, transient);
      m.expect(source).toHaveSubscriptions(subs);
      m.flush();
      expect(breaker.state).toMatchObject({ consecutiveFailures: 1, measured: 1, failures: 1 });
    }),
  );

  it(
    'R-3.6 unsubscribing without a value releases, and says nothing',
    marbles((m) => {
      const source = m.cold<string>('----a|');
      const subs = '                 ^--!  ';
      const unsub = '                ^--!  ';
      const expected = '             ------';
      const breaker = createBreaker({}, runtimeOn(m.scheduler));
      m.expect(source.pipe(circuitBreaker(breaker)), unsub).toBeObservable(expected);
      m.expect(source).toHaveSubscriptions(subs);
      m.flush();
      expect(breaker.state).toStrictEqual(closed);
    }),
  );

  it(
    'R-3.6 unsubscribing after a value is a success',
    marbles((m) => {
      const source = m.cold<string>('-a--b|');
      const subs = '                 ^--!  ';
      const unsub = '                ^--!  ';
      const expected = '             -a----';
      const breaker = createBreaker({}, runtimeOn(m.scheduler));
      m.expect(source.pipe(circuitBreaker(breaker)), unsub).toBeObservable(expected);
      m.expect(source).toHaveSubscriptions(subs);
      m.flush();
      expect(breaker.state).toMatchObject({ type: 'closed', measured: 1, failures: 0 });
    }),
  );

  it('R-3.6 firstValueFrom and take(1) are successes, though they unsubscribe before completion', async () => {
    const { runtime } = handClock();
    const breaker = createBreaker({}, runtime);
    await firstValueFrom(new Observable<number>((subscriber) => subscriber.next(1)).pipe(circuitBreaker(breaker)));
    of(1, 2).pipe(circuitBreaker(breaker), take(1)).subscribe();
    expect(breaker.state).toMatchObject({ measured: 2, failures: 0 });
  });

  it('R-3.6 a synchronous throw gives the permit back, as a failure', () => {
    const clock = handClock();
    const breaker = createBreaker(quick, clock.runtime);
    fail(breaker);
    clock.pass(5);
    const seen: unknown[] = [];
    new Observable<never>(() => {
      throw transient;
    })
      .pipe(circuitBreaker(breaker))
      .subscribe({ error: (error) => seen.push(error) });
    expect(seen).toStrictEqual([transient]);
    expect(breaker.state).toMatchObject({ type: 'open', retryAfterMs: 5 });
  });

  it('R-3.6 each subscription asks for a permit of its own, and only when it subscribes', () => {
    const breaker = createBreaker();
    const guarded = of(1).pipe(circuitBreaker(breaker));
    expect(breaker.state.measured).toBe(0);
    guarded.subscribe();
    guarded.subscribe();
    expect(breaker.state.measured).toBe(2);
  });

  it('R-3.6 a probe that is unsubscribed gives its place back; one that unsubscribes inside next closes', () => {
    const clock = handClock();
    const breaker = createBreaker(quick, clock.runtime);
    fail(breaker);
    clock.pass(5);
    const probe = NEVER.pipe(circuitBreaker(breaker)).subscribe();
    expect(rejects(breaker)).toBe(true);
    probe.unsubscribe();
    expect(breaker.state.type).toBe('half_open');
    expect(rejects(breaker)).toBe(false);
    const values = new Subject<number>();
    values.pipe(circuitBreaker(breaker), take(1)).subscribe();
    values.next(1);
    expect(breaker.state.type).toBe('closed');
  });
});

describe('R-3.3 what an error means', () => {
  const errors: ReadonlyArray<readonly [string, unknown, object]> = [
    ['an answered 404', permanent, { measured: 1, failures: 0 }],
    ['an answered 401 in a text', new Error('Authentication failed (401)'), { measured: 1, failures: 0 }],
    [
      'a validation error known by its words alone, which prove nothing',
      new Error('Invalid airport code: XYZ'),
      { measured: 0 },
    ],
    [
      'an answered validation error',
      Object.assign(new Error('Invalid airport code: XYZ'), { status: 422 }),
      { measured: 1, failures: 0 },
    ],
    [
      'our own validation: it never reached the tool',
      new ToolExecutionError('invalid_parameters', 'no'),
      { measured: 0 },
    ],
    ['an unknown tool', new ToolExecutionError('unknown_tool', 'no'), { measured: 0 }],
    ['a tool that is not permitted', new ToolExecutionError('not_permitted', 'no'), { measured: 0 }],
    [
      'a certificate that is not accepted: permanent, and never answered',
      Object.assign(new Error('expired'), { code: 'CERT_HAS_EXPIRED' }),
      { measured: 0 },
    ],
    [
      'a permanent failure that says itself that it ran nothing',
      new ToolExecutionError('execution_error', 'no', { executed: false, classification: 'permanent' }),
      { measured: 0 },
    ],
    ['a cancellation', new ToolExecutionError('canceled', 'never mind'), { measured: 0 }],
    [
      'a cancellation in mid-run',
      new ToolExecutionError('canceled', 'never mind', { executed: true, uncertain: true }),
      { measured: 0 },
    ],
    ['an abort, as the platform words it', new DOMException('aborted', 'AbortError'), { measured: 0 }],
    ['a hook’s error', new ToolExecutionError('blocked', 'the hook threw'), { measured: 0 }],
    ['another breaker’s rejection', circuitOpen, { measured: 0 }],
    ['a bulkhead’s or limit’s rejection', new ToolExecutionError('limit_exceeded', 'full'), { measured: 0 }],
    ['a retry budget’s rejection', new ToolExecutionError('retry_budget_exhausted', 'spent'), { measured: 0 }],
    ['a turn that is over', new ToolExecutionError('deadline_exceeded', 'late'), { measured: 0 }],
    [
      'a timeout',
      new ToolExecutionError('timeout', 'Tool timeout after 30s', { uncertain: true }),
      { measured: 1, failures: 1 },
    ],
    ['a rate limit', new Error('Rate limit exceeded (429)'), { measured: 1, failures: 1 }],
    [
      'a refused connection',
      Object.assign(new Error('connect'), { code: 'ECONNREFUSED' }),
      { measured: 1, failures: 1 },
    ],
    [
      'an answered 503',
      new ToolExecutionError('execution_error', 'busy', { status: 503 }),
      { measured: 1, failures: 1 },
    ],
    ['anything unknown: transient is the safe default', 'boom', { measured: 1, failures: 1 }],
  ];
  it.each(errors)('R-3.3 %s', (_name, error, state) => {
    const breaker = createBreaker();
    throwError(() => error)
      .pipe(circuitBreaker(breaker))
      .subscribe({ error: () => undefined });
    expect(breaker.state).toMatchObject({ type: 'closed', ...state });
  });

  it('R-3.3 SI-T 3.4 permanent failures never add to the count, SI-T 7.2 they start it anew', () => {
    const breaker = createBreaker();
    const meets = (error: unknown): void =>
      void throwError(() => error)
        .pipe(circuitBreaker(breaker))
        .subscribe({ error: () => undefined });
    for (let i = 0; i < 20; i++) meets(permanent);
    expect(breaker.state).toMatchObject({ type: 'closed', consecutiveFailures: 0 });
    breaker.reset();
    meets(new Error('Connection timeout after 30s'));
    meets(new Error('Invalid airport code: XYZ'));
    meets(new Error('Rate limit exceeded (429)'));
    expect(breaker.state.consecutiveFailures).toBe(1);
  });

  it('R-3.3 a permanent answer is a good probe; a permanent failure that never arrived is none', () => {
    for (const [error, type] of [
      [permanent, 'closed'],
      [new ToolExecutionError('invalid_parameters', 'no'), 'half_open'],
    ] as const) {
      const clock = handClock();
      const breaker = createBreaker(quick, clock.runtime);
      fail(breaker);
      clock.pass(5);
      throwError(() => error)
        .pipe(circuitBreaker(breaker))
        .subscribe({ error: () => undefined });
      expect(breaker.state.type).toBe(type);
      expect(rejects(breaker)).toBe(false);
    }
  });

  it('R-3.3 the caller may say what an error means', () => {
    const breaker = createBreaker();
    for (const outcome of ['success', 'failure', 'ignored'] as const)
      throwError(() => transient)
        .pipe(circuitBreaker(breaker, () => outcome))
        .subscribe({ error: () => undefined });
    expect(breaker.state).toMatchObject({ measured: 2, failures: 1 });
  });
});

describe('R-3.8 rejection', () => {
  it(
    'R-3.8 an open breaker gives circuit_open with retryAfterMs at once, and the source is not subscribed',
    marbles((m) => {
      const source = m.cold<string>(' a--|');
      const first = '                 --^-----';
      const expectedFirst = '         --#     ';
      const probe = '                 ------^-----';
      const expectedProbe = '         ------a--|';
      const subs = '                  ------^--!';
      const during = '                -------^';
      const expectedDuring = '        -------#';
      const breaker = createBreaker(quick, runtimeOn(m.scheduler));
      m.hot('-f').subscribe(() => fail(breaker));
      const guarded = source.pipe(circuitBreaker(breaker));
      m.expect(guarded, first).toBeObservable(expectedFirst, undefined, circuitOpen);
      m.expect(guarded, probe).toBeObservable(expectedProbe);
      m.expect(guarded, during).toBeObservable(expectedDuring, undefined, circuitOpen);
      m.expect(source).toHaveSubscriptions(subs);
    }),
  );

  it('R-3.8 what the rejection says', () => {
    const clock = handClock();
    const breaker = createBreaker({ ...quick, cooldownMs: 1_000 }, clock.runtime);
    fail(breaker);
    clock.pass(400);
    const seen: unknown[] = [];
    of(1)
      .pipe(circuitBreaker(breaker))
      .subscribe({ error: (error) => seen.push(error) });
    expect(seen).toHaveLength(1);
    expect(isToolExecutionError(seen[0])).toBe(true);
    expect(seen[0]).toMatchObject({ kind: 'circuit_open', retryAfterMs: 600, executed: false, uncertain: false });
    expect(breaker.state).toMatchObject({ type: 'open', measured: 1 });
  });

  it(
    'R-3.6 a late outcome of before it opened changes nothing, through the operator as well',
    marbles((m) => {
      const late = m.cold<string>('   --------#', undefined, transient);
      const lateRun = '               ^----------';
      const expectedLate = '          --------#';
      const probe = m.cold<string>('  ----|');
      const probeRun = '              ------^-----';
      const expectedProbe = '         ----------|';
      const states = '                ^------------';
      const expectedStates = '        co----h---c';
      const breaker = createBreaker(quick, runtimeOn(m.scheduler));
      m.hot('-f').subscribe(() => fail(breaker));
      m.expect(late.pipe(circuitBreaker(breaker)), lateRun).toBeObservable(expectedLate, undefined, transient);
      m.expect(probe.pipe(circuitBreaker(breaker)), probeRun).toBeObservable(expectedProbe);
      const types = new Observable<string>((subscriber) =>
        breaker.state$.subscribe(({ type }) => subscriber.next(type[0] ?? '')),
      );
      m.expect(types, states).toBeObservable(expectedStates);
    }),
  );

  it('R-3.8 the type of the stream survives point-free composition', () => {
    const breaker = createBreaker();
    const twice = pipe(circuitBreaker(breaker), circuitBreaker(breaker));
    const numbers: Observable<number> = twice(of(1));
    // @ts-expect-error a stream of numbers is not one of strings
    const wrong: Observable<string> = twice(of(1));
    expect([numbers, wrong]).toHaveLength(2);
    succeed(breaker);
    permit(breaker).release();
  });
});
