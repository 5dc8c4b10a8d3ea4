import type { UnsureCalls } from './calls.ts';
import { flipsBetween, type ReplayedCall } from '../outcomes.ts';
import type { LayerPolicies } from '../policies.ts';

/** What comes of a policy, of one way to take what the trace does not tell. */
export interface Bound {
  /** Calls that are made: a node of a plan may be made of which the trace holds nothing, or not be made any more. */
  readonly calls: number;
  /** Calls that succeed. */
  readonly successes: number;
  /** Attempts in all. */
  readonly attempts: number;
  /** Calls that lose their success, or may act twice. */
  readonly worse: number;
  /** Calls that fail in the trace and succeed now. */
  readonly better: number;
}

/** How calls end, by their ids. */
export type Outcomes = ReadonlyMap<string, ReplayedCall>;

export const totals = (calls: Outcomes): Pick<Bound, 'calls' | 'successes' | 'attempts'> => {
  const all = [...calls.values()];
  return {
    calls: all.length,
    successes: all.filter(({ status }) => status === 'success').length,
    attempts: all.reduce((sum, { attempts }) => sum + attempts, 0),
  };
};

/** What one run came to. */
export const boundOf = (before: Outcomes, after: Outcomes): Bound => {
  const flips = flipsBetween(before, after);
  return {
    ...totals(after),
    worse: flips.filter(({ change }) => change === 'worse').length,
    better: flips.filter(({ change }) => change === 'better').length,
  };
};

/** The most attempts that a policy has for calls of a tool, those at its alternatives with them. */
const mostAttempts = ({ tools }: LayerPolicies): ((toolName: string) => number) => {
  const own = new Map(tools.map(({ name, policy }) => [name, policy.retry.maxAttempts ?? 1]));
  const most = new Map(
    tools.map(({ name, policy }) => [
      name,
      policy.alternatives.reduce((sum, other) => sum + (own.get(other) ?? 0), own.get(name) ?? 1),
    ]),
  );
  return (toolName) => most.get(toolName) ?? 1;
};

/** The ids of all calls that any of these holds. */
export const everyCall = (outcomes: readonly Outcomes[]): Set<string> =>
  new Set(outcomes.flatMap((calls) => [...calls.keys()]));

/** Calls that are made whatever becomes of others: those from outside, and the first of each turn. */
const askedIn = (before: Outcomes): Set<string> => {
  const turns = new Set<string>();
  const asked = new Set<string>();
  for (const { callId, turnId } of before.values()) {
    if (turnId === undefined || !turns.has(turnId)) asked.add(callId);
    if (turnId !== undefined) turns.add(turnId);
  }
  return asked;
};

/** What is sure of one call, over all runs. */
interface Sure {
  readonly made: readonly [least: boolean, most: boolean];
  readonly succeeds: readonly [least: boolean, most: boolean];
  readonly attempts: readonly [least: number, most: number];
  readonly worse: readonly [least: boolean, most: boolean];
  readonly better: readonly [least: boolean, most: boolean];
}

const sureOf = (
  callId: string,
  before: Outcomes,
  runs: readonly Outcomes[],
  changes: ReadonlyArray<ReadonlyMap<string, string>>,
  { all, unadmitted, spared }: UnsureCalls,
  most: number,
  asked: ReadonlySet<string>,
): Sure => {
  const unsure = all.has(callId);
  const ends = runs.map((run) => run.get(callId)?.status === 'success');
  const attempts = runs.map((run) => run.get(callId)?.attempts ?? 0);
  const changed = (to: string): boolean[] => changes.map((change) => change.get(callId) === to);
  const made = runs.map((run) => run.has(callId));
  const succeeded = before.get(callId)?.status === 'success';
  const mayHelp = unsure || spared.has(callId);
  const range = (of: readonly boolean[], possible: boolean): readonly [boolean, boolean] => [
    !unsure && of.every(Boolean),
    of.some(Boolean) || possible,
  ];
  return {
    made: asked.has(callId) ? [true, true] : range(made, mayHelp),
    succeeds: range(ends, mayHelp),
    attempts: [unadmitted.has(callId) ? 0 : Math.min(...attempts), Math.max(...attempts, mayHelp ? most : 0)],
    worse: range(changed('worse'), unsure && succeeded),
    better: range(changed('better'), mayHelp && !succeeded),
  };
};

type Bounds = Readonly<Record<'good' | 'bad', Bound>>;

const FIGURES = ['calls', 'successes', 'attempts', 'worse', 'better'] as const;
/** How far apart from what samples give on average the truth may be, in their standard deviations. */
const SPREAD = 3;

/** The mean of numbers, and what is so far from it that few are further: a count of chance is never sure to one. */
const spreadOf = (values: readonly number[]): readonly [least: number, most: number] => {
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
  const variance = values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / Math.max(1, values.length - 1);
  const reach = SPREAD * Math.sqrt(variance) + 1;
  return [Math.max(0, Math.floor(mean - reach)), Math.ceil(mean + reach)];
};

/**
 * Bounds that hold what samples of chance give as well, each with what of it is not known.
 * @param calls all that are made in any of them
 */
export function widenedBy({ good, bad }: Bounds, samples: readonly Bounds[], calls: number): Bounds {
  const wide = { good: { ...good }, bad: { ...bad } };
  for (const figure of FIGURES) {
    const [goodSide, badSide] = [
      spreadOf(samples.map((s) => s.good[figure])),
      spreadOf(samples.map((s) => s.bad[figure])),
    ];
    const least = Math.min(good[figure], bad[figure], goodSide[0], badSide[0]);
    const most = Math.max(good[figure], bad[figure], goodSide[1], badSide[1]);
    const isMoreBetter = figure === 'calls' || figure === 'successes' || figure === 'better';
    const limit = figure === 'attempts' ? Infinity : calls;
    wide.good[figure] = Math.min(limit, isMoreBetter ? most : least);
    wide.bad[figure] = Math.min(limit, isMoreBetter ? least : most);
  }
  return wide;
}

/**
 * The bounds of what a policy comes to: of each call that is unsure they hold its best and its worst, whatever all
 * others do. Each figure is bounded on its own.
 */
export function boundsOf(
  before: Outcomes,
  runs: readonly Outcomes[],
  unsure: UnsureCalls,
  policies: LayerPolicies,
): { readonly good: Bound; readonly bad: Bound } {
  const changes = runs.map(
    (run) => new Map(flipsBetween(before, run).map(({ callId, change }): [string, string] => [callId, change])),
  );
  const most = mostAttempts(policies);
  const asked = askedIn(before);
  const good = { calls: 0, successes: 0, attempts: 0, worse: 0, better: 0 };
  const bad = { calls: 0, successes: 0, attempts: 0, worse: 0, better: 0 };
  for (const callId of everyCall([before, ...runs])) {
    const toolName = before.get(callId)?.toolName ?? runs.find((run) => run.has(callId))?.get(callId)?.toolName ?? '';
    const sure = sureOf(callId, before, runs, changes, unsure, most(toolName), asked);
    const { made, succeeds, attempts, worse, better } = sure;
    good.calls += Number(made[1]);
    bad.calls += Number(made[0]);
    good.successes += Number(succeeds[1]);
    bad.successes += Number(succeeds[0]);
    good.attempts += attempts[0];
    bad.attempts += attempts[1];
    good.worse += Number(worse[0]);
    bad.worse += Number(worse[1]);
    good.better += Number(better[1]);
    bad.better += Number(better[0]);
  }
  return { good, bad };
}
