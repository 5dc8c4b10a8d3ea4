import { concat, defer, ignoreElements, throwError } from 'rxjs';
import { createSpillway, type Spillway } from 'spillway';
import { describe, expect, it } from 'vitest';
import type { ScenarioFile } from '../../../src/contract/formats/scenario-entry.ts';
import type { RetryBudgetOptions } from '../../../src/contract/policy.ts';
import type { AnyTool } from '../../../src/contract/tool.ts';
import { measure } from '../../../src/simulate/storm/measures.ts';
import { runStorm } from '../../../src/simulate/storm/run.ts';
import { SimulatedTime } from '../../../src/simulate/time.ts';
import { gallery } from './aws.ts';

const down = throwError(() => Object.assign(new Error('unavailable'), { status: 503 }));

/** How often a server that is down is asked for each call of the outermost of layers, each of which asks the next. */
const asksPerCall = (
  calls: number,
  layers: number,
  maxAttempts: number,
  retryBudget: RetryBudgetOptions | false,
): number => {
  const time = new SimulatedTime(1_000_000);
  let asked = 0;
  let next: Spillway | undefined;
  const constant = { strategy: 'constant', initialDelayMs: 1, jitterPercent: 0, maxTotalTimeMs: 50_000 } as const;
  for (let depth = 0; depth < layers; depth++) {
    const below = next;
    const ask: AnyTool = {
      name: 'ask',
      policy: { effects: 'read', timeoutMs: 40_000, breaker: false, retry: { ...constant, maxAttempts } },
      execute: () => {
        if (below !== undefined) return concat(below.call({ toolName: 'ask', input: {} }).pipe(ignoreElements()), down);
        return defer(() => {
          asked++;
          return down;
        });
      },
    };
    next = createSpillway({ tools: [ask], runtime: time, retryBudget });
  }
  for (let call = 0; call < calls; call++)
    time.at(1_000_000 + call * 10, 0, () => void next?.call({ toolName: 'ask', input: {} }).subscribe());
  time.run();
  return asked / calls;
};

// Retries of each layer multiply ("Timeouts, retries and backoff with jitter", the Amazon Builders' Library): three of
// them in each of three layers make 64 attempts of one call ("Addressing Cascading Failures", the SRE book, 2016).
describe('SIM-3 retries of layers that ask each other multiply', () => {
  it.each([
    [1, 4, 4],
    [2, 3, 9],
    [3, 3, 27],
    [3, 4, 64],
    [5, 4, 1_024],
  ])('%d layers of %d attempts: %d times the load', (layers, attempts, times) => {
    expect(asksPerCall(5, layers, attempts, false)).toBe(times);
  });

  it.each([
    [1, 0.1],
    [3, 0.1],
    [3, 0.2],
    [5, 0.1],
  ])('%d layers, each with a budget of %d: its part in each', (layers, ratio) => {
    const most = (1 + ratio) ** layers;
    const found = asksPerCall(1_000, layers, 4, { ratio, minPerSecond: 0 });
    expect(found).toBeLessThanOrEqual(most * 1.001);
    // The first second has not made its part yet.
    expect(found).toBeGreaterThan(1 + (most - 1) * 0.9);
  });
});

/** A database that does 300 a second is down for ten; each query is asked again so often, a second after the last. */
const recovers = (ratePerS: number, retries: number): boolean => {
  const scenario: ScenarioFile = {
    ...gallery('metastable'),
    duration_s: 400,
    bucket_ms: 4_000,
    clients: [{ poisson: { rate_per_s: ratePerS } }],
  };
  const retry_policy = {
    strategy: 'constant' as const,
    initial_delay_ms: 0,
    max_attempts: 1 + retries,
    max_total_time_ms: 20_000,
  };
  const policy = {
    retry_budget: 'off' as const,
    defaults: { timeout_ms: 1_000, circuit_breaker: false as const, retry_policy },
  };
  return measure(scenario, runStorm(scenario, policy, 1, 'fleet')).recoveryS !== Infinity;
};

describe('SIM-3 a database that does 300 queries a second is stuck above 300 / (1 + retries), and not below', () => {
  it.each([0, 1, 2, 3, 4])('%d retries', (retries) => {
    const threshold = 300 / (1 + retries);
    expect([recovers(threshold * 0.88, retries), recovers(threshold * 1.12, retries)]).toEqual([true, false]);
  });
});
