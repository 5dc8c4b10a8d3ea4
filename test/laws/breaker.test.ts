import fc from 'fast-check';
import { Subscription, scan } from 'rxjs';
import { describe, expect, it } from 'vitest';
import type { BreakerOptions } from '../../src/contract/policy.ts';
import { ToolExecutionError } from '../../src/contract/tool-error.ts';
import { createBreaker, type Admission, type Breaker, type BreakerState } from 'spillway';
import { breakerSettings } from '../../src/policy/breaker/settings.ts';
import { expireOutcomes } from '../../src/policy/breaker/window.ts';
import { initialBreaker, reduceBreaker, type BreakerMemory } from '../../src/policy/breaker/reducer.ts';
import { handClock, transient, type HandClock } from '../support.ts';
import { NaiveBreaker, type NaivePermit } from './naive-breaker.ts';

type Permit = Extract<Admission, { admitted: true }>;
type Command =
  | { readonly do: 'pass'; readonly ms: number }
  | { readonly do: 'admit' | 'forceOpen' | 'reset' | 'disable' | 'look' }
  | {
      readonly do: 'end';
      readonly which: number;
      readonly verb: 'success' | 'failure' | 'answered' | 'ignore' | 'release';
      readonly retryAfterMs: number | undefined;
    };

const OUTCOMES = {
  success: 'success',
  failure: 'failure',
  answered: 'answered',
  ignore: 'ignored',
  release: 'ignored',
} as const;

const options: fc.Arbitrary<BreakerOptions> = fc
  .record({
    failureThreshold: fc.constantFrom(1, 2, 3, Infinity),
    failureRate: fc.constantFrom(0.3, 0.5, 1, Infinity),
    windowSize: fc.integer({ min: 1, max: 6 }),
    minimumCalls: fc.integer({ min: 1, max: 6 }),
    windowMs: fc.constantFrom(1, 10, 50, 1_000),
    cooldownMs: fc.constantFrom(0, 1, 10, 30),
    cooldownMultiplier: fc.constantFrom(1, 2),
    cooldownMaxMs: fc.constantFrom(30, 45, 300),
    probes: fc.integer({ min: 1, max: 3 }),
    successThreshold: fc.integer({ min: 1, max: 3 }),
    halfOpenTimeoutMs: fc.constantFrom(1, 15, 60),
    slowCallMs: fc.constantFrom(0, 5, Infinity),
    initialState: fc.constantFrom(
      'closed' as const,
      'closed' as const,
      'closed' as const,
      'forced_open' as const,
      'disabled' as const,
    ),
  })
  .map((some) => Object.assign(some, { minimumCalls: Math.min(some.minimumCalls, some.windowSize) }));

const command: fc.Arbitrary<Command> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant('pass' as const),
      ms: fc.oneof(fc.integer({ min: 0, max: 15 }), fc.constantFrom(30, 60, 1_001)),
    }),
  },
  { weight: 7, arbitrary: fc.record({ do: fc.constant('admit' as const) }) },
  {
    weight: 7,
    arbitrary: fc.record({
      do: fc.constant('end' as const),
      which: fc.nat({ max: 12 }),
      verb: fc.constantFrom(
        'success' as const,
        'failure' as const,
        'failure' as const,
        'failure' as const,
        'answered' as const,
        'ignore' as const,
        'release' as const,
      ),
      retryAfterMs: fc.constantFrom(undefined, undefined, undefined, 0, 20, 100, -1),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constantFrom(
        'forceOpen' as const,
        'reset' as const,
        'reset' as const,
        'disable' as const,
        'look' as const,
      ),
    }),
  },
);

// By itself fast-check makes short arrays.
const script = fc.array(command, { minLength: 1, maxLength: 80, size: 'max' });
const failureOf = (retryAfterMs: number | undefined): ToolExecutionError =>
  retryAfterMs === undefined
    ? transient
    : new ToolExecutionError('execution_error', 'slow down', { status: 429, retryAfterMs });

