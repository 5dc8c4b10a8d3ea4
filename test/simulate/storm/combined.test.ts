import { describe, expect, it } from 'vitest';
import type { BreakerPolicyEntry, RetryEntry } from '../../../src/contract/formats/policy-entry.ts';
import type { PolicyFile, RetryBudgetEntry, ToolPolicyEntry } from '../../../src/contract/formats/policy-file.ts';
import type {
  ClientsEntry,
  QueueServerEntry,
  ScenarioFile,
  ScenarioPlanEntry,
} from '../../../src/contract/formats/scenario-entry.ts';
import { seededRandom } from '../../../src/policy/random.ts';
import { measure } from '../../../src/simulate/storm/measures.ts';
import { runStorm } from '../../../src/simulate/storm/run.ts';
import { checkScenario } from '../../../src/simulate/storm/scenario/check.ts';

const SCENARIOS = 60;
const TOOLS = ['a', 'b', 'c'] as const;
const NODES = ['x', 'y', 'z', 'u', 'v'] as const;

interface Draw {
  readonly random: () => number;
  readonly pick: <T>(...of: readonly T[]) => T;
  readonly maybe: <T extends object>(share: number, entry: T) => T | object;
}

const drawOf = (index: number): Draw => {
  const random = seededRandom(index * 7_919 + 13);
  return {
    random,
    pick: <T>(...of: readonly T[]): T => of[Math.floor(random() * of.length)] as T,
    maybe: <T extends object>(share: number, entry: T): T | object => (random() < share ? entry : {}),
  };
};

const serverOf = ({ pick, maybe }: Draw): QueueServerEntry => ({
  latency: pick<QueueServerEntry['latency']>(
    { constant_ms: 0 },
    { constant_ms: 40 },
    { constant_ms: 200 },
    { median_ms: 50, p99_ms: 400 },
    { values_ms: [10, 20, 50, 900] },
    { median_ms: 5, p99_ms: 3_000 },
  ),
  ...maybe(0.6, { workers: pick(1, 3, 10, 30), queue: pick(0, 5, 20, 1_000) }),
  ...maybe(0.7, {
    errors: {
      rate: pick(0.02, 0.2, 0.5, 1),
      status: pick(500, 502, 503, 504, 429, 404, 408, 401, 529),
      ...maybe(0.3, { retry_after_ms: pick(0, 50, 200, 3_000, 100_000) }),
    },
  }),
  ...maybe(0.5, { bursts: [{ from_s: 2, to_s: 4, rate: pick(0.6, 1) }] }),
  ...maybe(0.3, { weather: 'bad', weather_rate: pick(0.5, 1) }),
  ...maybe(0.4, { dips: [{ from_s: 4, to_s: 6, factor: pick(0, 0.1, 0.3) }] }),
  ...maybe(0.3, { outages: [{ from_s: 6, to_s: 7 }] }),
  ...maybe(0.3, { lost_answers: pick(0.05, 0.5) }),
  ...maybe(0.5, { on_abandon: pick('drop', 'finish') }),
});

const planOf = ({ random, pick, maybe }: Draw): ScenarioPlanEntry => ({
  ...maybe(0.8, { timeout_ms: pick(50, 300, 500, 1_000, 4_000) }),
  nodes: NODES.slice(0, pick(1, 2, 3, 5)).map((id, index) => ({
    id,
    tool: pick(...TOOLS),
    ...maybe(0.6, { needs: NODES.slice(0, index).filter(() => random() < 0.5) }),
    ...maybe(0.3, { optional: true }),
  })),
});

const clientsOf = ({ pick }: Draw): ClientsEntry => {
  const factor = pick(0, 0.5, 3);
  return pick<ClientsEntry>(
    { tool: pick(...TOOLS), poisson: { rate_per_s: pick(10, 40, 120), surges: [{ from_s: 2, to_s: 4, factor }] } },
    { closed: { users: pick(1, 20), think_ms: pick(10, 300) } },
    { plan: 'trip', poisson: { rate_per_s: pick(10, 40) } },
    { plan: 'tour', closed: { users: 10, think_ms: 200 } },
    { plan: 'tour', burst: { count: 30, every_s: 1 } },
    { tool: 'a', burst: { count: pick(5, 100), every_s: pick(0.5, 1, 5) } },
  );
};

