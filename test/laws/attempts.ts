import fc from 'fast-check';
import {
  NEVER,
  Observable,
  Subscription,
  concat,
  defer,
  delay,
  identity,
  of,
  switchMap,
  take,
  tap,
  throwError,
} from 'rxjs';
import { TestScheduler } from 'rxjs/testing';
import { isToolExecutionError, type Breaker, type BreakerOptions, type RetryPolicy, type Runtime } from 'spillway';
import { runtimeOn } from 'spillway/testing';
import { counting, permanent, transient, type CountingRuntime } from '../support.ts';
import type { Breaker as ReferenceBreaker } from './reference/breaker.ts';
import { CIRCUIT_OPEN, type Meaning } from './reference/operators.ts';

/** One attempt: what it emits on the way, and how it ends. */
export interface Behaviour {
  readonly afterMs: number;
  readonly earlier: number;
  readonly end: 'value' | 'nothing' | ErrorName | 'never' | 'throws';
}
export interface Guards {
  readonly timeoutMs?: number;
  readonly breaker?: BreakerOptions;
  readonly retry?: Partial<RetryPolicy>;
}
export interface Scenario {
  readonly attempts: readonly Behaviour[];
  /** When each begins, after how long and how it is canceled, and after how many values its caller has enough. */
  readonly calls: ReadonlyArray<{
    readonly atMs: number;
    readonly cancelMs: number | undefined;
    readonly by: 'leaving' | 'signal';
    readonly enough: number | undefined;
  }>;
  /** What the first call is unsubscribed by: whoever hears of it calls back into the operators. */
  readonly canceledBy: 'open' | 'half_open' | 'closed' | 'abort' | undefined;
  /** Timers come so much too late, as behind a stalled event loop. */
  readonly lateMs: number;
  readonly guards: Guards;
  readonly seed: number;
}

type ErrorName = 'transient' | 'permanent' | 'limited' | 'pushed back' | 'uncertain' | 'plain';

/** What tools throw. */
const ERRORS: Readonly<Record<ErrorName, Error>> = {
  transient,
  permanent,
  limited: Object.assign(new Error('limited'), { status: 429, headers: { 'retry-after-ms': '70' } }),
  'pushed back': Object.assign(new Error('go away'), { status: 503, retryAfterMs: -1 }),
  uncertain: Object.assign(new Error('socket hang up'), { code: 'ECONNRESET' }),
  plain: new Error('it broke'),
};

/** What that means, by: the references read no errors. */
const FAILURE: Meaning = { retriable: true, outcome: 'failure' };
const MEANINGS = new Map<unknown, Meaning>([
  [ERRORS.permanent, { retriable: false, outcome: 'success' }],
  [ERRORS.limited, { ...FAILURE, retryAfterMs: 70 }],
  [ERRORS['pushed back'], { ...FAILURE, retryAfterMs: -1 }],
  [CIRCUIT_OPEN, { retriable: false, outcome: 'ignored' }],
]);
export const meaningOf = (error: unknown): Meaning => MEANINGS.get(error) ?? FAILURE;

/** An error by its name here; one that the operators or the references made, by its kind. */
export const nameOf = (error: unknown): string =>
  nameOfMessage((error as Error).message, isToolExecutionError(error) ? error.kind : (error as Error).message);
/** The same, for who has its message and its kind. */
export const nameOfMessage = (message: string, kind: string): string =>
  Object.entries(ERRORS).find(([, known]) => known.message === message)?.[0] ?? kind;

export const behaviour: fc.Arbitrary<Behaviour> = fc.record({
  afterMs: fc.constantFrom(0, 5, 20, 50, 99, 100, 101, 250),
  earlier: fc.nat({ max: 2 }),
  end: fc.constantFrom(
    'value',
    'value',
    'nothing',
    'transient',
    'transient',
    'transient',
    'plain',
    'permanent',
    'limited',
    'pushed back',
    'uncertain',
    'never',
    'throws',
  ),
} as const);
/** Each guard by itself: some scenarios have not all of them. */
export const guards: { readonly [Guard in keyof Guards]-?: fc.Arbitrary<NonNullable<Guards[Guard]>> } = {
  timeoutMs: fc.constantFrom(20, 50, 100, 10_000),
  breaker: fc.record({
    failureThreshold: fc.constantFrom(1, 2, 5),
    cooldownMs: fc.constantFrom(50, 300, 30_000),
    successThreshold: fc.constantFrom(1, 2),
    probes: fc.constantFrom(1, 2),
    rampMs: fc.constantFrom(0, 0, 500),
  }),
  retry: fc.record({
    strategy: fc.constantFrom('exponential', 'full_jitter', 'decorrelated', 'constant'),
    initialDelayMs: fc.constantFrom(0, 10, 100),
    jitterPercent: fc.constantFrom(0, 10),
    maxAttempts: fc.integer({ min: 1, max: 5 }),
    maxTotalTimeMs: fc.constantFrom(100, 500, 60_000),
  } as const),
};
const call = fc.record({
  atMs: fc.constantFrom(0, 0, 10, 100, 400, 1_000),
  cancelMs: fc.option(fc.constantFrom(0, 5, 20, 60, 100, 150, 300), { nil: undefined, freq: 3 }),
  by: fc.constantFrom('leaving' as const, 'signal' as const),
  enough: fc.option(fc.constantFrom(1, 2), { nil: undefined, freq: 2 }),
});

