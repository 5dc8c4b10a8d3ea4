import { expect, it } from 'vitest';
import type { TraceEvent } from '../../../src/contract/event.ts';
import { replayTrace } from '../../../src/simulate/replay/replay.ts';
import { liveThrough, type Policies, type World } from './twice.ts';

const WORLDS = 200;
/** Waits that are asked about, where 100 ms was recorded. */
const WAITS_MS = [50, 80, 120, 150, 200] as const;

/** A storm: at one instant a tool does what it likes, whatever it did at another. Two of three have an outage. */
const worldOf = (seed: number): World => ({
  seed,
  calls: 160,
  everyMs: seed % 2 === 0 ? 40 : 20,
  chance: true,
  ...(seed % 3 === 0 ? {} : { outage: [600, 1_000 + 400 * (seed % 4)] }),
});

const policiesOf = (seed: number, initialDelayMs: number): Policies => ({
  tool: {
    timeoutMs: 1_000,
    retry: { maxAttempts: 3, maxTotalTimeMs: 10_000, initialDelayMs },
    breaker: seed % 4 < 2 ? false : { cooldownMs: 300 },
  },
  ...(seed % 5 === 0 ? { retryBudget: { ratio: 0.2, minPerSecond: 2 } } : {}),
});

const truthOf = (events: readonly TraceEvent[]): { readonly successes: number; readonly attempts: number } => ({
  successes: events.filter(
    (event) => event.source === 'call' && event.type === 'settled' && event.result.status === 'success',
  ).length,
  attempts: events.filter(({ type }) => type === 'attempt_started').length,
});

it(
  'RPL-3 another wait is told of, and the bounds hold what comes of it in at least 95 % of 200 worlds',
  { timeout: 900_000 },
  () => {
    let [missed, untold] = [0, 0];
    for (let seed = 1; seed <= WORLDS; seed++) {
      const [world, waitMs] = [worldOf(seed), WAITS_MS[seed % WAITS_MS.length] ?? 0];
      const [found] = replayTrace(liveThrough(world, policiesOf(seed, 100)), {
        set: [`pay.retry.initialDelayMs=${waitMs}`],
      }).candidates;
      const truth = truthOf(liveThrough(world, policiesOf(seed, waitMs)));
      if (found === undefined) throw new Error('it was not replayed');
      const { good, bad } = found.bounds;
      const holds =
        bad.successes <= truth.successes &&
        truth.successes <= good.successes &&
        good.attempts <= truth.attempts &&
        truth.attempts <= bad.attempts;
      if (!holds) missed++;
      if (found.verdict.code === 'cannot_tell') untold++;
      else expect(found.unknown.shifted).toBeGreaterThan(0);
    }
    expect(missed).toBeLessThanOrEqual(WORLDS * 0.05);
    expect(untold).toBeLessThan(WORLDS / 2);
  },
);

it('RPL-4 where too few others tell how the tool was, another wait is no more known than before', () => {
  const world: World = { seed: 3, calls: 60, everyMs: 4_000, chance: true };
  const [found] = replayTrace(liveThrough(world, policiesOf(0, 100)), {
    set: ['pay.retry.initialDelayMs=150'],
  }).candidates;
  expect(found?.unknown.moved).toBeGreaterThan(0);
  expect(found?.unknown.shifted).toBe(0);
  expect(found?.verdict.code).toBe('cannot_tell');
});

it('RPL-3 an attempt that now falls into an outage fails as those did that were made in it', () => {
  const world: World = { seed: 5, calls: 300, everyMs: 20, outage: [2_000, 4_000] };
  const late: Policies = {
    retryBudget: false,
    tool: {
      retry: { strategy: 'constant', initialDelayMs: 2_500, maxDelayMs: 2_500, maxTotalTimeMs: 30_000 },
      breaker: false,
    },
  };
  const set = ['pay.retry.initialDelayMs=200', 'pay.retry.maxDelayMs=200'];
  const [sooner] = replayTrace(liveThrough(world, late), { set }).candidates;
  // They fail, and are made once more.
  expect(sooner?.bounds.fitted.attempts).toBeGreaterThan((sooner?.recorded.attempts ?? 0) + 15);
  expect(sooner?.verdict.code).not.toBe('safe');
});
