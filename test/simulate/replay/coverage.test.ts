import { describe, expect, it } from 'vitest';
import type { TraceEvent } from '../../../src/contract/event.ts';
import { replayTrace } from '../../../src/simulate/replay/replay.ts';
import type { Bound, WhatIf } from '../../../src/simulate/index.ts';
import { liveThrough, type Policies, type World } from './twice.ts';

const SEEDS = 30;

const RECORDED: Policies = {
  tool: { timeoutMs: 1_000, retry: { maxAttempts: 3, maxTotalTimeMs: 10_000 }, breaker: { cooldownMs: 300 } },
};
const RAMPING: Policies = { tool: { ...RECORDED.tool, breaker: { cooldownMs: 300, rampMs: 500 } } };
const UNGUARDED: Policies = { tool: { ...RECORDED.tool, breaker: false } };

const changed = ({ tool, ...rest }: Policies, { retry, breaker, ...policy }: Policies['tool']): Policies => ({
  ...rest,
  tool: {
    ...tool,
    ...policy,
    retry: { ...tool.retry, ...retry },
    breaker: breaker === false || tool.breaker === false ? false : { ...tool.breaker, ...breaker },
  },
});

type Kind = readonly [name: string, from: Policies, to: Policies['tool'], set: readonly string[]];
const SLOW = { initialDelayMs: 500, maxDelayMs: 4_000 };
const SLOWER = ['pay.retry.initialDelayMs=500', 'pay.retry.maxDelayMs=4000'];
const KINDS: readonly Kind[] = [
  ['more attempts', UNGUARDED, { retry: { maxAttempts: 5 } }, ['pay.retry.maxAttempts=5']],
  ['fewer attempts', UNGUARDED, { retry: { maxAttempts: 2 } }, ['pay.retry.maxAttempts=2']],
  ['no retry, under a breaker', RECORDED, { retry: { maxAttempts: 1 } }, ['pay.retry.maxAttempts=1']],
  ['a longer timeout', RECORDED, { timeoutMs: 3_000 }, ['pay.timeoutMs=3000']],
  ['a shorter timeout', UNGUARDED, { timeoutMs: 400 }, ['pay.timeoutMs=400']],
  ['longer waits', UNGUARDED, { retry: SLOW }, SLOWER],
  ['longer waits, under a breaker', RECORDED, { retry: SLOW }, SLOWER],
  ['shorter waits', RECORDED, { retry: { initialDelayMs: 5 } }, ['pay.retry.initialDelayMs=5']],
  [
    'a breaker that opens later',
    RECORDED,
    { breaker: { failureThreshold: 20, failureRate: Infinity } },
    ['pay.breaker.failureThreshold=20', 'pay.breaker.failureRate=off'],
  ],
  ['a breaker that opens sooner', RECORDED, { breaker: { failureThreshold: 2 } }, ['pay.breaker.failureThreshold=2']],
  ['a longer cooldown', RECORDED, { breaker: { cooldownMs: 3_000 } }, ['pay.breaker.cooldownMs=3000']],
  ['a shorter cooldown', RECORDED, { breaker: { cooldownMs: 100 } }, ['pay.breaker.cooldownMs=100']],
  ['no breaker', RECORDED, { breaker: false }, ['pay.breaker=off']],
  ['a breaker that lets calls in bit by bit', RECORDED, { breaker: { rampMs: 500 } }, ['pay.breaker.rampMs=500']],
  ['more attempts, under such a breaker', RAMPING, { retry: { maxAttempts: 5 } }, ['pay.retry.maxAttempts=5']],
  ['a shorter cooldown, before such a ramp', RAMPING, { breaker: { cooldownMs: 100 } }, ['pay.breaker.cooldownMs=100']],
];

const truthOf = (events: readonly TraceEvent[]): Pick<Bound, 'successes' | 'attempts'> => ({
  successes: events.filter(
    (event) => event.source === 'call' && event.type === 'settled' && event.result.status === 'success',
  ).length,
  attempts: events.filter(({ type }) => type === 'attempt_started').length,
});

/** What the bounds of a what-if leave out of what really came of it. */
const missed = ({ bounds: { good, bad, fitted } }: WhatIf, truth: ReturnType<typeof truthOf>): string[] =>
  (['successes', 'attempts'] as const).flatMap((of) => {
    const [low, high] = [Math.min(good[of], bad[of]), Math.max(good[of], bad[of])];
    const holds = low <= truth[of] && truth[of] <= high && low <= fitted[of] && fitted[of] <= high;
    return holds ? [] : [`${of} ${low} to ${high}, ${fitted[of]} expected, were ${truth[of]}`];
  });

describe('RPL-3 the bounds of a what-if hold what the other policy really does in the same world', () => {
  it.each(KINDS)('%s', (_, from, to, set) => {
    const wrong: string[] = [];
    const told = new Set<string>();
    for (let seed = 1; seed <= SEEDS; seed++) {
      const world: World = { seed, calls: 160, everyMs: 20, ...(seed % 3 === 0 ? {} : { outage: [600, 1_600] }) };
      const [found] = replayTrace(liveThrough(world, from), { set }).candidates;
      const truth = truthOf(liveThrough(world, changed(from, to)));
      if (found !== undefined) wrong.push(...missed(found, truth).map((what) => `seed ${seed}: ${what}`));
      told.add(found?.verdict.code ?? 'none');
    }
    expect(wrong).toEqual([]);
    expect(told).not.toContain('none');
  });

  it('under a budget for retries that another policy spends sooner', () => {
    const wrong: string[] = [];
    const retryBudget = { ratio: 0.1, minPerSecond: 1 };
    for (let seed = 1; seed <= SEEDS; seed++) {
      const world: World = { seed, calls: 160, everyMs: 20, outage: [600, 1_600] };
      const [found] = replayTrace(liveThrough(world, { ...UNGUARDED, retryBudget }), {
        set: ['pay.retry.maxAttempts=5'],
      }).candidates;
      const after = changed({ ...UNGUARDED, retryBudget }, { retry: { maxAttempts: 5 } });
      if (found !== undefined)
        wrong.push(...missed(found, truthOf(liveThrough(world, after))).map((what) => `seed ${seed}: ${what}`));
    }
    expect(wrong).toEqual([]);
  });

  it('a breaker that recovers as it did lets in whom it let in: nothing of that is unknown', () => {
    for (let seed = 1; seed <= SEEDS; seed++) {
      const events = liveThrough({ seed, calls: 160, everyMs: 20, outage: [600, 1_600] }, RAMPING);
      const [same] = replayTrace(events, { set: ['pay.breaker.rampMs=500'] }).candidates;
      expect(same).toMatchObject({ verdict: { code: 'safe' }, unknown: { calls: 0 }, flips: [] });
    }
  });

  it('is not bought by telling nothing: where nothing is unknown, the bounds are the truth', () => {
    const world: World = { seed: 4, calls: 400, everyMs: 20 };
    const [once] = replayTrace(liveThrough(world, UNGUARDED), { set: ['pay.retry.maxAttempts=2'] }).candidates;
    const truth = truthOf(liveThrough(world, changed(UNGUARDED, { retry: { maxAttempts: 2 } })));
    expect(once?.unknown.calls).toBe(0);
    expect(once?.bounds.bad).toMatchObject(truth);
    expect(once?.verdict.code).toBe('worse');
  });
});
