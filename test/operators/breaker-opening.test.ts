import { describe, expect, it } from 'vitest';
import type { BreakerOptions } from '../../src/contract/policy.ts';
import { createBreaker, type Breaker } from '../../src/operators/breaker/breaker.ts';
import { fail, handClock, permit, rejects, succeed, type HandClock } from '../support.ts';

const make = (options: BreakerOptions = {}): { readonly breaker: Breaker; readonly clock: HandClock } => {
  const clock = handClock();
  return { breaker: createBreaker(options, clock.runtime), clock };
};

/** The rate rule alone. */
const rateOnly: BreakerOptions = { failureThreshold: Infinity };
/** The rule of consecutive failures alone. */
const rowOnly: BreakerOptions = { failureRate: Infinity };

describe('R-3.2 consecutive failures', () => {
  it('R-3.2 SI-T 3.1 the fifth consecutive failure opens, and the sixth call is rejected', () => {
    const { breaker } = make();
    for (const failures of [1, 2, 3, 4]) {
      fail(breaker);
      expect(breaker.state).toStrictEqual({
        type: 'closed',
        consecutiveFailures: failures,
        measured: failures,
        failures,
      });
    }
    fail(breaker);
    expect(breaker.state).toStrictEqual({
      type: 'open',
      consecutiveFailures: 5,
      measured: 5,
      failures: 5,
      retryAfterMs: 30_000,
    });
    expect(breaker.admit()).toStrictEqual({ admitted: false, retryAfterMs: 30_000 });
  });

  it('R-3.2 a success between starts the count anew', () => {
    const { breaker } = make(rowOnly);
    fail(breaker, 4);
    succeed(breaker);
    expect(breaker.state.consecutiveFailures).toBe(0);
    fail(breaker, 4);
    expect(breaker.state.type).toBe('closed');
    fail(breaker);
    expect(breaker.state.type).toBe('open');
  });

  it('R-3.2 failures of exactly 120 s ago count, older ones do not', () => {
    for (const [pauseMs, type] of [
      [120_000, 'open'],
      [120_001, 'closed'],
    ] as const) {
      const { breaker, clock } = make();
      fail(breaker);
      clock.pass(pauseMs);
      fail(breaker, 4);
      expect(breaker.state.type).toBe(type);
    }
  });

  it('R-3.2 the count shown forgets what is too old, without traffic', () => {
    const { breaker, clock } = make();
    fail(breaker, 4);
    clock.pass(120_001);
    expect(breaker.state).toStrictEqual({ type: 'closed', consecutiveFailures: 0, measured: 0, failures: 0 });
  });

  it('R-3.2 a threshold of one opens at once; Infinity never does', () => {
    const one = make({ failureThreshold: 1 }).breaker;
    fail(one);
    expect(one.state.type).toBe('open');
    const never = make({ failureThreshold: Infinity, failureRate: Infinity }).breaker;
    fail(never, 300);
    expect(never.state.type).toBe('closed');
  });

  it('R-3.2 the order of outcomes counts, not that of admissions', () => {
    const { breaker } = make({ ...rowOnly, failureThreshold: 2 });
    const [slow, quick, last] = [permit(breaker), permit(breaker), permit(breaker)];
    quick.failure();
    slow.success();
    last.failure();
    expect(breaker.state).toMatchObject({ type: 'closed', consecutiveFailures: 1 });
  });
});