/** @param guarded by which guards: all of them, or some */
export const scenarioOf = (guarded: fc.Arbitrary<Scenario['guards']>): fc.Arbitrary<Scenario> =>
  fc
    .record({
      attempts: fc.array(behaviour, { minLength: 1, maxLength: 8 }),
      calls: fc.oneof(fc.array(call, { minLength: 1, maxLength: 4 }), fc.tuple(call)),
      canceledBy: fc.constantFrom(
        undefined,
        undefined,
        'open' as const,
        'half_open' as const,
        'closed' as const,
        'abort' as const,
      ),
      lateMs: fc.constantFrom(0, 120),
      guards: guarded,
      seed: fc.nat(),
    })
    .map((given) => (given.calls.length > 1 ? ofSeveral(given) : given));

/**
 * Limits that share a timer are late together: how late, the specification does not say. Nor does it say whether a retry
 * without a delay starts before or after the limit of another call that passes in the same instant.
 */
const ofSeveral = (given: Scenario): Scenario => {
  const { retry } = given.guards;
  const guarded =
    retry?.initialDelayMs === 0 ? { ...given.guards, retry: { ...retry, initialDelayMs: 10 } } : given.guards;
  return { ...given, lateMs: 0, guards: guarded };
};

/** A breaker, as far as it is watched here. */
export interface Watched {
  readonly type$: Observable<string>;
  readonly state: () => string;
}
export const watchedReference = ({ type$, memory }: ReferenceBreaker): Watched => ({
  type$,
  state: () => {
    const { type, window } = memory();
    return `${type} ${window.streakMs.length} ${window.outcomes.length} ${window.failures}`;
  },
});
export const watchedBreaker = (breaker: Breaker): Watched => ({
  type$: new Observable((subscriber) => breaker.state$.subscribe(({ type }) => subscriber.next(type))),
  state: () => {
    const { type, consecutiveFailures, measured, failures } = breaker.state;
    return `${type} ${consecutiveFailures} ${measured} ${failures}`;
  },
});

export type Work = (signal?: AbortSignal) => Observable<unknown>;
/** A way of guarding: its breaker, and the stream of each call of work. A call that takes no signal is left instead. */
export interface Guarded {
  readonly breaker: Watched | undefined;
  readonly call: (work: Work, aborted$: Observable<unknown>) => Observable<unknown>;
  readonly takesSignals?: boolean;
}
export type Way = (given: Scenario, runtime: Runtime) => Guarded;

/** What an attempt does, and tells of itself. */
export const working = (
  { afterMs, earlier, end }: Behaviour,
  attempt: string,
  { runtime, log }: { readonly runtime: Runtime; readonly log: (what: string) => void },
): Observable<unknown> => {
  if (end === 'throws') throw transient;
  const last$ = (): Observable<unknown> => {
    if (end === 'value') return of(`value ${attempt}`);
    if (end === 'nothing') return of();
    return end === 'never' ? NEVER : throwError(() => ERRORS[end]);
  };
  const work$ = concat(
    of(...Array.from({ length: earlier }, (_, i) => `early ${attempt}.${i}`)),
    afterMs === 0 ? defer(last$) : runtime.after(afterMs).pipe(switchMap(last$)),
  );
  return work$.pipe(tap({ unsubscribe: () => log(`attempt ${attempt} is left`) }));
};

/** Runs a scenario in virtual time; gives what can be seen of it, as `instant what`. */
export const observe = (given: Scenario, way: Way): readonly string[] => {
  const seen: string[] = [];
  const scheduler = new TestScheduler(() => undefined);
  scheduler.run(({ flush }) => {
    const onTime = runtimeOn(scheduler, given.seed);
    const runtime: CountingRuntime = counting({
      ...onTime,
      after: (ms) => onTime.after(ms).pipe(given.lateMs === 0 ? identity : delay(given.lateMs, scheduler)),
    });
    const log = (what: string): void => void seen.push(`${runtime.now()} ${what}`);
    const { breaker, call, takesSignals = false } = way(given, runtime);
    const first = new Subscription();
    breaker?.type$.subscribe((type) => {
      log(`breaker ${type}`);
      if (type === given.canceledBy) first.unsubscribe();
    });
    let attempts = 0;
    const work: Work = (signal) => {
      const attempt = attempts++;
      log(`attempt ${attempt} starts`);
      signal?.addEventListener('abort', () => {
        log(`attempt ${attempt} is aborted`);
        if (given.canceledBy === 'abort') first.unsubscribe();
      });
      return working(given.attempts[attempt % given.attempts.length] as Behaviour, String(attempt), { runtime, log });
    };
    given.calls.forEach(({ atMs, cancelMs, by, enough }, index) => {
      const begin = (): void => {
        const subscription = index === 0 ? first : new Subscription();
        const canceled$ = cancelMs === undefined ? NEVER : cancelMs === 0 ? of(0) : runtime.after(cancelMs);
        const bySignal = takesSignals && by === 'signal';
        subscription.add(
          call(work, bySignal ? canceled$ : NEVER)
            .pipe(enough === undefined ? identity : take(enough))
            .subscribe({
              next: (value) => log(`call ${index} has ${String(value)}`),
              error: (error: unknown) => log(`call ${index} fails with ${nameOf(error)}`),
              complete: () => log(`call ${index} ends`),
            }),
        );
        if (!bySignal) canceled$.subscribe(() => subscription.unsubscribe());
      };
      if (atMs === 0) begin();
      else runtime.after(atMs).subscribe(begin);
    });
    flush();
    seen.push(`${runtime.timers} timers left, breaker ${breaker?.state()}, next die ${runtime.random()}`);
  });
  return seen;
};