interface World {
  readonly clock: HandClock;
  readonly breaker: Breaker;
  /** The permits given, the newest last; they stay after their end, so that verbs are called twice. */
  readonly permits: Array<{ readonly permit: Permit; readonly probe: boolean; ended: boolean }>;
}

const act = ({ clock, breaker, permits }: World, step: Command): Admission | undefined => {
  switch (step.do) {
    case 'pass':
      clock.pass(step.ms);
      return undefined;
    case 'admit': {
      const probe = breaker.state.type === 'half_open';
      const admission = breaker.admit();
      if (admission.admitted) permits.push({ permit: admission, probe, ended: false });
      return admission;
    }
    case 'end': {
      const held = permits.at(-1 - step.which);
      if (held === undefined) return undefined;
      held.ended = true;
      if (step.verb === 'failure') held.permit.failure(failureOf(step.retryAfterMs));
      else held.permit[step.verb]();
      return undefined;
    }
    case 'look':
      return void breaker.state;
    case 'forceOpen':
    case 'reset':
    case 'disable':
      breaker[step.do]();
      return undefined;
  }
};

const world = (given: BreakerOptions): World => {
  const clock = handClock();
  return { clock, breaker: createBreaker(given, clock.runtime), permits: [] };
};

describe('R-3 the breaker is the naive one', () => {
  it('BRK-3 after every command, in state, counts, admissions and hints', () => {
    fc.assert(
      fc.property(options, script, (given, steps) => {
        const real = world(given);
        const naive = new NaiveBreaker(breakerSettings(given));
        const naives: Array<NaivePermit | undefined> = [];
        const now = (): number => real.clock.runtime.now();
        for (const step of steps) {
          const admission = act(real, step);
          naive.at(now());
          if (step.do === 'admit') {
            const permit = naive.admit(now());
            expect(admission?.admitted).toBe(permit !== undefined);
            if (permit !== undefined) naives.push(permit);
          } else if (step.do === 'end') {
            const index = naives.length - 1 - step.which;
            const permit = naives[index];
            if (permit !== undefined)
              naive.end(
                permit,
                OUTCOMES[step.verb],
                now(),
                step.verb === 'failure' && (step.retryAfterMs ?? 0) > 0 ? step.retryAfterMs : 0,
              );
            // A permit ends once: the naive one forgets it then.
            if (index >= 0) naives[index] = undefined;
          } else if (step.do === 'forceOpen' || step.do === 'reset' || step.do === 'disable') naive[step.do](now());
          naive.at(now());
          const retryAfterMs = naive.retryAfterMs(now());
          const { consecutiveFailures, ...counts } = naive.counts(now());
          const rowMax = given.failureThreshold === Infinity ? 100 : (given.failureThreshold ?? 5);
          expect(real.breaker.state).toStrictEqual({
            type: naive.type,
            consecutiveFailures: Math.min(consecutiveFailures, rowMax),
            ...counts,
            ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
          });
        }
      }),
      { numRuns: 3_000 },
    );
  });
});

const seen = (memory: BreakerMemory, given: BreakerOptions, atMs: number): Omit<BreakerState, 'retryAfterMs'> => {
  const settings = breakerSettings(given);
  const ticked = reduceBreaker(memory, { type: 'tick', atMs }, settings);
  const window = ticked.type === 'closed' ? expireOutcomes(ticked.window, settings, atMs) : ticked.window;
  return {
    type: ticked.type,
    consecutiveFailures: window.streakMs.length,
    measured: window.outcomes.length,
    failures: window.failures,
  };
};

