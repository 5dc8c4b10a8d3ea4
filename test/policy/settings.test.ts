import { createBreaker, ToolExecutionError } from 'spillway';
import { breakerSettings, retryPolicy } from 'spillway/policy';
import { virtualRuntime } from 'spillway/testing';
import { describe, expect, it } from 'vitest';

describe('R-3.11 what a breaker’s options leave out', () => {
  it('R-3.11 a cooldown above the default maximum raises it, and half-open lasts as long', () => {
    expect(breakerSettings({ cooldownMs: 300_001 })).toMatchObject({
      cooldownMaxMs: 300_001,
      halfOpenTimeoutMs: 300_001,
    });
    expect(breakerSettings({ cooldownMs: 59_999 })).toMatchObject({
      cooldownMaxMs: 300_000,
      halfOpenTimeoutMs: 60_000,
    });
    expect(breakerSettings({ cooldownMs: 400_000, cooldownMaxMs: 350_000 }).cooldownMaxMs).toBe(350_000);
  });

  it('R-3.4 such a breaker rests for as long as it says', () => {
    const runtime = virtualRuntime();
    const breaker = createBreaker({ failureThreshold: 1, cooldownMs: 400_000 }, runtime);
    const permit = breaker.admit();
    if (permit.admitted) permit.failure(new ToolExecutionError('timeout', 'late'));
    runtime.stall(399_999);
    expect(breaker.state.type).toBe('open');
    runtime.stall(1);
    expect(breaker.state.type).toBe('half_open');
  });

  it('R-2.9 ten measured calls, or the whole window if it is smaller', () => {
    expect(breakerSettings({ windowSize: 4 }).minimumCalls).toBe(4);
    expect(breakerSettings({ windowSize: 11 }).minimumCalls).toBe(10);
  });
});

describe('R-2.1 what a retry policy leaves out', () => {
  it('R-2.1 an initial delay above the default cap raises the cap; a cap that is said stands', () => {
    expect(retryPolicy({ initialDelayMs: 5_000 }).maxDelayMs).toBe(5_000);
    expect(retryPolicy({ initialDelayMs: 500 }).maxDelayMs).toBe(800);
    expect(retryPolicy({ initialDelayMs: 5_000, maxDelayMs: 1_000 }).maxDelayMs).toBe(1_000);
  });
});
