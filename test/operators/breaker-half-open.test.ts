import { describe, expect, it } from 'vitest';
import { ToolExecutionError } from '../../src/contract/tool-error.ts';
import { fail, permit, rejects, succeed, transient } from '../support.ts';
import { halfOpen, make, opened } from './made-breakers.ts';

describe('R-3.4 cooldown', () => {
  it('R-3.4 SI-T 3.2 open until 30 s have passed, half-open at that instant', () => {
    const { breaker, clock } = opened({ cooldownMs: 30_000 });
    clock.pass(15_000);
    expect(breaker.state).toMatchObject({ type: 'open', retryAfterMs: 15_000 });
    expect(breaker.admit()).toStrictEqual({ admitted: false, retryAfterMs: 15_000 });
    clock.pass(14_999);
    expect(breaker.state).toMatchObject({ type: 'open', retryAfterMs: 1 });
    clock.pass(1);
    expect(breaker.state.type).toBe('half_open');
    expect(breaker.state).not.toHaveProperty('retryAfterMs');
    expect(clock.runtime.started).toBe(0);
  });

  it('R-3.4 rejections do not prolong it', () => {
    const { breaker, clock } = opened();
    for (let i = 0; i < 9; i++) {
      clock.pass(100);
      expect(rejects(breaker)).toBe(true);
    }
    clock.pass(100);
    expect(breaker.state.type).toBe('half_open');
  });

  it('R-3.4 the wall clock set back or forward an hour changes nothing', () => {
    const { breaker, clock } = opened();
    clock.jumpWall(-3_600_000);
    clock.pass(999);
    expect(breaker.state.type).toBe('open');
    clock.jumpWall(7_200_000);
    expect(breaker.state.type).toBe('open');
    clock.pass(1);
    expect(breaker.state.type).toBe('half_open');
  });

  it('R-2.4 a Retry-After is a floor under the cooldown, and never shortens it', () => {
    for (const [hintMs, untilMs] of [
      [5_000, 5_000],
      [10, 1_000],
      [-1, 1_000],
      [Number.NaN, 1_000],
    ] as const) {
      const { breaker } = make();
      permit(breaker).failure(
        new ToolExecutionError('execution_error', 'slow down', { status: 429, retryAfterMs: hintMs }),
      );
      expect(breaker.state).toMatchObject({ type: 'open', retryAfterMs: untilMs });
    }
  });

  it('R-2.4 a Retry-After date is read by the clock of the runtime', () => {
    const { breaker } = make();
    const headers = new Headers({ 'Retry-After': 'Thu, 01 Jan 2026 00:00:30 GMT' });
    permit(breaker).failure(Object.assign(new Error('slow down'), { status: 429, headers }));
    expect(breaker.state).toMatchObject({ type: 'open', retryAfterMs: 30_000 });
  });

  it('R-2.4 a bad probe’s Retry-After is a floor under the next cooldown', () => {
    const { breaker } = halfOpen();
    permit(breaker).failure(
      new ToolExecutionError('execution_error', 'slow down', { status: 429, retryAfterMs: 5_000 }),
    );
    expect(breaker.state).toMatchObject({ type: 'open', retryAfterMs: 5_000 });
  });

  it('R-3.11 the cooldown grows with each bad probe up to its cap, and is itself again once closed', () => {
    const { breaker, clock } = opened({ cooldownMultiplier: 3, cooldownMaxMs: 5_000, successThreshold: 1 });
    for (const cooldownMs of [1_000, 3_000, 5_000, 5_000]) {
      expect(breaker.state).toMatchObject({ type: 'open', retryAfterMs: cooldownMs });
      clock.pass(cooldownMs);
      fail(breaker);
    }
    clock.pass(5_000);
    succeed(breaker);
    expect(breaker.state.type).toBe('closed');
    fail(breaker);
    expect(breaker.state).toMatchObject({ type: 'open', retryAfterMs: 1_000 });
  });
});