describe('R-3.1 invariants', () => {
  it('BRK-6 recorded inputs, through scan(reduceBreaker) and through JSON, give the live states, ramps included', () => {
    fc.assert(
      fc.property(
        options,
        fc.constantFrom(0, 20),
        fc.array(fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }), { minLength: 80, maxLength: 80 }),
        script,
        (some, rampMs, draws, steps) => {
          const given = { ...some, rampMs };
          const settings = breakerSettings(given);
          const { clock, breaker, permits } = world(given);
          let replayed = initialBreaker(settings);
          const recorder = new Subscription();
          recorder.add(
            breaker.inputs$
              .pipe(
                scan(
                  (memory, input) => reduceBreaker(memory, JSON.parse(JSON.stringify(input)) as typeof input, settings),
                  replayed,
                ),
              )
              .subscribe((memory) => (replayed = memory)),
          );
          if (rampMs > 0) recorder.add(breaker.state$.subscribe());
          for (const [index, step] of steps.entries()) {
            clock.draw(draws[index] ?? 0);
            act({ clock, breaker, permits }, step);
            const { retryAfterMs: _, ...live } = breaker.state;
            expect(seen(replayed, given, clock.runtime.now())).toStrictEqual(live);
          }
          recorder.unsubscribe();
          expect(clock.runtime.timers).toBe(0);
        },
      ),
      { numRuns: 1_000 },
    );
  });

  it('BRK-1 and BRK-2 at most N probes run at once, earlier ones included, and nothing starts while open', () => {
    fc.assert(
      fc.property(options, script, (given, steps) => {
        // Half-open's own deadline revokes probes; without it they are all counted.
        const { probes = 1 } = given;
        const it = world({ ...given, halfOpenTimeoutMs: 1e9 });
        for (const step of steps) {
          const before = it.breaker.state.type;
          const admission = act(it, step);
          if (step.do === 'admit' && (before === 'open' || before === 'forced_open'))
            expect(admission?.admitted).toBe(false);
          if (step.do === 'admit' && (before === 'closed' || before === 'disabled'))
            expect(admission?.admitted).toBe(true);
          const running = it.permits.filter(({ probe, ended }) => probe && !ended).length;
          expect(running).toBeLessThanOrEqual(probes);
        }
      }),
      { numRuns: 1_000 },
    );
  });

  it('BRK-4 a permit’s second verb changes nothing at all', () => {
    fc.assert(
      fc.property(
        options,
        script,
        fc.nat({ max: 12 }),
        fc.constantFrom('success' as const, 'failure' as const, 'ignore' as const, 'release' as const),
        (given, steps, which, verb) => {
          const it = world(given);
          for (const step of steps) act(it, step);
          const held = it.permits.filter(({ ended }) => ended).at(-1 - which);
          const [before, inputs] = [it.breaker.state, [] as unknown[]];
          it.breaker.inputs$.subscribe((input) => inputs.push(input));
          held?.permit[verb]();
          expect(it.breaker.state).toStrictEqual(before);
          expect(inputs).toStrictEqual([]);
        },
      ),
    );
  });

  it('BRK-5 whatever happened, with a healthy tool it closes within the cooldown and N + 1 calls', () => {
    fc.assert(
      fc.property(options, script, (given, steps) => {
        const it = world(given);
        for (const step of steps) act(it, step);
        if (it.breaker.state.type === 'forced_open' || it.breaker.state.type === 'disabled') return;
        // What still runs comes to an end, whatever it says.
        it.permits.forEach(({ permit }) => permit.failure(transient));
        it.clock.pass(it.breaker.state.retryAfterMs ?? 0);
        for (let call = 0; call < (given.successThreshold ?? 2); call++) {
          const admission = it.breaker.admit();
          expect(admission.admitted).toBe(true);
          if (admission.admitted) admission.success();
        }
        expect(it.breaker.state.type).toBe('closed');
      }),
      { numRuns: 1_000 },
    );
  });

  it('R-3.4 state$ shows every change of type that state goes through, and holds no timer afterwards', () => {
    fc.assert(
      fc.property(
        options.filter(({ cooldownMs }) => cooldownMs !== 0),
        script,
        (given, steps) => {
          const it = world(given);
          const shown: string[] = [];
          const watcher = it.breaker.state$.subscribe(({ type }) => shown.push(type));
          for (const step of steps) {
            act(it, step);
            expect(shown.at(-1)).toBe(it.breaker.state.type);
          }
          expect(shown.every((type, index) => type !== shown[index - 1])).toBe(true);
          watcher.unsubscribe();
          expect(it.clock.runtime.timers).toBe(0);
        },
      ),
      { numRuns: 500 },
    );
  });
});
