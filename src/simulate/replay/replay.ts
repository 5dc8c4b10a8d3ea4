import type { PolicyFile } from '../../contract/formats/policy-file.ts';
import type { TraceEvent } from '../../contract/event.ts';
import { SimulationInputError, checkOptions, checkPolicyShape } from '../policy-file.ts';
import { withPolicyFile, withSettings } from './change.ts';
import { identified } from './identity-run.ts';
import { refuseChanged, wholeTrace, type TraceInFile } from './trace/whole.ts';
import type { LayerPolicies } from './policies.ts';
import { whatIf, type WhatIf } from './what-if.ts';

/** Which other policies a trace is asked about. */
export interface ReplayOptions {
  /** Policies, each beside the recorded ones: what a file leaves out stays as it was recorded. */
  readonly policies?: readonly PolicyFile[];
  /** Options that are set on top, in all of them: `pay.retry.maxAttempts=2`. */
  readonly set?: readonly string[];
  /** Values of options, by `pay.retry.maxAttempts`: every combination of them is a policy. */
  readonly rank?: Readonly<Record<string, readonly unknown[]>>;
  /**
   * The trace may have no end yet: its process still runs, or was killed. What is there is replayed up to the last
   * moment at which no call was open. Default: a file without its last line is refused.
   */
  readonly running?: boolean;
}

/** What a replay found. */
export interface ReplayReport {
  /** What the recorded policies decided once more, without a difference. */
  readonly identity: {
    /** Events in all. */
    readonly events: number;
    /** Calls, those of turns included. */
    readonly calls: number;
    /** Turns. */
    readonly turns: number;
  };
  /** The other policies; with `rank` the best first. */
  readonly candidates: readonly WhatIf[];
}

/** More combinations than a person reads; each is replayed three times. */
const CANDIDATES_MAX = 1_000;

/** Every combination of the values, as settings. */
const combinations = (rank: Readonly<Record<string, readonly unknown[]>>): string[][] => {
  const options = Object.entries(rank);
  if (options.length === 0) throw new SimulationInputError('the grid names no option; give each a list of values');
  // Counted first: all of them at once may be more than there is memory for.
  if (options.reduce((count, [, values]) => count * values.length, 1) > CANDIDATES_MAX)
    throw new SimulationInputError(`the grid has more than ${CANDIDATES_MAX} combinations; take values out of it`);
  return options.reduce<string[][]>(
    (all, [path, values]) =>
      all.flatMap((settings) => values.map((value) => [...settings, `${path}=${asText(value)}`])),
    [[]],
  );
};

/** Of numbers also those that JSON has no word for. */
const asText = (value: unknown): string => {
  if (value === Infinity) return 'off';
  return typeof value === 'string' || typeof value === 'number' ? String(value) : JSON.stringify(value);
};

type Candidate = readonly [name: string, policies: LayerPolicies];

/** All policies that are asked about. Made before any is replayed: one that cannot be used is told of at once. */
const candidatesOf = (recorded: LayerPolicies, { policies = [], set = [], rank }: ReplayOptions): Candidate[] => {
  const files = policies.length > 0 ? policies : set.length > 0 || rank !== undefined ? [{}] : [];
  const grid = rank === undefined ? undefined : combinations(rank);
  return files.flatMap((file, index): Candidate[] => {
    const changed = withPolicyFile(recorded, file);
    const name = file.name ?? (set.length > 0 && policies.length === 0 ? set.join(' ') : `policy ${index + 1}`);
    if (grid === undefined) return [[name, withSettings(changed, set)]];
    return grid.map((settings) => [
      [...(file.name === undefined ? [] : [file.name]), ...settings].join(' '),
      withSettings(changed, [...set, ...settings]),
    ]);
  });
};

/** What types promise, for who has none: the command's own options are checked before. */
const checkGiven = (options: ReplayOptions): void => {
  checkOptions('replayTrace', options, ['policies', 'set', 'rank', 'running']);
  const { policies = [], set = [], rank = {} }: { readonly [K in keyof ReplayOptions]?: unknown } = options;
  if (!Array.isArray(policies)) throw new SimulationInputError('policies must be a list of policies');
  for (const [index, policy] of policies.entries()) checkPolicyShape(policy, `policies.${index}`);
  if (!Array.isArray(set) || set.some((setting) => typeof setting !== 'string'))
    throw new SimulationInputError('set must be a list of settings, such as ["pay.retry.maxAttempts=2"]');
  const lists: unknown[] = typeof rank === 'object' && rank !== null ? Object.values(rank) : [rank];
  if (!lists.every(Array.isArray))
    throw new SimulationInputError('rank must be lists of values by option, such as { "pay.timeoutMs": [500, 1000] }');
};

const ORDER = { safe: 0, worse: 1, cannot_tell: 2 } as const;

/** The best first: by verdict, then by who loses, then by successes, then by what it costs. */
const better = (a: WhatIf, b: WhatIf): number =>
  ORDER[a.verdict.code] - ORDER[b.verdict.code] ||
  a.bounds.fitted.worse - b.bounds.fitted.worse ||
  b.bounds.fitted.successes - a.bounds.fitted.successes ||
  a.bounds.fitted.attempts - b.bounds.fitted.attempts;

/**
 * Replays a trace: the recorded policies decide it once more, and must decide the same; then others decide it.
 *
 * @param trace all events of one layer, from its `layer_started` on, until its calls have ended; or a file of them, as
 *   `readNdjson` gives it
 * @throws ReplayRefusal for a trace of which nothing can be said
 * @throws SimulationInputError for a policy that cannot be used
 *
 * @example
 * const trace = await readNdjson('trace.ndjson');
 * const { candidates } = replayTrace(trace, { set: ['pay.retry.maxAttempts=2'] });
 * console.log(candidates[0]?.verdict.text); // safe to ship
 */
export function replayTrace(trace: readonly TraceEvent[] | TraceInFile, options: ReplayOptions = {}): ReplayReport {
  checkGiven(options);
  const { rank, running = false } = options;
  const { recording, fates } = identified(wholeTrace(trace, running));
  refuseChanged(trace);
  const candidates = candidatesOf(recording, options).map(([name, policies]) =>
    whatIf(name, recording, fates, policies),
  );
  const { calls, turns } = recording;
  const inTurns = turns.reduce((sum, turn) => sum + turn.calls.size, 0);
  return {
    identity: { events: recording.events.length, calls: calls.length + inTurns, turns: turns.length },
    candidates: rank === undefined ? candidates : candidates.toSorted(better),
  };
}
