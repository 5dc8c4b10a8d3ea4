import { describe, expect, it } from 'vitest';
import type { BreakerPolicyEntry } from '../../../src/contract/formats/policy-entry.ts';
import type { RetryBudgetEntry, PolicyFile } from '../../../src/contract/formats/policy-file.ts';
import type { ErrorsEntry, ScenarioFile } from '../../../src/contract/formats/scenario-entry.ts';
import { seededRandom } from '../../../src/policy/random.ts';
import { measure } from '../../../src/simulate/storm/measures.ts';
import { runStorm, type EngineName } from '../../../src/simulate/storm/run.ts';

const SCENARIOS = 30;

/** A scenario of every part that both engines know, drawn from a number. */
const drawn = (index: number): { readonly scenario: ScenarioFile; readonly policy: PolicyFile } => {
  const random = seededRandom(index + 1);
  const pick = <T>(...of: readonly T[]): T => of[Math.floor(random() * of.length)] as T;
  const maybe = <T extends object>(share: number, entry: T): T | object => (random() < share ? entry : {});
  const ratePerS = pick(20, 60, 150);
  const scenario: ScenarioFile = {
    name: `scenario ${index}`,
    duration_s: 20,
    servers: {
      main: {
        latency: pick(
          { constant_ms: 0 },
          { constant_ms: 40 },
          { median_ms: 50, p99_ms: 400 },
          { values_ms: [10, 20, 50, 900] },
        ),
        ...maybe(0.6, { workers: pick(3, 10, 30), queue: pick(0, 20, 1_000) }),
        ...maybe(0.7, { errors: { rate: pick(0.02, 0.2), status: pick(500, 503, 429, 404) } }),
        ...maybe(0.5, { bursts: [{ from_s: 8, to_s: 14, rate: pick(0.6, 1) }] }),
        ...maybe(0.4, { dips: [{ from_s: 16, to_s: 20, factor: pick(0, 0.3) }] }),
        ...maybe(0.3, { outages: [{ from_s: 22, to_s: 24 }] }),
        ...maybe(0.3, { lost_answers: 0.05, on_abandon: 'drop' as const }),
      },
      spare: { latency: { constant_ms: 80 }, errors: { rate: 0.1 } },
    },
    tools: {
      a: { server: 'main', effects: pick('read', 'mutating') },
      b: { server: pick('main', 'spare'), effects: pick('read', 'mutating') },
    },
    plans: {
      trip: {
        timeout_ms: pick(300, 4_000),
        nodes: [
          { id: 'x', tool: 'a' },
          { id: 'y', tool: 'b', needs: ['x'] },
        ],
      },
    },
    processes: pick(1, 3),
    clients: [
      pick(
        { tool: 'a', poisson: { rate_per_s: ratePerS, surges: [{ from_s: 5, to_s: 7, factor: 3 }] } },
        { tool: 'a', closed: { users: 20, think_ms: 300 } },
        { plan: 'trip', poisson: { rate_per_s: ratePerS / 2 } },
        { tool: 'a', burst: { count: 100, every_s: 5 } },
      ),
    ],
  };
  const policy: PolicyFile = {
    ...maybe(0.7, { retry_budget: pick<'off' | RetryBudgetEntry>('off', { ratio: 0.1, min_per_second: 1 }) }),
    defaults: {
      timeout_ms: pick(200, 1_000),
      retry_policy: {
        strategy: pick('exponential', 'full_jitter', 'decorrelated', 'constant'),
        max_attempts: pick(1, 3, 5),
        max_total_time_ms: pick(1_000, 5_000),
      },
      ...maybe(0.7, {
        circuit_breaker: pick<false | BreakerPolicyEntry>(false, { timeout_ms: 1_000, ramp_ms: pick(0, 500) }),
      }),
    },
    ...maybe(0.6, { tools: { a: { alternatives: ['b'] }, b: maybe(0.3, { idle_timeout_ms: 60 }) } }),
  };
  return { scenario, policy };
};

describe('SIM-2 the layer itself and its policies alone agree within 2 %', () => {
  it.each(Array.from({ length: SCENARIOS }, (_, index) => index))('on drawn scenario %d', (index) => {
    const { scenario, policy } = drawn(index);
    const [layer, alone] = (['fidelity', 'fleet'] as const).map((engine) =>
      measure(scenario, runStorm(scenario, policy, 7, engine)),
    );
    expect(layer?.calls).toBeGreaterThan(100);
    for (const figure of ['calls', 'success', 'p50', 'p95', 'p99', 'attempts', 'load', 'doubled', 'refused'] as const) {
      const [a, b] = [layer?.[figure] ?? 0, alone?.[figure] ?? 0];
      // Of small counts 2 % is less than one.
      expect(Math.abs(a - b), `${figure}: ${a} and ${b}`).toBeLessThanOrEqual(
        Math.max(0.02 * Math.abs(a), figure === 'doubled' || figure === 'refused' ? 2 : 0.002),
      );
    }
  });
});

describe('SIM-2 they agree on turns that end before their calls do', () => {
  const scenario = (timeoutMs: number, errors: ErrorsEntry): ScenarioFile => ({
    name: 'turns',
    duration_s: 15,
    servers: {
      main: { latency: { median_ms: 50, p99_ms: 900 }, errors, lost_answers: 0.05 },
      spare: { latency: { constant_ms: 80 }, errors: { rate: 0.2 } },
    },
    tools: { a: { server: 'main' }, b: { server: 'spare' } },
    plans: {
      trip: {
        timeout_ms: timeoutMs,
        nodes: [
          { id: 'x', tool: 'a', optional: true },
          { id: 'y', tool: 'b', needs: ['x'], optional: true },
          { id: 'z', tool: 'a' },
        ],
      },
    },
    clients: [{ plan: 'trip', poisson: { rate_per_s: 40 } }],
  });
  const policy: PolicyFile = {
    retry_budget: 'off',
    defaults: {
      timeout_ms: 3_000,
      retry_policy: { strategy: 'constant', max_attempts: 5, max_total_time_ms: 5_000 },
      circuit_breaker: false,
    },
    tools: { a: { alternatives: ['b'] } },
  };

  it.each([
    ['whose attempts are under way', 300, { rate: 0 }],
    ['whose next attempts would begin after their end', 1_000, { rate: 0.5, status: 503, retry_after_ms: 800 }],
    ['whose servers ask for more time than there is', 2_000, { rate: 0.5, status: 429, retry_after_ms: 5_000 }],
  ])('%s', (_, timeoutMs, errors) => {
    const storm = scenario(timeoutMs, errors);
    const meanOf = (engine: EngineName, figure: 'success' | 'attempts'): number =>
      [1, 2, 3, 4, 5, 6].reduce(
        (sum, seed) => sum + measure(storm, runStorm(storm, policy, seed, engine))[figure] / 6,
        0,
      );
    for (const figure of ['success', 'attempts'] as const) {
      const layer = meanOf('fidelity', figure);
      if (figure === 'success') expect(layer).toBeLessThan(0.95);
      expect(Math.abs(meanOf('fleet', figure) / layer - 1), figure).toBeLessThan(0.02);
    }
  });
});
