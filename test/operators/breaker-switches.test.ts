import { describe, expect, it } from 'vitest';
import type { BreakerOptions } from '../../src/contract/policy.ts';
import { createBreaker, type Breaker } from '../../src/operators/breaker/breaker.ts';
import { fail, handClock, permit, rejects, succeed, type HandClock } from '../support.ts';

const make = (options: BreakerOptions = {}): { readonly breaker: Breaker; readonly clock: HandClock } => {
  const clock = handClock();
  return { breaker: createBreaker({ failureThreshold: 1, cooldownMs: 1_000, ...options }, clock.runtime), clock };
};

describe('R-3.8 forceOpen, reset, disable', () => {
  it('R-3.8 forced open is sticky: no time and no outcome ends it, only reset', () => {
    const { breaker, clock } = make();
    const running = permit(breaker);
    breaker.forceOpen();
    running.success();
    clock.pass(7 * 24 * 3_600_000);
    expect(breaker.state.type).toBe('forced_open');
    const admission = breaker.admit();
    expect(admission.admitted).toBe(false);
    expect(admission).toHaveProperty('retryAfterMs', expect.any(Number));
    breaker.reset();
    expect(breaker.state).toStrictEqual({ type: 'closed', consecutiveFailures: 0, measured: 0, failures: 0 });
  });

  it('R-3.8 it can be forced open from every state', () => {
    for (const into of ['closed', 'open', 'half_open', 'disabled', 'forced_open'] as const) {
      const { breaker, clock } = make();
      if (into === 'open' || into === 'half_open') fail(breaker);
      if (into === 'half_open') clock.pass(1_000);
      if (into === 'disabled') breaker.disable();
      if (into === 'forced_open') breaker.forceOpen();
      expect(breaker.state.type).toBe(into);
      breaker.forceOpen();
      expect(breaker.state.type).toBe('forced_open');
      expect(rejects(breaker)).toBe(true);
    }
  });

  it('R-3.8 reset goes straight to closed from every state, with nothing remembered', () => {
    for (const into of ['closed', 'open', 'half_open', 'disabled', 'forced_open'] as const) {
      const { breaker, clock } = make({ failureThreshold: 2 });
      fail(breaker, into === 'open' || into === 'half_open' ? 2 : 1);
      if (into === 'half_open') clock.pass(1_000);
      if (into === 'disabled') breaker.disable();
      if (into === 'forced_open') breaker.forceOpen();
      expect(breaker.state.type).toBe(into);
      breaker.reset();
      expect(breaker.state).toStrictEqual({ type: 'closed', consecutiveFailures: 0, measured: 0, failures: 0 });
      fail(breaker);
      expect(breaker.state.type).toBe('closed');
    }
  });

  it('R-3.8 a reset forgets how far the cooldown had grown', () => {
    const { breaker, clock } = make({ cooldownMultiplier: 10 });
    fail(breaker);
    clock.pass(1_000);
    fail(breaker);
    expect(breaker.state).toMatchObject({ retryAfterMs: 10_000 });
    breaker.reset();
    fail(breaker);
    expect(breaker.state).toMatchObject({ retryAfterMs: 1_000 });
  });

  it('R-3.8 disabled admits everything and opens for nothing, until reset', () => {
    const { breaker } = make();
    breaker.disable();
    fail(breaker, 100);
    expect(breaker.state).toMatchObject({ type: 'disabled' });
    expect(rejects(breaker)).toBe(false);
    const running = permit(breaker);
    breaker.reset();
    running.failure();
    expect(breaker.state.type).toBe('closed');
    fail(breaker);
    expect(breaker.state.type).toBe('open');
  });

  it.each(['forced_open', 'disabled', 'closed'] as const)('R-3.11 initialState %s', (initialState) => {
    const { breaker, clock } = make({ initialState });
    expect(breaker.state.type).toBe(initialState);
    expect(rejects(breaker)).toBe(initialState === 'forced_open');
    clock.pass(1_000_000);
    expect(breaker.state.type).toBe(initialState);
    breaker.reset();
    expect(breaker.state.type).toBe('closed');
  });

  it('R-3.8 a switch thrown during a probe: the probe’s end changes nothing', () => {
    for (const verb of ['success', 'failure', 'release'] as const) {
      const { breaker, clock } = make({ successThreshold: 1 });
      fail(breaker);
      clock.pass(1_000);
      const probe = permit(breaker);
      breaker.forceOpen();
      probe[verb]();
      expect(breaker.state.type).toBe('forced_open');
    }
  });
});

describe('R-3.9 ramp', () => {
  const recovered = (options: BreakerOptions = {}): { readonly breaker: Breaker; readonly clock: HandClock } => {
    const made = make({ rampMs: 1_000, successThreshold: 1, ...options });
    fail(made.breaker);
    made.clock.pass(1_000);
    succeed(made.breaker);
    expect(made.breaker.state.type).toBe('closed');
    return made;
  };

  it('R-3.9 after closing, the share that is admitted grows with time', () => {
    const { breaker, clock } = recovered();
    for (const share of [0.25, 0.5, 0.75]) {
      clock.pass(250);
      clock.draw(share - 0.01);
      expect(rejects(breaker)).toBe(false);
      clock.draw(share + 0.01);
      expect(breaker.admit()).toMatchObject({ admitted: false });
    }
    clock.pass(250);
    clock.draw(0.999_999);
    expect(rejects(breaker)).toBe(false);
  });

  it('R-3.9 off by default: all at once', () => {
    const { breaker, clock } = recovered({ rampMs: 0 });
    clock.draw(0.999_999);
    expect(rejects(breaker)).toBe(false);
  });

  it('R-3.9 a new breaker does not ramp', () => {
    const { breaker, clock } = make({ rampMs: 1_000 });
    clock.draw(0.999_999);
    expect(rejects(breaker)).toBe(false);
  });

  it('R-3.8 reset is straight to closed: it does not ramp, from whichever state', () => {
    for (const into of ['open', 'half_open', 'ramping', 'forced_open'] as const) {
      const { breaker, clock } = into === 'ramping' ? recovered() : make({ rampMs: 1_000 });
      clock.draw(0.999_999);
      if (into !== 'ramping') fail(breaker);
      if (into === 'half_open') clock.pass(1_000);
      if (into === 'forced_open') breaker.forceOpen();
      breaker.reset();
      expect(rejects(breaker)).toBe(false);
    }
  });

  it('R-3.9 a failure in the ramp opens it by the usual rules', () => {
    const { breaker, clock } = recovered();
    clock.draw(0);
    fail(breaker);
    expect(breaker.state.type).toBe('open');
  });
});