describe('R-3.2 failure rate', () => {
  it('R-3.2 exactly half of ten opens; it needs ten', () => {
    const { breaker } = make(rateOnly);
    for (let i = 0; i < 4; i++) {
      fail(breaker);
      succeed(breaker);
    }
    succeed(breaker);
    expect(breaker.state).toMatchObject({ type: 'closed', measured: 9, failures: 4 });
    fail(breaker);
    expect(breaker.state).toMatchObject({ type: 'open', measured: 10, failures: 5 });
  });

  it('R-3.2 nine failures of nine are too few for the rate', () => {
    const { breaker } = make(rateOnly);
    fail(breaker, 9);
    expect(breaker.state.type).toBe('closed');
    fail(breaker);
    expect(breaker.state.type).toBe('open');
  });

  it('R-3.2 just under half stays closed', () => {
    const { breaker } = make(rateOnly);
    succeed(breaker, 6);
    fail(breaker, 5);
    // 5 of 11
    expect(breaker.state.type).toBe('closed');
    fail(breaker);
    // 6 of 12
    expect(breaker.state.type).toBe('open');
  });

  it('R-3.2 only a failure opens it: a success that completes the ten does not', () => {
    const { breaker } = make(rateOnly);
    fail(breaker, 9);
    succeed(breaker);
    expect(breaker.state).toMatchObject({ type: 'closed', measured: 10, failures: 9 });
    fail(breaker);
    expect(breaker.state.type).toBe('open');
  });

  it('R-3.2 only a failure opens it: a success that pushes a success out of the window does not', () => {
    const { breaker } = make({ ...rateOnly, windowSize: 4, minimumCalls: 4 });
    succeed(breaker, 3);
    fail(breaker);
    succeed(breaker);
    expect(breaker.state).toMatchObject({ type: 'closed', measured: 4, failures: 1 });
  });

  it('R-3.2 the window holds the last twenty outcomes', () => {
    const { breaker } = make(rateOnly);
    succeed(breaker, 30);
    expect(breaker.state).toMatchObject({ measured: 20, failures: 0 });
    fail(breaker, 9);
    expect(breaker.state).toMatchObject({ type: 'closed', measured: 20, failures: 9 });
    fail(breaker);
    expect(breaker.state).toMatchObject({ type: 'open', measured: 20, failures: 10 });
  });

  it('R-3.2 a failure that slides out of the window is forgotten', () => {
    const { breaker } = make({ ...rateOnly, windowSize: 4, minimumCalls: 4, failureRate: 0.75 });
    fail(breaker, 2);
    succeed(breaker, 2);
    succeed(breaker);
    fail(breaker);
    expect(breaker.state).toMatchObject({ type: 'closed', measured: 4, failures: 1 });
  });

  it('R-3.2 outcomes of exactly 120 s ago count for the rate, older ones do not', () => {
    for (const [pauseMs, type] of [
      [120_000, 'open'],
      [120_001, 'closed'],
    ] as const) {
      const { breaker, clock } = make(rateOnly);
      fail(breaker, 9);
      clock.pass(pauseMs);
      fail(breaker);
      expect(breaker.state.type).toBe(type);
    }
  });

  it('R-3.2 what is exactly 120 s old stays when older ones go', () => {
    const { breaker, clock } = make(rateOnly);
    fail(breaker);
    clock.pass(1);
    fail(breaker);
    clock.pass(120_000);
    expect(breaker.state).toMatchObject({ measured: 1, failures: 1, consecutiveFailures: 1 });
  });

  it('R-3.2 each outcome expires by itself', () => {
    const { breaker, clock } = make(rateOnly);
    for (let i = 0; i < 9; i++) {
      fail(breaker);
      clock.pass(10_000);
    }
    expect(breaker.state).toMatchObject({ measured: 9, failures: 9 });
    clock.pass(30_001);
    expect(breaker.state).toMatchObject({ measured: 8, failures: 8 });
    clock.pass(10_000);
    expect(breaker.state).toMatchObject({ measured: 7, failures: 7 });
  });

  it('R-3.2 minimumCalls: by default the lesser of 10 and windowSize', () => {
    const { breaker } = make({ ...rateOnly, windowSize: 3 });
    fail(breaker, 2);
    expect(breaker.state.type).toBe('closed');
    fail(breaker);
    expect(breaker.state.type).toBe('open');
  });

  it('R-3.2 either rule is enough', () => {
    const { breaker } = make({ failureThreshold: 5 });
    succeed(breaker, 20);
    fail(breaker, 5);
    // 5 of 20 is no rate, but five in a row
    expect(breaker.state.type).toBe('open');
  });
});

describe('R-3.3 neutral outcomes', () => {
  it('R-3.3 ignored and released calls neither count nor interrupt a row', () => {
    const { breaker } = make();
    fail(breaker, 4);
    permit(breaker).ignore();
    permit(breaker).release();
    expect(breaker.state).toStrictEqual({ type: 'closed', consecutiveFailures: 4, measured: 4, failures: 4 });
    fail(breaker);
    expect(breaker.state.type).toBe('open');
  });

  it('R-3.3 a hundred cancelled calls do not open it', () => {
    const { breaker } = make({ failureThreshold: 1 });
    for (let i = 0; i < 100; i++) permit(breaker).release();
    expect(breaker.state).toStrictEqual({ type: 'closed', consecutiveFailures: 0, measured: 0, failures: 0 });
  });
});

