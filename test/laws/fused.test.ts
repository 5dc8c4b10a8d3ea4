import fc from 'fast-check';
import { NEVER, Observable, Subscription, catchError, concat, defer, of, switchMap, tap, throwError } from 'rxjs';
import { TestScheduler } from 'rxjs/testing';
import { ToolExecutionError, abortable, attemptTimeout, circuitBreaker, createBreaker, createSpillway, retryBackoff, type Breaker, type BreakerOptions, type RetryPolicy } from 'spillway';
import { runtimeOn } from 'spillway/testing';
import { expect, it } from 'vitest';
import { counting, permanent, transient, type CountingRuntime } from '../support.ts';

/** One attempt: what it emits on the way, and how it ends. */
interface Behaviour {
  readonly afterMs: number;
  readonly earlier: number;
  readonly end: 'value' | 'nothing' | 'transient' | 'permanent' | 'limited' | 'pushed back' | 'uncertain' | 'never' | 'throws';
}
interface Scenario {
  readonly attempts: readonly Behaviour[];
  /** Calls, by when they start and, counted from then, are unsubscribed. */
  readonly calls: ReadonlyArray<{ readonly atMs: number; readonly cancelMs: number | undefined }>;
  readonly timeoutMs: number;
  readonly retry: Partial<RetryPolicy>;
  readonly breaker: BreakerOptions;
  readonly seed: number;
}

const ERRORS = {
  transient,
  permanent,
  limited: Object.assign(new Error('limited'), { status: 429, headers: { 'retry-after-ms': '70' } }),
  'pushed back': Object.assign(new Error('go away'), { status: 503, retryAfterMs: -1 }),
  uncertain: Object.assign(new Error('socket hang up'), { code: 'ECONNRESET' }),
} as const;

const behaviour = fc.record({
  afterMs: fc.constantFrom(0, 5, 20, 50, 99, 100, 101, 250),
  earlier: fc.nat({ max: 2 }),
  end: fc.constantFrom('value', 'nothing', 'transient', 'transient', 'transient', 'permanent', 'limited', 'pushed back', 'uncertain', 'never', 'throws'),
} as const);
const scenario: fc.Arbitrary<Scenario> = fc.record({
  attempts: fc.array(behaviour, { minLength: 1, maxLength: 8 }),
  calls: fc.array(fc.record({ atMs: fc.constantFrom(0, 0, 10, 100, 400, 1_000), cancelMs: fc.option(fc.constantFrom(0, 5, 20, 60, 100, 150, 300), { nil: undefined, freq: 3 }) }), { minLength: 1, maxLength: 4 }),
  timeoutMs: fc.constantFrom(20, 50, 100, 10_000),
  retry: fc.record({
    strategy: fc.constantFrom('exponential', 'full_jitter', 'decorrelated', 'constant'),
    initialDelayMs: fc.constantFrom(0, 10, 100),
    jitterPercent: fc.constantFrom(0, 10),
    maxAttempts: fc.integer({ min: 1, max: 5 }),
    maxTotalTimeMs: fc.constantFrom(100, 500, 60_000),
  } as const),
  breaker: fc.record({ failureThreshold: fc.constantFrom(1, 2, 5), cooldownMs: fc.constantFrom(50, 300, 30_000), successThreshold: fc.constantFrom(1, 2), probes: fc.constantFrom(1, 2) }),
  seed: fc.nat(),
});

/** What can be seen of a run, told to a log as `instant what`. */
interface Run {
  readonly runtime: CountingRuntime;
  readonly log: (what: string) => void;
  /** The work of the next attempt. */
  readonly work: (signal: AbortSignal) => Observable<unknown>;
}

