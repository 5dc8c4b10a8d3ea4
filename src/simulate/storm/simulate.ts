import type { PolicyFile } from '../../contract/formats/policy-file.ts';
import type { ExpectEntry, ScenarioFile } from '../../contract/formats/scenario-entry.ts';
import { SimulationInputError, checkOptions, checkPolicyShape, checkShape } from '../policy-file.ts';
import { scenarioFileSchema } from '../../contract/formats/scenario-file.ts';
import { checkPolicies, checkScenario } from './scenario/check.ts';
import { measure, type StormMeasures } from './measures.ts';
import { runStorm, type EngineName, type StormRun } from './run.ts';
import { seriesOf, type Series } from './series.ts';
import { ALL_CALLS_MAX, CallsMade, checkRuns, runMaxOf } from './scenario/size.ts';
import { intervalOf, rounded, type Interval } from './statistics.ts';

/** How a scenario is run. */
export interface SimulateOptions {
  /** Policies by name. Default: those of the scenario; without any, the defaults of a layer. */
  readonly policies?: Readonly<Record<string, PolicyFile>>;
  /** How many seeds. Default: the scenario's, else 20. */
  readonly seeds?: number;
  /** `fidelity`, the layer itself, or `fleet`, its pure policies alone. Default: the scenario's, else `fidelity`. */
  readonly engine?: EngineName;
  /**
   * The most calls of all policies and seeds together, be it in one run: more are refused. Default: 30,000,000, of
   * which one run makes 10,000,000 at the most.
   */
  readonly maxCalls?: number;
}

/** Figures of a policy over all seeds. */
export type Figures = Readonly<Record<Exclude<keyof StormMeasures, 'recoveryS'>, Interval>> & {
  /** Of the seeds that came to be well again; `null` where none did. */
  readonly recoveryS: Interval | null;
  /** Seeds that never were well again. */
  readonly stuck: number;
};

/** An expectation, and what it met. */
export interface Expectation {
  /** The figure, as the scenario names it. */
  readonly what: keyof ExpectEntry;
  /** What the scenario allows. */
  readonly limit: number;
  /** `null` for a recovery that never came. */
  readonly value: number | null;
  /** Whether it was met. */
  readonly holds: boolean;
}

/** What came of a policy. */
export interface PolicyOutcome {
  /** The policy. */
  readonly name: string;
  /** What it came to. */
  readonly figures: Figures;
  /** What was expected of it. */
  readonly expectations: readonly Expectation[];
  /** Of the first seed, for charts. */
  readonly series: Series;
}

/** What came of a scenario. */
export interface StormReport {
  /** The name of the scenario. */
  readonly scenario: string;
  /** What it shows. */
  readonly about?: string;
  /** Which machinery carried calls out. */
  readonly engine: EngineName;
  /** The seeds: each policy was run once for each. */
  readonly seeds: {
    /** The first. */
    readonly first: number;
    /** How many. */
    readonly count: number;
  };
  /** The policies, in their order. */
  readonly policies: readonly PolicyOutcome[];
  /** Whether every expectation holds. */
  readonly holds: boolean;
}

const figuresOf = (runs: readonly StormMeasures[]): Figures => {
  const over = (of: keyof StormMeasures): Interval => intervalOf(runs.map((run) => run[of]));
  const recovered = runs.map(({ recoveryS }) => recoveryS).filter((seconds) => seconds !== Infinity);
  return {
    calls: over('calls'),
    success: over('success'),
    p50: over('p50'),
    p95: over('p95'),
    p99: over('p99'),
    attempts: over('attempts'),
    load: over('load'),
    refused: over('refused'),
    doubled: over('doubled'),
    effects: over('effects'),
    doneS: over('doneS'),
    recoveryS: recovered.length === 0 ? null : intervalOf(recovered),
    stuck: runs.length - recovered.length,
  };
};

const meanOf = (values: readonly number[]): number =>
  values.reduce((sum, value) => sum + value, 0) / Math.max(1, values.length);

/** What an expectation looks at, to the last digit: means over the seeds, but for what must hold of each. */
const valueOf = (what: keyof ExpectEntry, runs: readonly StormMeasures[]): number => {
  const of = (figure: keyof StormMeasures): number[] => runs.map((run) => run[figure]);
  switch (what) {
    case 'success':
      return meanOf(of('success'));
    case 'load':
      return meanOf(of('load'));
    case 'p99_ms':
      return meanOf(of('p99'));
    case 'attempts':
      return meanOf(of('attempts'));
    case 'effects':
      return Math.max(...of('effects'));
    case 'recovery_s':
      return Math.max(...of('recoveryS'));
  }
};

const isByPolicy = (expect: ScenarioFile['expect']): expect is Record<string, ExpectEntry> =>
  Object.values(expect ?? {}).some((value) => typeof value === 'object');

