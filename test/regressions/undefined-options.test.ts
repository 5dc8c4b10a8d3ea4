// Was: `undefined` threw in retryBackoff and createBreaker, and hid a layer's default. Now: it takes the default
// everywhere.
import { describe, expect, it } from 'vitest';
import { agentLimits } from '../../src/agent/loop/limits.ts';
import { memoryStore } from '../../src/stores/memory.ts';
import { attemptTimeout } from '../../src/operators/attempt-timeout.ts';
import { createBreaker } from '../../src/operators/breaker/breaker.ts';
import { dedupe } from '../../src/operators/dedupe.ts';
import { guard } from '../../src/operators/guard.ts';
import { hedge } from '../../src/operators/hedge.ts';
import { retryBackoff } from '../../src/operators/retry-backoff.ts';
import { retryPolicy } from '../../src/policy/retry/backoff.ts';
import { breakerSettings } from '../../src/policy/breaker/settings.ts';
import { createRetryBudget } from '../../src/policy/retry/budget.ts';
import { createSpillway } from '../../src/spillway.ts';

/** What a caller without exact optional types passes on, as the type that is asked for. */
// oxlint-disable-next-line typescript/no-unnecessary-type-parameters
const unset = <T extends object>(...names: readonly string[]): T =>
  Object.fromEntries(names.map((name) => [name, undefined])) as T;

const RETRY = [
  'strategy',
  'initialDelayMs',
  'maxDelayMs',
  'multiplier',
  'jitterPercent',
  'maxAttempts',
  'maxTotalTimeMs',
];
const BREAKER = [
  'failureThreshold',
  'failureRate',
  'windowSize',
  'windowMs',
  'minimumCalls',
  'cooldownMs',
  'cooldownMultiplier',
  'cooldownMaxMs',
  'probes',
  'successThreshold',
  'halfOpenTimeoutMs',
  'rampMs',
  'slowCallMs',
  'initialState',
];

describe('R-2.9 an option that is undefined takes its default', () => {
  it('R-2.9 of retries and breakers, each and all', () => {
    for (const names of [...RETRY.map((name) => [name]), RETRY])
      expect(retryPolicy(unset(...names))).toEqual(retryPolicy());
    for (const names of [...BREAKER.map((name) => [name]), BREAKER])
      expect(breakerSettings(unset(...names))).toEqual(breakerSettings());
  });

  it('R-2.9 of every operator', () => {
    expect(() => retryBackoff(unset('maxAttempts'))).not.toThrow();
    expect(createBreaker(unset('cooldownMs')).state.type).toBe('closed');
    expect(() => hedge(unset('delayMs', 'quantile', 'minimumSamples', 'maxHedges'))).not.toThrow();
    expect(createRetryBudget(unset('ratio', 'minPerSecond', 'windowMs')).left(0)).toBe(100);
    expect(() => guard({ ...unset<object>('timeoutMs', 'breaker'), retry: unset('maxAttempts') })).not.toThrow();
    expect(() => attemptTimeout(undefined)).not.toThrow();
    expect(() =>
      dedupe(memoryStore(), 'k', unset('mode', 'tool', 'leaseMs', 'doneTtlMs', 'failedTtlMs', 'storeTimeoutMs')),
    ).not.toThrow();
    expect(agentLimits(unset('turns', 'loop'))).toEqual(agentLimits());
  });

  it('R-2.9 of a tool and a layer: an undefined one does not hide the layer’s', async () => {
    let calls = 0;
    const execute = (): never => {
      calls++;
      throw new Error('Service unavailable');
    };
    const policy = {
      ...unset<object>('timeoutMs', 'effects', 'breaker', 'dedupe', 'mode', 'cost'),
      retry: unset<object>('maxAttempts'),
    };
    const retry = { maxAttempts: 2, initialDelayMs: 0 };
    const layer = createSpillway({
      tools: [{ name: 'search', policy, execute }],
      defaults: { ...unset<object>('timeoutMs', 'breaker', 'classification'), retry },
    });
    await layer.execute({ toolName: 'search', input: {} });
    expect(calls).toBe(2);
    await layer.close();
  });

  it('R-2.9 a value out of its range is refused as before', () => {
    expect(() => retryBackoff({ maxAttempts: 0 })).toThrow(/maxAttempts must be .* not 0/);
    expect(() => retryPolicy({ maxAttempts: null } as never)).toThrow(RangeError);
  });
});
