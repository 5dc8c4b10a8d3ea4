import type { ScenarioFile } from '../src/contract/formats/scenario-entry.ts';
import { runStorm, type EngineName } from '../src/simulate/storm/run.ts';
import { sideBySide, type Question } from './measure.ts';

const IN_FLIGHT = 10_000;
const ROUNDS = 5;
/** On average, of calls that take 0.4 s in the median and 1.5 s at the 99th percentile. */
const LATENCY_S = 0.47;

/** Calls that come in faster than they are answered, some of which fail and are tried again, until all are done. */
const stormOf = (calls: number): ScenarioFile => ({
  name: 'speed',
  duration_s: (calls / IN_FLIGHT) * LATENCY_S,
  servers: { server: { latency: { median_ms: 400, p99_ms: 1_500 }, errors: { rate: 0.02 } } },
  tools: { tool: { server: 'server' } },
  clients: [{ poisson: { rate_per_s: IN_FLIGHT / LATENCY_S } }],
});

/** How many calls one run of each engine makes: what takes some tenths of a second. */
const CALLS: Readonly<Record<EngineName, number>> = { fidelity: 20_000, fleet: 200_000 };
const LIMITS: Readonly<Record<EngineName, number>> = { fidelity: 20_000, fleet: 250_000 };

/** Simulated calls, with 10,000 of them in flight. */
export async function benchmarkSimulate(): Promise<Question> {
  const asked = async (engine: EngineName): Promise<{ readonly us: number; readonly calls: number }> => {
    let calls = 0;
    const { us } = await sideBySide(
      {
        [engine]: async () => {
          const { tally } = runStorm(stormOf(CALLS[engine]), {}, 1, engine);
          if (tally.successes < tally.calls * 0.99) throw new Error('calls failed');
          ({ calls } = tally);
        },
      },
      1,
      ROUNDS,
    );
    return { us: us(engine), calls };
  };
  const engines: ReadonlyArray<readonly [EngineName, string]> = [
    ['fidelity', 'a call through the layer itself'],
    ['fleet', 'a call through its policies alone'],
  ];
  const answers = [];
  for (const [engine, name] of engines) answers.push({ engine, name, ...(await asked(engine)) });
  return {
    question: `What does a simulated call take, with ${IN_FLIGHT} of them in flight?`,
    figures: answers.map(({ name, us, calls }) => ({ name, usPerUnit: us / calls, runs: ROUNDS })),
    ratios: {},
    targets: answers.map(({ engine, name, us, calls }) => ({
      name: `simulated, ${name}, calls a second`,
      value: (calls / us) * 1_000_000,
      limit: LIMITS[engine],
      atLeast: true,
      unit: '/s',
    })),
  };
}
