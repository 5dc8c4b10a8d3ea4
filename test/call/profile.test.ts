import { createSpillway, tool, ToolExecutionError, type Breaker } from 'spillway';
import { virtualRuntime } from 'spillway/testing';
import { describe, expect, it } from 'vitest';

const end = (breaker: Breaker, good: boolean): void => {
  const permit = breaker.admit();
  if (!permit.admitted) return;
  if (good) permit.success();
  else permit.failure(new ToolExecutionError('timeout', 'late'));
};

describe('R-3.12 breakers of the resilient profile', () => {
  const made = (
    effects: 'read' | 'mutating',
    breaker = {},
  ): { readonly breaker: Breaker; readonly pass: (ms: number) => string } => {
    const runtime = virtualRuntime();
    const spillway = createSpillway({
      runtime,
      profile: 'resilient',
      tools: [tool({ name: 't', policy: { effects, breaker }, execute: () => 1 })],
    });
    const own = spillway.breakers.get('t');
    return {
      breaker: own,
      pass: (ms) => {
        runtime.stall(ms);
        return own.state.type;
      },
    };
  };

  it('R-3.12 a tool that only reads: eight failures in a row, and 20 s', () => {
    const { breaker, pass } = made('read');
    for (let failure = 0; failure < 7; failure++) end(breaker, false);
    expect(breaker.state.type).toBe('closed');
    end(breaker, false);
    expect([breaker.state.type, pass(19_999), pass(1)]).toEqual(['open', 'open', 'half_open']);
  });

  it('R-3.12 a mutating one: three failures of ten, and 15 s', () => {
    const { breaker, pass } = made('mutating');
    for (let call = 0; call < 9; call++) end(breaker, call > 1);
    expect(breaker.state).toMatchObject({ type: 'closed', measured: 9, failures: 2 });
    end(breaker, false);
    expect([breaker.state.type, pass(14_999), pass(1)]).toEqual(['open', 'open', 'half_open']);
  });

  it('R-3.12 what the tool says itself wins', () => {
    const { breaker, pass } = made('read', { failureThreshold: 2, cooldownMs: 1_000 });
    for (let failure = 0; failure < 2; failure++) end(breaker, false);
    expect([breaker.state.type, pass(999), pass(1)]).toEqual(['open', 'open', 'half_open']);
  });
});
