import type { ClientsEntry, LatencyEntry, ScenarioFile } from '../../../contract/formats/scenario-entry.ts';
import { SimulationInputError } from '../../policy-file.ts';
import { Z99 } from '../chance.ts';

/** More calls than a small machine has memory for: how long each took is kept until the end of its run. */
export const CALLS_MAX = 10_000_000;
/** More calls than the layer itself is simulated with in half an hour. */
export const ALL_CALLS_MAX = 30_000_000;
/** How to have a simulation that is larger. */
const OR_MORE = 'or allow more (--max-calls, or maxCalls in code)';
/** More buckets than a chart has points for. */
const BUCKETS_MAX = 1_000_000;
/** More numbers than are drawn in a minute, of which most are thrown away. */
const DRAWS_MAX = 1_000_000_000;
/** More changes of a weather than anything could ask about. */
const CHANGES_MAX = 10_000_000;

const refuse = (message: string): never => {
  throw new SimulationInputError(message);
};

/** As a person writes it: three digits, and no more zeros than needed; `up` where less would not do. */
const shown = (value: number, up = false): string => {
  if (value > 1e15) return value > 1e300 ? 'endlessly many' : value.toPrecision(3);
  const unit = 10 ** (Math.floor(Math.log10(value)) - 2);
  return Number(((up ? Math.ceil(value / unit - 1e-6) : Math.round(value / unit)) * unit).toPrecision(3)).toString();
};

/** About how many calls clients make, and what of them would have to be otherwise to have them make `most`. */
interface Size {
  readonly calls: number;
  readonly what: string;
  readonly remedy: (most: number) => string;
}

type Of<K extends string> = ClientsEntry extends infer E ? (E extends Record<K, infer V> ? V : never) : never;

const poissonSize = ({ rate_per_s, surges = [] }: Of<'poisson'>, durationS: number): Size => {
  const more = surges.map(({ from_s, to_s, factor }) => {
    const lastsS = Math.max(0, Math.min(to_s, durationS) - Math.min(from_s, durationS));
    return lastsS * (factor - 1);
  });
  const factorS = more.reduce((sum, seconds) => sum + seconds, durationS);
  return {
    calls: rate_per_s * factorS,
    what: `rate_per_s ${rate_per_s}${surges.length === 0 ? '' : ' with its surges'}`,
    remedy: (most) => `ask for a rate_per_s of ${shown(most / factorS)} at the most`,
  };
};

const burstSize = ({ count, at_s = 0, every_s = Infinity }: Of<'burst'>, durationS: number): Size => {
  const leftS = durationS - at_s;
  return {
    calls: leftS <= 0 ? 0 : count * Math.max(1, leftS / every_s),
    what: `bursts of ${count}${every_s === Infinity ? '' : ` with every_s ${every_s}`}`,
    remedy: (most) =>
      count > most ? 'ask for a lower count' : `ask for an every_s of ${shown((count * leftS) / most, true)} or more`,
  };
};

const meanMs = (latency: LatencyEntry): number => {
  if ('constant_ms' in latency) return latency.constant_ms;
  if ('values_ms' in latency) return latency.values_ms.reduce((sum, ms) => sum + ms, 0) / latency.values_ms.length;
  // Not read yet: nothing is said of those who wait for it before the run counts what they ask.
  if ('trace' in latency) return Infinity;
  const sigma = Math.log(latency.p99_ms / latency.median_ms) / Z99;
  return latency.median_ms * Math.exp(sigma ** 2 / 2);
};

/** How long each of so many users waits for an answer at the least: for the work, and in a queue for the others. */
const answerMs = ({ servers, tools }: ScenarioFile, toolName: string, users: number, thinkMs: number): number => {
  const server = servers[tools[toolName]?.server ?? ''];
  if (server === undefined) return 0;
  if ('row' in server) return 4 * server.row.network_ms.mean;
  const { workers = Infinity, queue = Infinity } = server;
  const workMs = meanMs(server.latency);
  if (workMs === Infinity) return workMs;
  const queuedMs = (Math.min(users, workers + queue) * workMs) / workers - thinkMs;
  return Math.max(workMs, queuedMs);
};

const closedSize = (entry: Of<'closed'>, scenario: ScenarioFile, asked: readonly string[]): Size => {
  const { users, think_ms } = entry;
  const durationMs = scenario.duration_s * 1_000;
  const waitMs = Math.max(0, ...asked.map((name) => answerMs(scenario, name, users, think_ms)));
  return {
    calls: users * (durationMs / (think_ms + waitMs)),
    what: `${users} users with think_ms ${think_ms}`,
    remedy: (most) => `have them think for ${shown((users * durationMs) / most, true)} ms or longer`,
  };
};

const sizeOf = (entry: ClientsEntry, scenario: ScenarioFile): Size => {
  const { plans = {}, tools, duration_s } = scenario;
  const nodes = entry.plan === undefined ? undefined : plans[entry.plan]?.nodes;
  const asked = nodes?.map(({ tool }) => tool) ?? [entry.tool ?? Object.keys(tools)[0] ?? ''];
  const size =
    'poisson' in entry
      ? poissonSize(entry.poisson, duration_s)
      : 'burst' in entry
        ? burstSize(entry.burst, duration_s)
        : closedSize(entry.closed, scenario, asked);
  return {
    ...size,
    calls: size.calls * asked.length,
    remedy: (most) => size.remedy(most / asked.length),
  };
};