const retryOf = ({ pick, maybe }: Draw): RetryEntry => ({
  ...maybe(0.8, { strategy: pick('exponential', 'full_jitter', 'decorrelated', 'constant') }),
  ...maybe(0.8, { max_attempts: pick(1, 2, 3, 5, 10) }),
  ...maybe(0.7, { max_total_time_ms: pick(0, 200, 1_000, 5_000) }),
  ...maybe(0.5, { initial_delay_ms: pick(0, 20, 100, 200) }),
  ...maybe(0.3, { max_delay_ms: pick(0, 100, 400), multiplier: pick(1, 3) }),
  ...maybe(0.4, { jitter_percent: pick(0, 50, 100) }),
});

const breakerOf = ({ pick, maybe }: Draw): BreakerPolicyEntry => ({
  ...maybe(0.8, { timeout_ms: pick(0, 100, 1_000) }),
  ...maybe(0.4, { ramp_ms: pick(0, 500, 2_000) }),
  ...maybe(0.5, { failure_threshold: pick<'off' | number>('off', 1, 3) }),
  ...maybe(0.5, { failure_rate: pick<'off' | number>('off', 0.1, 1) }),
  ...maybe(0.5, { window_size: pick(5, 50), minimum_calls: pick(1, 5) }),
  ...maybe(0.3, { window_ms: pick(200, 2_000) }),
  ...maybe(0.3, { cooldown_multiplier: 2, cooldown_max_ms: 4_000 }),
  ...maybe(0.4, { probes: pick(1, 3), success_threshold: pick(1, 3) }),
  ...maybe(0.3, { half_open_timeout_ms: pick(50, 300) }),
  ...maybe(0.3, { slow_call_ms: pick(40, 100) }),
  ...maybe(0.1, { initial_state: pick('forced_open', 'disabled') }),
});

const policyOf = (draw: Draw): ToolPolicyEntry => {
  const { pick, maybe } = draw;
  return {
    ...maybe(0.7, { timeout_ms: pick(40, 200, 1_000) }),
    ...maybe(0.3, { idle_timeout_ms: pick(40, 60, 500) }),
    ...maybe(0.7, { retry_policy: retryOf(draw) }),
    ...maybe(0.7, { circuit_breaker: pick<false | BreakerPolicyEntry>(false, breakerOf(draw)) }),
    ...maybe(0.3, { effects: pick('read', 'mutating') }),
    ...maybe(0.3, { enforces_key: pick(true, false) }),
    ...maybe(0.2, { safety_critical: pick(true, false) }),
  };
};

/** A scenario of all that a file can say of clients, servers, tools and policies, all at once. */
const drawn = (index: number): { readonly scenario: ScenarioFile; readonly policy: PolicyFile } => {
  const draw = drawOf(index);
  const { pick, maybe } = draw;
  const scenario: ScenarioFile = {
    name: `scenario ${index}`,
    duration_s: 8,
    weather: { bad: { every_s: 3, for_s: 1 } },
    servers: { main: serverOf(draw), spare: serverOf(draw), row: { row: { network_ms: { mean: pick(0, 5), sd: 2 } } } },
    tools: {
      a: { server: 'main', effects: pick('read', 'mutating'), keeps_keys: pick(true, false) },
      b: { server: pick('main', 'spare'), effects: pick('read', 'mutating'), keeps_keys: pick(true, false) },
      c: { server: pick('row', 'spare', 'main') },
    },
    plans: { trip: planOf(draw), tour: planOf(draw) },
    processes: pick(1, 1, 3),
    clients: [clientsOf(draw), clientsOf(draw)],
  };
  const alternatives = (name: string): object =>
    maybe(0.4, { alternatives: pick(['b'], ['b', 'c'], ['c', 'b'], ['a']).filter((other) => other !== name) });
  const policy: PolicyFile = {
    ...maybe(0.7, {
      retry_budget: pick<'off' | RetryBudgetEntry>('off', { ratio: pick(0, 0.1, 2), min_per_second: pick(0, 1) }),
    }),
    defaults: policyOf(draw),
    ...maybe(0.8, {
      tools: Object.fromEntries(TOOLS.map((name) => [name, { ...policyOf(draw), ...alternatives(name) }])),
    }),
  };
  return { scenario, policy };
};

describe('SIM-2 the layer itself and its policies alone agree where all comes together', () => {
  it.each(Array.from({ length: SCENARIOS }, (_, index) => index))(
    'to the last digit, in drawn scenario %d',
    (index) => {
      const { scenario, policy } = drawn(index);
      checkScenario(scenario);
      const [layer, alone] = (['fidelity', 'fleet'] as const).map((engine) =>
        measure(scenario, runStorm(scenario, policy, 7, engine)),
      );
      expect(layer?.calls).toBeGreaterThan(10);
      expect(alone).toEqual(layer);
    },
  );
});
