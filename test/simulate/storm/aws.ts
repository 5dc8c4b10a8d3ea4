import { readFileSync } from 'node:fs';
import type { ScenarioFile } from '../../../src/contract/formats/scenario-entry.ts';
import { readScenarioFile } from '../../../src/simulate/storm/scenario/check.ts';
import { measure } from '../../../src/simulate/storm/measures.ts';
import { runStorm } from '../../../src/simulate/storm/run.ts';

/** A scenario of the gallery. */
export const gallery = (name: string): ScenarioFile => {
  const url = new URL(`../../../src/simulate/gallery/${name}.yaml`, import.meta.url);
  return readScenarioFile(readFileSync(url, 'utf8'), name);
};

/** A line of the published table: writes, and milliseconds until the last client has written, with their spread. */
export interface AwsLine {
  readonly clients: number;
  readonly policy: string;
  readonly work: number;
  readonly workSd: number;
  readonly ms: number;
  readonly msSd: number;
}

/**
 * The simulator that was published with "Exponential Backoff And Jitter" (aws-samples/aws-arch-backoff-simulator), run
 * 1,000 times for each line (400 for a hundred clients), base 5 ms and cap 2,000 ms, in its own language.
 */
export const AWS: readonly AwsLine[] = [
  { clients: 10, policy: 'none', work: 50.77, workSd: 4.08, ms: 378.9, msSd: 33.8 },
  { clients: 10, policy: 'no jitter', work: 50.7, workSd: 4.17, ms: 3432.8, msSd: 1307.3 },
  { clients: 10, policy: 'equal jitter', work: 42.35, workSd: 2.49, ms: 723.7, msSd: 177.5 },
  { clients: 10, policy: 'full jitter', work: 38.98, workSd: 2.23, ms: 460.8, msSd: 107 },
  { clients: 10, policy: 'decorrelated', work: 37.68, workSd: 2.22, ms: 437.5, msSd: 86.3 },
  { clients: 40, policy: 'none', work: 466.41, workSd: 15.53, ms: 958.5, msSd: 45.2 },
  { clients: 40, policy: 'no jitter', work: 436.17, workSd: 20.8, ms: 29593.2, msSd: 3036 },
  { clients: 40, policy: 'equal jitter', work: 262.91, workSd: 5.5, ms: 3500.3, msSd: 704.9 },
  { clients: 40, policy: 'full jitter', work: 249.94, workSd: 4.56, ms: 2300.2, msSd: 482.3 },
  { clients: 40, policy: 'decorrelated', work: 272.2, workSd: 9.86, ms: 1714.1, msSd: 400.1 },
  { clients: 100, policy: 'none', work: 2423.29, workSd: 30.18, ms: 2029, msSd: 43.6 },
  { clients: 100, policy: 'no jitter', work: 1860.31, workSd: 58.07, ms: 63565.2, msSd: 3707.9 },
  { clients: 100, policy: 'equal jitter', work: 812.64, workSd: 7.18, ms: 6602.5, msSd: 692.8 },
  { clients: 100, policy: 'full jitter', work: 796.03, workSd: 6.9, ms: 4894.2, msSd: 541.4 },
  { clients: 100, policy: 'decorrelated', work: 1003.41, workSd: 29.7, ms: 4578, msSd: 681 },
];

/** Of a hundred clients fewer were run, there and here. */
const runsOf = (clients: number) => (clients < 100 ? { there: 1_000, here: 150 } : { there: 400, here: 60 });

/** The same contention in the model: how far it is from the published line, in standard errors of both. */
export function contention(line: AwsLine): {
  /** The least share of clients that wrote. */
  readonly success: number;
  readonly ms: number;
  readonly z: { readonly work: number; readonly ms: number };
} {
  const { clients, policy } = line;
  const jitter = gallery('jitter');
  const scenario: ScenarioFile = { ...jitter, clients: [{ burst: { count: clients } }] };
  const { there, here } = runsOf(clients);
  const runs = Array.from({ length: here }, (_, seed) =>
    measure(scenario, runStorm(scenario, jitter.policies?.[policy] ?? {}, seed, 'fleet')),
  );
  const mean = (of: (run: (typeof runs)[number]) => number): number =>
    runs.reduce((sum, run) => sum + of(run), 0) / here;
  const z = (found: number, published: number, deviation: number): number =>
    (found - published) / (deviation * Math.sqrt(1 / here + 1 / there));
  const [work, ms] = [mean(({ attempts }) => attempts * clients), mean(({ doneS }) => doneS * 1_000)];
  return {
    success: Math.min(...runs.map(({ success }) => success)),
    ms,
    z: { work: z(work, line.work, line.workSd), ms: z(ms, line.ms, line.msSd) },
  };
}
