import { availableParallelism } from 'node:os';
import { parseArgs } from 'node:util';
import { Worker } from 'node:worker_threads';
import { runBatch, type BatchOptions, type BatchReport } from './batch.ts';
import { INVARIANTS, SOMETIMES, scenarioOf, type ScenarioName } from './findings.ts';
import { PLANTS, plantBug } from './plant.ts';
import { findPlants } from './planted.ts';

/**
 * `npm run simulate -- --seed 7`: one run with all its events. `--seeds 20000 [--from 1]`: many, on all cores.
 * `--scenario layer`, `idempotency`, `recovery`, `switches`, `hedge`, `breakers` or `fleet`: all seeds on that one;
 * else one in four is about keys and their store, and one in sixteen about each of the last five. `--plant <name>`:
 * with a bug of `plant.ts`, in its scenario. `--plants`: each bug of `plant.ts`, which must be found. Ends with 1 when
 * an invariant was broken, or a rare state never reached by a batch large enough to reach it.
 */
const { values } = parseArgs({
  options: {
    seed: { type: 'string' },
    seeds: { type: 'string', default: '20000' },
    from: { type: 'string', default: '1' },
    threads: { type: 'string', default: String(availableParallelism()) },
    plant: { type: 'string' },
    plants: { type: 'boolean', default: false },
    scenario: { type: 'string' },
    /** Stop at the first failure, and print the report as JSON. */
    json: { type: 'boolean', default: false },
  },
});

const print = (line: string): void => void process.stdout.write(`${line}\n`);
const plant = values.plant === undefined ? {} : { plant: values.plant };
const NAMES = Object.keys(SOMETIMES) as ScenarioName[];
const isScenario = (name: string): name is ScenarioName => (NAMES as readonly string[]).includes(name);
if (values.scenario !== undefined && !isScenario(values.scenario))
  throw new RangeError(`--scenario must be ${NAMES.join(' or ')}, not ${values.scenario}`);
const planted = values.plant === undefined ? 'each its own' : (PLANTS[values.plant]?.scenario ?? 'layer');
const scenario: ScenarioName | undefined = values.scenario ?? (planted === 'each its own' ? undefined : planted);
/** Below this a rare state may be missed by chance. */
const ENOUGH = scenario === undefined ? 20_000 : 5_000;

async function replay(seed: number): Promise<boolean> {
  if (values.plant !== undefined) plantBug(values.plant);
  const { loadSimulators } = await import('./simulators.ts');
  const simulators = await loadSimulators();
  const { violations, hash, seen } = await simulators[scenario ?? scenarioOf(seed)](seed, print);
  print(`trace ${(hash >>> 0).toString(16)}; ${[...seen].join(', ')}`);
  for (const { invariant, message, atMs } of violations)
    print(`${invariant} (${INVARIANTS[invariant]}) is broken at ${atMs} ms: ${message}`);
  return violations.length === 0;
}

/** A run leaves nothing behind: most of it dies before a larger nursery is full. */
const YOUNG_MB = 128;

const inWorker = (workerData: BatchOptions): Promise<BatchReport> =>
  new Promise((resolve, reject) => {
    const worker = new Worker(new URL('batch.ts', import.meta.url), {
      workerData,
      resourceLimits: { maxYoungGenerationSizeMb: YOUNG_MB },
    });
    worker.once('message', resolve);
    worker.once('error', reject);
  });

async function batch(count: number, from: number, threads: number): Promise<boolean> {
  const startedMs = performance.now();
  const options = {
    count,
    step: threads,
    ...plant,
    ...(scenario === undefined ? {} : { scenario }),
    first: values.json,
  };
  const reports =
    threads === 1
      ? [await runBatch({ ...options, from })]
      : await Promise.all(
          Array.from({ length: threads }, (_, i) => inWorker({ ...options, from: from + i, count: count - i })),
        );
  const seconds = (performance.now() - startedMs) / 1000;
  const seeds = reports.reduce((sum, report) => sum + report.seeds, 0);
  const failed = reports.flatMap((report) => report.failed).toSorted((a, b) => a.seed - b.seed);
  const cpuMs = reports.reduce((sum, report) => sum + report.cpuMs, 0);
  const digest = reports.reduce((sum, report) => (sum + report.digest) | 0, 0);
  const rare = scenario === undefined ? NAMES.flatMap((name) => SOMETIMES[name]) : SOMETIMES[scenario];
  const reached = rare.map((what) => [what, reports.reduce((sum, { seen }) => sum + (seen[what] ?? 0), 0)] as const);
  const missed = seeds < ENOUGH ? [] : reached.filter(([, times]) => times === 0);
  if (values.json) {
    print(JSON.stringify({ seeds, failed, digest }));
    return true;
  }
  for (const [what, times] of reached) print(`${String(times).padStart(9)}  ${what}`);
  for (const { seed, violations } of failed)
    print(
      `seed ${seed}: ${violations.map(({ invariant, message, atMs }) => `${invariant} at ${atMs} ms: ${message}`).join('\n    ')}`,
    );
  for (const [what] of missed) print(`never reached: ${what}`);
  print(
    `${seeds} seeds from ${from} in ${seconds.toFixed(1)} s: ${Math.round(seeds / seconds)} seeds/s, ${Math.round(seeds / (cpuMs / 1000))} per second of processor time; traces ${(digest >>> 0).toString(16)}`,
  );
  print(
    failed.length === 0 && missed.length === 0
      ? 'every invariant holds'
      : `${failed.length} seeds fail; replay one with --seed <n>, which prints all that happened`,
  );
  return failed.length === 0 && missed.length === 0;
}

const threads = Math.max(1, Number(values.threads));
const work = (): Promise<boolean> => {
  if (values.plants) return findPlants(threads, print);
  return values.seed === undefined
    ? batch(Number(values.seeds), Number(values.from), threads)
    : replay(Number(values.seed));
};
process.exitCode = (await work()) ? 0 : 1;