describe('R-3.5 probes', () => {
  it('R-3.5 one at a time; who comes meanwhile is rejected at once', () => {
    const { breaker } = halfOpen();
    const probe = permit(breaker);
    expect(breaker.admit()).toMatchObject({ admitted: false });
    probe.success();
    expect(breaker.state.type).toBe('half_open');
    expect(rejects(breaker)).toBe(false);
  });

  it('R-3.5 two good probes in a row close it, and nothing of before is remembered', () => {
    const { breaker } = halfOpen();
    succeed(breaker);
    expect(breaker.state).toMatchObject({ type: 'half_open', consecutiveFailures: 1 });
    succeed(breaker);
    expect(breaker.state).toStrictEqual({ type: 'closed', consecutiveFailures: 0, measured: 0, failures: 0 });
  });

  it('R-3.5 SI-T 3.3 with a successThreshold of 1 one good probe closes it', () => {
    const { breaker } = halfOpen({ successThreshold: 1 });
    succeed(breaker);
    expect(breaker.state.type).toBe('closed');
  });

  it('R-3.5 one bad probe reopens it and restarts the cooldown, good ones before it or not', () => {
    const { breaker, clock } = halfOpen({ successThreshold: 3 });
    succeed(breaker, 2);
    clock.pass(500);
    fail(breaker);
    expect(breaker.state).toMatchObject({ type: 'open', retryAfterMs: 1_000 });
    clock.pass(1_000);
    succeed(breaker, 2);
    expect(breaker.state.type).toBe('half_open');
    succeed(breaker);
    expect(breaker.state.type).toBe('closed');
  });

  it('R-3.5 as many at a time as there are probes', () => {
    const { breaker } = halfOpen({ probes: 3, successThreshold: 4 });
    const probes = [permit(breaker), permit(breaker), permit(breaker)];
    expect(rejects(breaker)).toBe(true);
    probes[1]?.success();
    expect(rejects(breaker)).toBe(false);
    permit(breaker);
    expect(rejects(breaker)).toBe(true);
  });

  it('R-3.5 of two probes at a time the bad one reopens it, and the good one changes nothing any more', () => {
    const { breaker } = halfOpen({ probes: 2, successThreshold: 1 });
    const [bad, good] = [permit(breaker), permit(breaker)];
    bad.failure(transient);
    good.success();
    expect(breaker.state.type).toBe('open');
  });

  it('R-3.5 a hundred callers in the instant of the cooldown: one is admitted', () => {
    const { breaker } = halfOpen();
    const admitted = Array.from({ length: 100 }, () => breaker.admit()).filter((admission) => admission.admitted);
    expect(admitted).toHaveLength(1);
  });

  it('R-3.6 a probe that was given up gives back its place and says nothing', () => {
    for (const verb of ['release', 'ignore'] as const) {
      const { breaker } = halfOpen();
      succeed(breaker);
      permit(breaker)[verb]();
      expect(breaker.state.type).toBe('half_open');
      succeed(breaker);
      expect(breaker.state.type).toBe('closed');
    }
  });
});

describe('R-3.5 half-open cannot wedge', () => {
  it('R-3.5 probes still out at the deadline are revoked, and it is open again', () => {
    const { breaker, clock } = halfOpen({ halfOpenTimeoutMs: 5_000 });
    const lost = permit(breaker);
    clock.pass(4_999);
    expect(breaker.state.type).toBe('half_open');
    expect(breaker.admit()).toStrictEqual({ admitted: false, retryAfterMs: 1 });
    clock.pass(1);
    expect(breaker.state).toMatchObject({ type: 'open', retryAfterMs: 1_000 });
    lost.success();
    expect(breaker.state.type).toBe('open');
    clock.pass(1_000);
    expect(breaker.state.type).toBe('half_open');
    // The revoked probe holds no place, and its end gave none back twice.
    const next = permit(breaker);
    expect(rejects(breaker)).toBe(true);
    next.success();
    succeed(breaker);
    expect(breaker.state.type).toBe('closed');
  });

  it('R-3.5 the deadline is counted from the last admission', () => {
    const { breaker, clock } = halfOpen({ halfOpenTimeoutMs: 5_000, probes: 2 });
    permit(breaker);
    clock.pass(4_000);
    permit(breaker);
    clock.pass(4_999);
    expect(breaker.state.type).toBe('half_open');
    clock.pass(1);
    expect(breaker.state.type).toBe('open');
  });

  it.each([
    [1_000, 60_000],
    [90_000, 90_000],
  ])('R-3.5 its default for a cooldown of %i ms is %i ms', (cooldownMs, timeoutMs) => {
    const { breaker, clock } = opened({ cooldownMs });
    clock.pass(cooldownMs);
    permit(breaker);
    clock.pass(timeoutMs - 1);
    expect(breaker.state.type).toBe('half_open');
    clock.pass(1);
    expect(breaker.state.type).toBe('open');
  });

  it('R-3.5 left alone for a week it is at its place, and the next caller is admitted', () => {
    const { breaker, clock } = halfOpen();
    permit(breaker);
    clock.pass(7 * 24 * 3_600_000);
    expect(breaker.state.type).toBe('half_open');
    succeed(breaker, 2);
    expect(breaker.state.type).toBe('closed');
  });
});