const expectationsOf = ({ expect }: ScenarioFile, policy: string, runs: readonly StormMeasures[]): Expectation[] => {
  const entry: ExpectEntry | undefined = isByPolicy(expect) ? expect[policy] : expect;
  return (Object.entries(entry ?? {}) as [keyof ExpectEntry, number][]).map(([what, limit]) => {
    const value = valueOf(what, runs);
    const met = (figure: number): boolean => (what === 'success' ? figure >= limit : figure <= limit);
    const holds = met(value);
    // One lost call of a million rounds to none: such a figure is shown as it is.
    const shown = met(rounded(value)) === holds ? rounded(value) : value;
    return { what, limit, value: value === Infinity ? null : shown, holds };
  });
};

const policiesOf = ({ policies }: ScenarioFile, given: SimulateOptions['policies']): [string, PolicyFile][] => {
  const chosen = Object.entries(given ?? policies ?? {});
  return chosen.length > 0 ? chosen : [['defaults', {}]];
};

/** An expectation of a policy that is not run would hold whatever happens. */
const checkExpected = ({ expect, policies = {} }: ScenarioFile, run: readonly string[]): void => {
  if (!isByPolicy(expect)) return;
  const names = Object.keys(expect);
  const unknown = names.find((name) => !run.includes(name) && !Object.hasOwn(policies, name));
  if (unknown !== undefined || !names.some((name) => run.includes(name)))
    throw new SimulationInputError(
      `expect: no policy ${JSON.stringify(unknown ?? names[0])} is run; there are ${run.join(', ')}`,
    );
};

/** One policy under each seed. All that is kept of a run is its measures: it may hold millions of calls. */
const outcomeOf = (scenario: ScenarioFile, name: string, seeds: readonly number[], run: Run): PolicyOutcome => {
  let series: Series | undefined;
  const measures = seeds.map((seed) => {
    const storm = run(seed);
    series ??= seriesOf(scenario, storm);
    return measure(scenario, storm);
  });
  if (series === undefined || measures.every(({ calls }) => calls === 0))
    throw new SimulationInputError(
      `clients ask for nothing within duration_s, ${scenario.duration_s} s; make it longer, or have them ask sooner`,
    );
  const figures = figuresOf(measures);
  return { name, figures, expectations: expectationsOf(scenario, name, measures), series };
};

const ENGINES: readonly EngineName[] = ['fidelity', 'fleet'];

type Run = (seed: number) => StormRun;

const seedsFrom = (first: number, count: number): number[] => {
  if (!Number.isSafeInteger(count) || count < 1)
    throw new SimulationInputError(`seeds must be an integer from 1, not ${String(count)}`);
  return Array.from({ length: count }, (_, index) => first + index);
};

/**
 * Runs a scenario once for each policy and seed, in simulated time, and says what each policy made of it. The same
 * scenario, policies and seeds give the same report, to the last byte.
 *
 * @param scenario as `readScenarioFile` gives it, or made in code, which is held to the same
 * @throws SimulationInputError for a scenario or a policy that cannot be run
 *
 * @example
 * const report = simulate(readScenarioFile(await readFile('storm.yaml', 'utf8'), 'storm.yaml'), { seeds: 100 });
 * if (!report.holds) process.exitCode = 1;
 */
export function simulate(scenario: ScenarioFile, options: SimulateOptions = {}): StormReport {
  checkShape(scenarioFileSchema, scenario, 'scenario');
  const { seeds: count = scenario.seeds ?? 20, engine = scenario.engine ?? 'fidelity', maxCalls } = options;
  checkOptions('simulate', options, ['policies', 'seeds', 'engine', 'maxCalls']);
  if (!ENGINES.includes(engine))
    throw new SimulationInputError(`engine must be fidelity or fleet, not ${JSON.stringify(engine)}`);
  checkScenario(scenario, maxCalls);
  const first = scenario.seed ?? 1;
  const chosen = policiesOf(scenario, options.policies);
  for (const [name, policy] of chosen) checkPolicyShape(policy, `policy ${name}`);
  checkPolicies(scenario.tools, Object.fromEntries(chosen), 'policy ');
  const named = chosen.map(([name]) => name);
  checkExpected(scenario, named);
  const seeds = seedsFrom(first, count);
  const sizes = { policies: chosen.length, seeds: count, callsMax: maxCalls ?? ALL_CALLS_MAX };
  checkRuns(scenario, sizes);
  const made = new CallsMade(sizes);
  const policies = chosen.map(([name, policy]): PolicyOutcome => {
    try {
      return outcomeOf(scenario, name, seeds, (seed) => {
        const run = runStorm(scenario, policy, seed, engine, runMaxOf(maxCalls));
        made.ran(run.tally.calls);
        return run;
      });
    } catch (error) {
      if (error instanceof RangeError)
        throw new SimulationInputError(`policy ${name}: ${error.message}`, { cause: error });
      throw error;
    }
  });
  return {
    scenario: scenario.name,
    ...(scenario.about === undefined ? {} : { about: scenario.about }),
    engine,
    seeds: { first, count },
    policies,
    holds: policies.every(({ expectations }) => expectations.every(({ holds }) => holds)),
  };
}
