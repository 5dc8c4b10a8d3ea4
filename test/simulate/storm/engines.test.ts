import { describe, expect, it } from 'vitest';
import type { PolicyFile } from '../../../src/contract/formats/policy-file.ts';
import type { ScenarioFile } from '../../../src/contract/formats/scenario-entry.ts';
import { measure, type StormMeasures } from '../../../src/simulate/storm/measures.ts';
import { runStorm } from '../../../src/simulate/storm/run.ts';

type Case = readonly [what: string, scenario: Omit<ScenarioFile, 'name' | 'duration_s'>, policy: PolicyFile];

const AT_ONCE: ScenarioFile['clients'] = [{ tool: 'a', burst: { count: 60, every_s: 1 } }];
const TURNS: ScenarioFile['clients'] = [{ plan: 'trip', burst: { count: 30, every_s: 1 } }];
const ONCE = { strategy: 'constant', max_attempts: 1 } as const;

const CASES: readonly Case[] = [
  [
    'an alternative that acts, of a tool that reads: each call for itself',
    {
      servers: { main: { latency: { constant_ms: 0 }, workers: 3, queue: 0 } },
      tools: { a: { server: 'main' }, b: { server: 'main', effects: 'mutating' } },
      clients: AT_ONCE,
    },
    { tools: { a: { alternatives: ['b'] } } },
  ],
  [
    'a limit on silence, which nothing here breaks',
    {
      servers: { main: { latency: { median_ms: 50, p99_ms: 400 } } },
      tools: { a: { server: 'main' } },
      clients: AT_ONCE,
    },
    { defaults: { timeout_ms: 1_000, idle_timeout_ms: 60 } },
  ],
  [
    'a breaker that refuses what an attempt has left in doubt: it is not done elsewhere',
    {
      servers: {
        main: { latency: { constant_ms: 40 }, errors: { rate: 0.6, status: 500 } },
        spare: { latency: { constant_ms: 20 } },
      },
      tools: { a: { server: 'main', effects: 'mutating' }, b: { server: 'spare' } },
      clients: AT_ONCE,
    },
    {
      retry_budget: 'off',
      defaults: { circuit_breaker: { timeout_ms: 0, probes: 1 }, retry_policy: { max_attempts: 5 } },
      tools: { a: { alternatives: ['b'], enforces_key: true } },
    },
  ],
  [
    'a turn that ends before its calls do: they go on, and breakers hear of them',
    {
      servers: { main: { latency: { constant_ms: 500 }, workers: 10, on_abandon: 'drop' } },
      tools: { a: { server: 'main' } },
      plans: { trip: { timeout_ms: 400, nodes: [{ id: 'x', tool: 'a' }] } },
      clients: TURNS,
    },
    { defaults: { timeout_ms: 900, retry_policy: ONCE } },
  ],
  [
    'a breaker that asks for more time than a turn has: there is no alternative then',
    {
      servers: { main: { latency: { constant_ms: 100 }, workers: 3 }, spare: { latency: { constant_ms: 20 } } },
      tools: { a: { server: 'main' }, b: { server: 'spare' } },
      plans: { trip: { timeout_ms: 4_000, nodes: [{ id: 'x', tool: 'a' }] } },
      clients: TURNS,
    },
    {
      defaults: { timeout_ms: 200, retry_policy: { strategy: 'constant', max_attempts: 2, max_total_time_ms: 0 } },
      tools: { a: { alternatives: ['b'] } },
    },
  ],
  [
    'results that are due with their deadline, and a step later than it: they beat it',
    {
      servers: {
        main: { latency: { constant_ms: 0 } },
        spare: { latency: { constant_ms: 20 }, outages: [{ from_s: 2, to_s: 2.5 }] },
      },
      tools: { a: { server: 'main' }, b: { server: 'spare' } },
      plans: {
        trip: {
          timeout_ms: 300,
          nodes: [
            { id: 'x', tool: 'b' },
            { id: 'y', tool: 'a', needs: ['x'] },
          ],
        },
      },
      clients: TURNS,
    },
    { defaults: { timeout_ms: 1_000, retry_policy: ONCE } },
  ],
  [
    'calls of two tools that are late at one instant: the budget is for who asked first',
    {
      servers: {
        main: { latency: { constant_ms: 0 }, lost_answers: 0.5 },
        spare: { latency: { constant_ms: 0 }, lost_answers: 0.3 },
      },
      tools: { a: { server: 'main' }, b: { server: 'spare' } },
      plans: {
        trip: {
          nodes: [
            { id: 'x', tool: 'b' },
            { id: 'y', tool: 'a' },
            { id: 'z', tool: 'b', needs: ['x'] },
          ],
        },
      },
      processes: 2,
      clients: TURNS,
    },
    { retry_budget: { ratio: 0.1, min_per_second: 0 }, defaults: { timeout_ms: 500, circuit_breaker: false } },
  ],
  [
    'calls of several processes that are late at one instant: each process has timers of its own',
    {
      servers: { main: { latency: { constant_ms: 900 } }, spare: { latency: { constant_ms: 200 }, workers: 10 } },
      tools: { a: { server: 'main' }, c: { server: 'spare' } },
      processes: 3,
      clients: [{ tool: 'a', burst: { count: 101 } }],
    },
    { tools: { a: { timeout_ms: 200, alternatives: ['c'] }, c: { timeout_ms: 1_000 } } },
  ],
  [
    'a slow answer that is final and asks to wait: a breaker that it opens is not told for how long',
    {
      servers: {
        main: {
          latency: { constant_ms: 50 },
          errors: { rate: 0, status: 404, retry_after_ms: 100_000 },
          bursts: [{ from_s: 1, to_s: 3, rate: 0.6 }],
        },
      },
      tools: { a: { server: 'main' } },
      clients: AT_ONCE,
    },
    { defaults: { circuit_breaker: { timeout_ms: 1_000, slow_call_ms: 40 } } },
  ],
  [
    'probes of which one answers: the others have their time from then on',
    {
      servers: { main: { latency: { median_ms: 50, p99_ms: 400 }, errors: { rate: 0.2 } } },
      tools: { a: { server: 'main' } },
      clients: [{ poisson: { rate_per_s: 200 } }],
    },
    {
      defaults: {
        circuit_breaker: { timeout_ms: 100, window_size: 5, minimum_calls: 1, probes: 3, half_open_timeout_ms: 50 },
      },
    },
  ],
];

describe('SIM-2 the fleet engine does what the layer does, to the call', () => {
  it.each(CASES)('%s', (what, entry, policy) => {
    const scenario: ScenarioFile = { name: what.slice(0, 60), duration_s: 6, ...entry };
    const [layer, alone] = (['fidelity', 'fleet'] as const).map((engine): StormMeasures =>
      measure(scenario, runStorm(scenario, policy, 7, engine)),
    );
    expect(layer?.calls).toBeGreaterThan(100);
    expect(alone).toEqual(layer);
  });
});