const callsIn = (scenario: ScenarioFile): number =>
  scenario.clients.reduce((sum, entry) => sum + sizeOf(entry, scenario).calls, 0);

const mostOf = (callsMax: number): string => `${callsMax} calls are the most that a run takes`;

const checkClients = (scenario: ScenarioFile, callsMax: number): void => {
  const { clients, duration_s } = scenario;
  for (const [index, entry] of clients.entries()) {
    const { calls, what, remedy } = sizeOf(entry, scenario);
    if (calls > callsMax)
      refuse(
        `clients.${index}: ${what} make some ${shown(calls)} calls in duration_s, ${duration_s} s, and ` +
          `${mostOf(callsMax)}; ${remedy(callsMax)}, take a shorter duration_s, ${OR_MORE}`,
      );
    if (!('poisson' in entry)) continue;
    const { rate_per_s, surges = [] } = entry.poisson;
    const factor = Math.max(1, ...surges.map((surge) => surge.factor));
    if (rate_per_s * factor * duration_s > DRAWS_MAX)
      refuse(
        `clients.${index}.surges: a factor of ${factor} has some ${shown(rate_per_s * factor * duration_s)} instants ` +
          `looked at in ${duration_s} s, and ${DRAWS_MAX} are the most; take a lower one, or a shorter duration_s`,
      );
  }
  const all = callsIn(scenario);
  if (all > callsMax)
    refuse(
      `clients make some ${shown(all)} calls in all, and ${mostOf(callsMax)}; ask for fewer, or for a shorter time, ` +
        OR_MORE,
    );
};

/** How many calls one run may make, where so many are allowed for all of them. */
export const runMaxOf = (maxCalls: number = CALLS_MAX): number => {
  if (!Number.isSafeInteger(maxCalls) || maxCalls < 1)
    refuse(`maxCalls must be an integer from 1, not ${String(maxCalls)}`);
  return Math.max(CALLS_MAX, maxCalls);
};

/**
 * @param maxCalls how many calls all runs may make together, where that was said
 * @throws SimulationInputError for a scenario of which a run would not end, or not with the memory that there is
 */
export const checkSize = (scenario: ScenarioFile, maxCalls?: number): void => {
  const { duration_s, bucket_ms = 1_000, weather = {} } = scenario;
  checkClients(scenario, runMaxOf(maxCalls));
  if ((duration_s * 1_000) / bucket_ms > BUCKETS_MAX)
    refuse(`bucket_ms: more than ${BUCKETS_MAX} buckets in ${duration_s} s; take longer ones`);
  for (const [name, { every_s, for_s }] of Object.entries(weather))
    if ((2 * duration_s) / (every_s + for_s) > CHANGES_MAX)
      refuse(`weather.${name}: it changes more than ${CHANGES_MAX} times in ${duration_s} s; have it last longer`);
};

/** @throws SimulationInputError when clients have made more calls than a run takes */
export const checkCalls = (calls: number, callsMax: number): void => {
  if (calls > callsMax)
    refuse(
      `clients have made ${calls} calls and would make more, and ${mostOf(callsMax)}; ask for fewer, or for a ` +
        `shorter time, ${OR_MORE}`,
    );
};

/** @throws SimulationInputError when calls go on until so late that no chart holds it */
export const checkBuckets = (index: number, bucketMs: number): void => {
  if (index > 2 * BUCKETS_MAX)
    refuse(
      `bucket_ms: calls go on until ${shown((index * bucketMs) / 1_000)} s, in buckets of ${bucketMs} ms; ` +
        'take longer ones, or a policy that gives up sooner',
    );
};

/** Of how many runs a simulation is. */
export interface Runs {
  readonly policies: number;
  readonly seeds: number;
  /** The most calls of all of them. */
  readonly callsMax: number;
}

const refuseAll = (calls: number, { policies, seeds, callsMax }: Runs): never =>
  refuse(
    `some ${shown(calls)} calls are made in all by ${policies} ${policies === 1 ? 'policy' : 'policies'} under ` +
      `${seeds} ${seeds === 1 ? 'seed' : 'seeds'}, and ${callsMax} are the most; take fewer seeds, a shorter ` +
      `duration_s, ${OR_MORE}`,
  );

/** @throws SimulationInputError for a simulation that would take hours, unless more calls were allowed */
export const checkRuns = (scenario: ScenarioFile, runs: Runs): void => {
  const all = callsIn(scenario) * runs.policies * runs.seeds;
  if (all > runs.callsMax) refuseAll(all, runs);
};

/** Counts what runs really took, which hangs on how soon clients are answered. */
export class CallsMade {
  readonly #runs: Runs;
  #calls = 0;
  #left: number;

  constructor(runs: Runs) {
    this.#runs = runs;
    this.#left = runs.policies * runs.seeds;
  }

  /** @throws SimulationInputError where those that are left would be too many, should they be like this one */
  ran(calls: number): void {
    this.#calls += calls;
    this.#left--;
    const all = this.#calls + this.#left * calls;
    if (this.#left > 0 && all > this.#runs.callsMax) refuseAll(all, this.#runs);
  }
}