describe('R-3.9 slow calls', () => {
  it('R-3.9 a success over slowCallMs counts as a failure for the rate, and can open', () => {
    const { breaker, clock } = make({ slowCallMs: 100, windowSize: 2, minimumCalls: 2, failureRate: 1 });
    for (const state of [
      { type: 'closed', failures: 1 },
      { type: 'open', failures: 2 },
    ]) {
      const slow = permit(breaker);
      clock.pass(101);
      slow.success();
      expect(breaker.state).toMatchObject({ ...state, consecutiveFailures: 0 });
    }
  });

  it('R-3.9 a success of exactly slowCallMs is not over it', () => {
    const { breaker, clock } = make({ slowCallMs: 100 });
    const call = permit(breaker);
    clock.pass(100);
    call.success();
    expect(breaker.state).toMatchObject({ measured: 1, failures: 0 });
  });

  it('R-3.9 slow successes never add to the row, they end it', () => {
    const { breaker, clock } = make({ slowCallMs: 100, ...rowOnly });
    fail(breaker, 4);
    const slow = permit(breaker);
    clock.pass(101);
    slow.success();
    expect(breaker.state.consecutiveFailures).toBe(0);
  });

  it('R-3.9 off by default', () => {
    const { breaker, clock } = make();
    const slow = permit(breaker);
    clock.pass(100_000_000);
    slow.success();
    expect(breaker.state).toMatchObject({ measured: 1, failures: 0 });
  });
});

describe('R-2.9 options', () => {
  const wrong: ReadonlyArray<readonly [string, BreakerOptions | object]> = [
    ['failureThreshold', { failureThreshold: 0 }],
    ['failureThreshold', { failureThreshold: 1.5 }],
    ['failureThreshold', { failureThreshold: Number.NaN }],
    ['failureRate', { failureRate: 0 }],
    ['failureRate', { failureRate: 1.01 }],
    ['failureRate', { failureRate: 50 }],
    ['failureRate', { failureRate: -Infinity }],
    ['windowSize', { windowSize: 0 }],
    ['windowSize', { windowSize: Infinity }],
    ['windowMs', { windowMs: 0 }],
    ['windowMs', { windowMs: Infinity }],
    ['minimumCalls', { minimumCalls: 21 }],
    ['minimumCalls', { windowSize: 5, minimumCalls: 6 }],
    ['minimumCalls', { minimumCalls: 0 }],
    ['cooldownMs', { cooldownMs: -1 }],
    ['cooldownMs', { cooldownMs: Infinity }],
    ['cooldownMultiplier', { cooldownMultiplier: 0.5 }],
    ['cooldownMaxMs', { cooldownMaxMs: -1 }],
    ['probes', { probes: 0 }],
    ['probes', { probes: 1.5 }],
    ['successThreshold', { successThreshold: 0 }],
    ['halfOpenTimeoutMs', { halfOpenTimeoutMs: 0 }],
    ['halfOpenTimeoutMs', { halfOpenTimeoutMs: Infinity }],
    ['rampMs', { rampMs: -1 }],
    ['slowCallMs', { slowCallMs: -1 }],
    ['initialState', { initialState: 'open' }],
    ['coolDownMs', { coolDownMs: 1 }],
  ];
  it.each(wrong)('R-2.9 a wrong %s is refused when the breaker is made: %o', (option, options) => {
    expect(() => createBreaker(options)).toThrow(RangeError);
    expect(() => createBreaker(options)).toThrow(option);
  });

  it('R-2.9 both ends of each range are taken', () => {
    expect(() =>
      createBreaker({
        failureThreshold: Infinity,
        failureRate: Infinity,
        slowCallMs: Infinity,
        windowMs: Number.MAX_SAFE_INTEGER,
      }),
    ).not.toThrow();
    expect(() =>
      createBreaker({
        failureThreshold: 1,
        failureRate: 1,
        windowSize: 1,
        minimumCalls: 1,
        cooldownMs: Number.MAX_SAFE_INTEGER,
      }),
    ).not.toThrow();
  });

  it('R-3.8 a rejection costs nothing: a thousand take less than 10 ms each', () => {
    const { breaker } = make();
    fail(breaker, 5);
    const startedMs = performance.now();
    for (let i = 0; i < 1_000; i++) expect(rejects(breaker)).toBe(true);
    expect((performance.now() - startedMs) / 1_000).toBeLessThan(10);
  });
});
