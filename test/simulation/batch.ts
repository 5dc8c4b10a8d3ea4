import { parentPort, workerData } from 'node:worker_threads';
import { config } from 'rxjs';
import { runsTwice, scenarioOf, type ScenarioName, type Sometimes, type Violation } from './findings.ts';
import { plantBug } from './plant.ts';
import type { Simulator } from './simulators.ts';

/** Which seeds to run: every `step`-th of `count` from `from` on. */
export interface BatchOptions {
  readonly from: number;
  readonly count: number;
  readonly step: number;
  /** One scenario for all; without it each seed says which. */
  readonly scenario?: ScenarioName;
  /** The name of a bug to plant first. */
  readonly plant?: string;
  /** Stop at the first seed that fails. */
  readonly first?: boolean;
}

export interface Failed {
  readonly seed: number;
  readonly violations: readonly Violation[];
}

export interface BatchReport {
  readonly seeds: number;
  readonly failed: readonly Failed[];
  /** How many seeds reached each rare state. */
  readonly seen: Readonly<Partial<Record<Sometimes, number>>>;
  /** Of all hashes, whatever the order. */
  readonly digest: number;
  readonly cpuMs: number;
}

/** Failures that are kept; the rest is only more of the same. */
const FAILED_MAX = 20;

/** Node tells of unhandled rejections once it has nothing else to do. */
const idle = (): Promise<void> =>
  new Promise((resolve) => {
    setImmediate(resolve);
  });

export async function runBatch({
  from,
  count,
  step,
  scenario,
  plant,
  first = false,
}: BatchOptions): Promise<BatchReport> {
  if (plant !== undefined) plantBug(plant);
  // Only now, so that what is planted is what is loaded.
  const { loadSimulators } = await import('./simulators.ts');
  const simulators = await loadSimulators();
  const simulate = (seed: number): ReturnType<Simulator> => simulators[scenario ?? scenarioOf(seed)](seed);
  const stray: string[] = [];
  const record = (error: unknown): void =>
    void stray.push(error instanceof Error ? (error.stack ?? error.message) : String(error));
  process.on('unhandledRejection', record);
  config.onUnhandledError = record;
  // A stack costs more than the error it belongs to; one seed replayed alone has them.
  Error.stackTraceLimit = 0;
  const failed: Failed[] = [];
  const seen: Partial<Record<Sometimes, number>> = {};
  let [seeds, digest] = [0, 0];
  const cpu = process.threadCpuUsage();
  for (let seed = from; seed < from + count; seed += step) {
    const outcome = await simulate(seed);
    await idle();
    const violations = [...outcome.violations];
    for (const error of stray.splice(0))
      violations.push({ invariant: 'ERR-1', message: `nobody caught ${error}`, atMs: 0 });
    if (runsTwice(seed) && (await simulate(seed)).hash !== outcome.hash)
      violations.push({ invariant: 'DET-1', message: 'a second run gave another trace', atMs: 0 });
    for (const what of outcome.seen) seen[what] = (seen[what] ?? 0) + 1;
    seeds++;
    digest = (digest + Math.imul(outcome.hash, seed | 1)) | 0;
    if (violations.length > 0 && failed.length < FAILED_MAX) failed.push({ seed, violations });
    if (first && failed.length > 0) break;
  }
  process.off('unhandledRejection', record);
  config.onUnhandledError = null;
  const { user, system } = process.threadCpuUsage(cpu);
  return { seeds, failed, seen, digest, cpuMs: (user + system) / 1000 };
}

// A worker's port has no origin.
// oxlint-disable-next-line unicorn/require-post-message-target-origin
if (parentPort !== null) parentPort.postMessage(await runBatch(workerData as BatchOptions));
