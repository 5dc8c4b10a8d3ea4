import { describe, expect, it } from 'vitest';
import { fail, permit, rejects, succeed, transient } from '../support.ts';
import { halfOpen, make } from './made-breakers.ts';

describe('R-3.6 generations', () => {
  it('R-3.6 the late failure of a call from before it opened does not touch the probe', () => {
    const { breaker, clock } = make();
    const late = permit(breaker);
    fail(breaker);
    clock.pass(1_000);
    const probe = permit(breaker);
    late.failure(transient);
    expect(breaker.state.type).toBe('half_open');
    probe.success();
    succeed(breaker);
    expect(breaker.state).toMatchObject({ type: 'closed', measured: 0 });
  });

  it('R-3.6 the late success of a call from before it opened closes nothing', () => {
    const { breaker, clock } = make({ successThreshold: 1 });
    const [late, later] = [permit(breaker), permit(breaker)];
    fail(breaker);
    late.success();
    expect(breaker.state.type).toBe('open');
    clock.pass(1_000);
    later.success();
    expect(breaker.state.type).toBe('half_open');
    // nor does it give back a place that it never had
    permit(breaker);
    expect(rejects(breaker)).toBe(true);
  });

  it('R-3.6 an outcome of before a reset is not counted after it', () => {
    const { breaker } = make({ failureThreshold: 2 });
    const late = permit(breaker);
    fail(breaker);
    breaker.reset();
    late.failure(transient);
    expect(breaker.state).toStrictEqual({ type: 'closed', consecutiveFailures: 0, measured: 0, failures: 0 });
  });

  it('R-3.6 an outcome of two generations ago is not counted when it is closed once more', () => {
    const { breaker, clock } = make({ successThreshold: 1 });
    const late = permit(breaker);
    fail(breaker);
    clock.pass(1_000);
    succeed(breaker);
    late.failure(transient);
    expect(breaker.state).toMatchObject({ type: 'closed', measured: 0, consecutiveFailures: 0 });
  });

  it('BRK-1 a probe of an earlier half-open period that still runs takes a place in the next', () => {
    const { breaker, clock } = halfOpen({ probes: 2 });
    const old = permit(breaker);
    fail(breaker);
    clock.pass(1_000);
    permit(breaker);
    expect(rejects(breaker)).toBe(true);
    old.success();
    expect(breaker.state.type).toBe('half_open');
    expect(rejects(breaker)).toBe(false);
  });

  it('R-3.5 an old probe does not bring the next half-open’s deadline nearer', () => {
    const { breaker, clock } = halfOpen({ probes: 2, halfOpenTimeoutMs: 1_500 });
    permit(breaker);
    fail(breaker);
    clock.pass(1_000);
    clock.pass(1_499);
    expect(breaker.state.type).toBe('half_open');
    clock.pass(1);
    expect(breaker.state.type).toBe('open');
  });

  it('R-3.6 the outcome of a probe of an earlier half-open period neither closes nor reopens', () => {
    for (const verb of ['success', 'failure'] as const) {
      const { breaker, clock } = halfOpen({ probes: 2, successThreshold: 1 });
      const old = permit(breaker);
      fail(breaker);
      clock.pass(1_000);
      old[verb]();
      expect(breaker.state.type).toBe('half_open');
    }
  });

  const verbs = ['success', 'failure', 'ignore', 'release'] as const;
  it.each(verbs.flatMap((first) => verbs.map((second) => [first, second] as const)))(
    'R-3.6 a permit ends once: %s, then %s',
    (first, second) => {
      const closed = make({ failureThreshold: 3 }).breaker;
      const counted = permit(closed);
      counted[first]();
      const after = closed.state;
      counted[second]();
      counted[second]();
      expect(closed.state).toStrictEqual(after);
      // and a probe's place is given back once
      const { breaker } = halfOpen({ probes: 2, successThreshold: 9 });
      const [one, two] = [permit(breaker), permit(breaker)];
      if (first === 'failure') return;
      one[first]();
      one[second]();
      expect(breaker.state.type).toBe('half_open');
      permit(breaker);
      expect(rejects(breaker)).toBe(true);
      two.release();
      expect(rejects(breaker)).toBe(false);
    },
  );
});
