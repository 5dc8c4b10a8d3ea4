import type { QueueServerEntry, ScenarioFile } from '../../contract/formats/scenario-entry.ts';
import { Durations, quantile } from './durations.ts';
import type { StormRun } from './run.ts';

/** What one run came to. Times are milliseconds, but for `recoveryS`. */
export interface StormMeasures {
  /** Calls, or turns, that clients began. */
  readonly calls: number;
  /** The share of calls that succeeded. */
  readonly success: number;
  /** The time that half of them took at the most. */
  readonly p50: number;
  /** The time that 95 % took at the most. */
  readonly p95: number;
  /** The time that 99 % took at the most. */
  readonly p99: number;
  /** Attempts a call, on average. */
  readonly attempts: number;
  /** The attempts of the busiest bucket, in times of the calls of the one with the most calls. */
  readonly load: number;
  /** Seconds from the end of the trouble until calls succeed again; `Infinity` where they never do. */
  readonly recoveryS: number;
  /** Calls that a breaker refused. */
  readonly refused: number;
  /** Calls that took effect more than once. */
  readonly doubled: number;
  /** How often one call took effect at the most. */
  readonly effects: number;
  /** When the last call ended, in seconds. */
  readonly doneS: number;
}

/** The share of the calls of a bucket that has to succeed for the bucket to be well. */
const WELL = 0.95;

/** When the last trouble that the scenario itself names ends, in seconds; `undefined` where it names none. */
const troubleEndS = ({ servers, clients }: ScenarioFile): number | undefined => {
  const queues = Object.values(servers).filter((server): server is QueueServerEntry => !('row' in server));
  const ends = [
    ...queues.flatMap(({ dips = [], outages = [], bursts = [] }) => [...dips, ...outages, ...bursts]),
    ...clients.flatMap((entry) => ('poisson' in entry ? (entry.poisson.surges ?? []) : [])),
  ].map(({ to_s }) => to_s);
  return ends.length === 0 ? undefined : Math.max(...ends);
};

const recoveryOf = (scenario: ScenarioFile, { tally }: StormRun): number => {
  const endS = troubleEndS(scenario);
  if (endS === undefined) return 0;
  const { buckets, bucketMs } = tally;
  const last = buckets.findLastIndex(({ offered }) => offered > 0);
  const bad = buckets.findLastIndex(({ offered, succeeded }) => offered > 0 && succeeded < WELL * offered);
  if (bad === -1) return 0;
  // What is bad in the last bucket in which anybody asked was never seen to be well.
  return bad === last ? Infinity : Math.max(0, ((bad + 1) * bucketMs) / 1_000 - endS);
};

/** What a run came to, in the figures of the table. */
export function measure(scenario: ScenarioFile, run: StormRun): StormMeasures {
  const { tally } = run;
  const sorted = Durations.sorted(tally.buckets.map(({ durationsMs }) => durationsMs));
  const { calls, attempts, successes, refused, buckets, endMs } = tally;
  const most = (of: 'attempts' | 'offered'): number => buckets.reduce((max, bucket) => Math.max(max, bucket[of]), 0);
  const { doubled, most: effects } = tally.effects;
  return {
    calls,
    success: calls === 0 ? 1 : successes / calls,
    p50: quantile(sorted, 0.5),
    p95: quantile(sorted, 0.95),
    p99: quantile(sorted, 0.99),
    attempts: calls === 0 ? 0 : attempts / calls,
    load: most('attempts') / Math.max(1, most('offered')),
    recoveryS: recoveryOf(scenario, run),
    refused,
    doubled,
    effects,
    doneS: endMs / 1_000,
  };
}