/** Runs a scenario in virtual time, with calls made by `start`. */
const observe = (given: Scenario, start: (run: Run) => (call: number) => Observable<unknown>): readonly string[] => {
  const seen: string[] = [];
  const scheduler = new TestScheduler(() => undefined);
  scheduler.run(({ flush }) => {
    const runtime = counting(runtimeOn(scheduler, given.seed));
    const log = (what: string): void => void seen.push(`${runtime.now()} ${what}`);
    let attempts = 0;
    const work = (signal: AbortSignal): Observable<unknown> => {
      const attempt = attempts++;
      const { afterMs, earlier, end } = given.attempts[attempt % given.attempts.length] ?? { afterMs: 0, earlier: 0, end: 'never' };
      log(`attempt ${attempt} starts`);
      signal.addEventListener('abort', () => log(`attempt ${attempt} is aborted`));
      if (end === 'throws') throw transient;
      const last$ = (): Observable<unknown> => {
        if (end === 'value') return of(`value ${attempt}`);
        if (end === 'nothing') return of();
        return end === 'never' ? NEVER : throwError(() => ERRORS[end]);
      };
      return concat(of(...Array.from({ length: earlier }, (_, i) => `early ${attempt}.${i}`)), afterMs === 0 ? defer(last$) : runtime.after(afterMs).pipe(switchMap(last$)));
    };
    const call = start({ runtime, log, work });
    given.calls.forEach(({ atMs, cancelMs }, index) => {
      const begin = (): void => {
        const subscription = new Subscription();
        subscription.add(call(index).subscribe({ next: (value) => log(`call ${index} ends with ${String(value)}`) }));
        if (cancelMs === 0) subscription.unsubscribe();
        else if (cancelMs !== undefined) runtime.after(cancelMs).subscribe(() => subscription.unsubscribe());
      };
      if (atMs === 0) begin();
      else runtime.after(atMs).subscribe(begin);
    });
    flush();
    seen.push(`${runtime.timers} timers left`);
  });
  return seen;
};

const watchStates = (breaker: { readonly state$: Observable<{ readonly type: string }> }, { log }: Run): void => {
  breaker.state$.subscribe(({ type }) => log(`breaker ${type}`));
};

/** The one thing that a layer knows and a stream does not: the breaker that an attempt's own failure has just opened would reject its retry. */
const finalOnce = (breaker: Breaker) => (error: Error): Observable<never> =>
  throwError(() => (breaker.state.type === 'open' ? new ToolExecutionError('execution_error', error.message, { classification: 'permanent' }) : error));

const composed = (given: Scenario): readonly string[] =>
  observe(given, (run) => {
    const { runtime, work } = run;
    const breaker = createBreaker(given.breaker, runtime);
    watchStates(breaker, run);
    return () =>
      new Observable((subscriber) => {
        // The last value of the attempt that succeeds, as a tool's output is.
        let last: unknown;
        // A retry that is not admitted was not made: a layer's result tells the failure before it.
        let lastAnswered: string | undefined;
        const work$ = abortable((signal) => {
          last = undefined;
          return work(signal);
        });
        subscriber.add(work$.pipe(tap((value) => (last = value)), attemptTimeout(given.timeoutMs, runtime), tap({ error: (error: Error) => (lastAnswered = error.message) }), circuitBreaker(breaker), catchError(finalOnce(breaker)), retryBackoff(given.retry, runtime)).subscribe({
          error: ({ message }: Error) => subscriber.next(lastAnswered ?? message),
          complete: () => subscriber.next(last),
        }));
      });
  });

const fused = (given: Scenario): readonly string[] =>
  observe(given, (run) => {
    const { runtime, work } = run;
    const layer = createSpillway({
      runtime,
      retryBudget: false,
      tools: [{ name: 'tried', policy: { timeoutMs: given.timeoutMs, retry: given.retry, breaker: given.breaker }, execute: (_input: unknown, { signal }: { readonly signal: AbortSignal }) => work(signal) }],
    });
    watchStates(layer.breakers.get('tried'), run);
    return () =>
      new Observable((subscriber) => {
        subscriber.add(layer.call({ toolName: 'tried' }).subscribe((event) => {
          if (event.type === 'settled') subscriber.next(event.result.error === undefined ? event.result.output?.content : event.result.error.message);
        }));
      });
  });

it('R-8.2 a guarded call means the same as abortable, attemptTimeout, circuitBreaker and retryBackoff composed', () => {
  const reached = new Map<string, number>();
  fc.assert(
    fc.property(scenario, (given) => {
      const expected = composed(given);
      expect(fused(given)).toStrictEqual(expected);
      for (const what of ['is aborted', 'breaker open', 'breaker half_open', 'breaker closed', 'ends with Tool timeout', 'ends with value', 'ends with undefined', 'ends with The circuit breaker is open']) {
        if (expected.some((line) => line.includes(what))) reached.set(what, (reached.get(what) ?? 0) + 1);
      }
    }),
    { numRuns: 1_500 },
  );
  // What a random run seldom reaches proves nothing about it.
  expect([...reached.values()].every((times) => times >= 20), JSON.stringify([...reached])).toBe(true);
  expect(reached.size).toBe(8);
}, 60_000);
