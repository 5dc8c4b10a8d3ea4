import type { ScenarioFile } from '../../contract/formats/scenario-entry.ts';
import { Durations, quantile } from './durations.ts';
import type { StormRun } from './run.ts';
import { rounded } from './statistics.ts';

/** A span in which a breaker was not closed. */
export interface Band {
  /** The tool. */
  readonly toolName: string;
  /** The state that it was in. */
  readonly state: 'open' | 'half_open';
  /** From when, in seconds. */
  readonly fromS: number;
  /** Until when. */
  readonly toS: number;
}

/** What charts show of a run, by bucket of time; each list is as long as `atS`. */
export interface Series {
  /** How long a bucket is. */
  readonly bucketMs: number;
  /** When each bucket begins, in seconds. */
  readonly atS: readonly number[];
  /** Calls that clients began, a second. */
  readonly offered: readonly number[];
  /** Attempts, a second: what servers had to bear. */
  readonly attempts: readonly number[];
  /** Calls begun here that succeeded, a second. */
  readonly succeeded: readonly number[];
  /** The 95th percentile of the calls that ended here, in milliseconds; 0 where none did. */
  readonly p95: readonly number[];
  /** The share of attempts that were retries. */
  readonly retryShare: readonly number[];
  /** When breakers were not closed. */
  readonly bands: readonly Band[];
}

const bandsOf = ({ breakers }: StormRun, endS: number): Band[] => {
  const bands: Band[] = [];
  const open = new Map<string, { readonly state: Band['state']; readonly fromS: number }>();
  for (const { toolName, process, atMs, state } of breakers) {
    const key = `${process} ${toolName}`;
    const before = open.get(key);
    const atS = rounded(atMs / 1_000);
    if (before !== undefined && atS > before.fromS) bands.push({ toolName, ...before, toS: atS });
    open.delete(key);
    if (state === 'open' || state === 'half_open') open.set(key, { state, fromS: atS });
  }
  for (const [key, { state, fromS }] of open)
    bands.push({ toolName: key.slice(key.indexOf(' ') + 1), state, fromS, toS: Math.max(fromS, endS) });
  return bands;
};

/** A run over time, until clients stop asking and what they asked for has ended. */
export function seriesOf(scenario: ScenarioFile, run: StormRun): Series {
  const { buckets, bucketMs } = run.tally;
  const perS = 1_000 / bucketMs;
  const endS = Math.max(scenario.duration_s, (buckets.length * bucketMs) / 1_000);
  return {
    bucketMs,
    atS: buckets.map((_, index) => rounded((index * bucketMs) / 1_000)),
    offered: buckets.map(({ offered }) => rounded(offered * perS)),
    attempts: buckets.map(({ attempts }) => rounded(attempts * perS)),
    succeeded: buckets.map(({ succeeded }) => rounded(succeeded * perS)),
    p95: buckets.map(({ durationsMs }) => rounded(quantile(Durations.sorted([durationsMs]), 0.95))),
    retryShare: buckets.map(({ attempts, retries }) => (attempts === 0 ? 0 : rounded(retries / attempts))),
    bands: bandsOf(run, endS),
  };
}
