import type { TraceEvent } from '../../contract/event.ts';
import { boundOf, boundsOf, everyCall, totals, widenedBy, type Bound, type Outcomes } from './certainty/bounds.ts';
import { unsureCalls, type UnsureCalls } from './certainty/calls.ts';
import type { Fates } from './fates.ts';
import { flipsBetween, outcomesIn, type Flip } from './outcomes.ts';
import type { LayerPolicies } from './policies.ts';
import type { Recording } from './trace/recording.ts';
import type { Unknowns } from './certainty/doubts.ts';
import { TraceWorld } from './world.ts';

/** What is said of a policy: ship it, how many calls it makes worse, or that the trace is not enough to tell. */
export type WhatIfVerdict =
  | {
      /** No call loses its success, and none may act twice, whatever is assumed. */
      readonly code: 'safe';
      /** The same for a person. */
      readonly text: 'safe to ship';
    }
  | {
      /** Some calls lose their success, or may act twice. */
      readonly code: 'worse';
      /** `worse for 14 calls`. */
      readonly text: string;
      /** How many calls. */
      readonly calls: number;
    }
  | {
      /** The trace is not enough. */
      readonly code: 'cannot_tell';
      /** The same for a person. */
      readonly text: 'cannot tell';
      /** Why, a sentence. */
      readonly because: string;
    };

/** How much of a what-if rests on what the trace does not tell. */
export interface UnknownShare extends Readonly<Unknowns> {
  /** Calls that hang on what the trace does not tell: through an attempt, a breaker, a budget or another call. */
  readonly calls: number;
  /** Censored, unmade and moved attempts as a share of all, or those calls as a share of all, whichever is more. */
  readonly share: number;
}

/** What another policy would have done. */
export interface WhatIf {
  /** The name of the policy. */
  readonly name: string;
  /** What is said of it. */
  readonly verdict: WhatIfVerdict;
  /** Calls in the trace. */
  readonly calls: number;
  /** As it was recorded. */
  readonly recorded: Pick<Bound, 'calls' | 'successes' | 'attempts'>;
  /**
   * What of it is sure: at its best and at its worst, each figure on its own; between them with what the same tool did
   * in the same minute for what the trace does not tell.
   */
  readonly bounds: Readonly<Record<'good' | 'fitted' | 'bad', Bound>>;
  /** What of it the trace does not tell. */
  readonly unknown: UnknownShare;
  /** Calls that are decided otherwise when the unknown is fitted, worst first. */
  readonly flips: readonly Flip[];
  /** The events of both sides, for who shows them beside each other. */
  readonly events: {
    /** As recorded. */
    readonly recorded: readonly TraceEvent[];
    /** As the other policy decides, the unknown fitted; `callId` and `turnId` are those of the recording. */
    readonly replayed: readonly TraceEvent[];
  };
}

/** Above this share of unknown attempts nothing is said. */
const UNKNOWN_MAX = 0.2;

const percent = (share: number): string => `${(share * 100).toFixed(1)} %`;

const verdictOf = (
  { good, fitted, bad }: WhatIf['bounds'],
  { share, calls }: UnknownShare,
  all: number,
  sampled: Sampled | undefined,
  untouched: string | undefined,
): WhatIfVerdict => {
  const unknown = (because: string): WhatIfVerdict => ({ code: 'cannot_tell', text: 'cannot tell', because });
  if (untouched !== undefined) return unknown(untouched);
  if (calls > UNKNOWN_MAX * all)
    return unknown(
      `${calls} of ${all} calls hang on what the trace does not tell, and ${percent(UNKNOWN_MAX)} is the most`,
    );
  if (share > UNKNOWN_MAX)
    return unknown(`${percent(share)} of the attempts are not in the trace, and ${percent(UNKNOWN_MAX)} is the most`);
  if (good.worse > 0)
    return {
      code: 'worse',
      text: `worse for ${fitted.worse} call${fitted.worse === 1 ? '' : 's'}`,
      calls: fitted.worse,
    };
  if (bad.worse > 0)
    return unknown(
      `it is worse for ${bad.worse} calls if what the trace does not tell goes badly, and for none if it does not`,
    );
  // What chance takes from one call it gives to another, where the tool fares as well at the one time as at the other.
  if (sampled !== undefined && sampled.best < fitted.successes)
    return unknown(
      `${fitted.successes} calls succeed, and at most ${sampled.best} if what other attempts met is what these meet`,
    );
  if (sampled !== undefined && sampled.successes > UNKNOWN_MAX * all)
    return unknown(`chance alone leaves ${sampled.successes} successes open, and ${percent(UNKNOWN_MAX)} is the most`);
  if (sampled !== undefined && sampled.repeats > 0)
    return unknown(`${sampled.repeats} more calls may act twice if their attempts meet what others met at that time`);
  return { code: 'safe', text: 'safe to ship' };
};

const inWords = (value: unknown): string => JSON.stringify(value);

/** Why nothing in the trace says anything of the change; `undefined` where something does, or nothing changes. */
const untouchedBy = ({ events, tools, retryBudget }: Recording, policies: LayerPolicies): string | undefined => {
  const called = new Set(events.flatMap((event) => (event.source === 'call' ? [event.toolName] : [])));
  if (called.size === 0) return 'there is no call in the trace';
  const recorded = new Map(tools.map((tool) => [tool.name, inWords(tool)]));
  const changed = policies.tools.filter((tool) => recorded.get(tool.name) !== inWords(tool)).map(({ name }) => name);
  const isElsewhere = changed.length === 0 || changed.some((name) => called.has(name));
  if (isElsewhere || inWords(retryBudget) !== inWords(policies.retryBudget)) return undefined;
  return `no call of ${changed.join(', ')} is in the trace, and no other policy is changed`;
};

/** How often what attempts do at another time is drawn anew. */
const SAMPLES = 16;

/** What chance makes of a policy whose attempts are made at other times. */
interface Sampled {
  readonly widened: Pick<WhatIf['bounds'], 'good' | 'bad'>;
  /** The most successes of a sample. */
  readonly best: number;
  /** Between how many successes at the least and at the most nothing is sure then. */
  readonly successes: number;
  /** Calls that may act twice then, and did not. */
  readonly repeats: number;
}

/** What other policies would have made of a trace that was found to be what the recorded ones decide. */
export function whatIf(name: string, recording: Recording, fates: Fates, policies: LayerPolicies): WhatIf {
  const before = outcomesIn(recording.events, recording);
  const runs = (['good', 'fitted', 'bad'] as const).map((assumption) =>
    new TraceWorld(recording, policies, assumption, fates).run(),
  );
  const after = runs.map(({ events }) => outcomesIn(events, recording));
  const unsure = unsureCalls(recording, runs, policies);
  const fitted = after[1] ?? before;
  const sure = { ...boundsOf(before, after, unsure, policies), fitted: boundOf(before, fitted) };
  // The worst of the three: an assumption may spare itself unknown attempts.
  const shares = runs.map((run) => ({ ...run.unknown, share: shareOf(run.unknown) }));
  const worst = shares.reduce((a, b) => (b.share > a.share ? b : a));
  // Of those as well that only the other policy has made.
  const all = everyCall([before, ...after]).size;
  const share = Math.max(worst.share, all === 0 ? 0 : unsure.all.size / all);
  const unknown = { ...worst, calls: unsure.all.size, share };
  const sampled =
    worst.shifted === 0 ? undefined : sampledOf(recording, fates, policies, { unsure, before, after, sure });
  const bounds = { ...sure, ...sampled?.widened };
  return {
    name,
    verdict: verdictOf(sure, unknown, all, sampled, untouchedBy(recording, policies)),
    calls: before.size,
    recorded: totals(before),
    bounds,
    unknown,
    flips: flipsBetween(before, fitted),
    events: { recorded: recording.events, replayed: runs[1]?.events ?? [] },
  };
}

/** What three runs have shown. */
interface Found {
  readonly unsure: UnsureCalls;
  readonly before: Outcomes;
  readonly after: readonly Outcomes[];
  readonly sure: WhatIf['bounds'];
}

const sampledOf = (
  recording: Recording,
  fates: Fates,
  policies: LayerPolicies,
  { unsure, before, after, sure }: Found,
): Sampled => {
  const samples = Array.from({ length: SAMPLES }, (_, sample) =>
    outcomesIn(new TraceWorld(recording, policies, 'fitted', fates, sample).run().events, recording),
  );
  const repeats = (calls: Outcomes): number => [...calls.values()].filter(({ repeatsEffect }) => repeatsEffect).length;
  const bounds = samples.map((calls) => boundsOf(before, [calls], unsure, policies));
  const widened = widenedBy(sure, bounds, everyCall([before, ...after, ...samples]).size);
  return {
    widened,
    best: Math.max(...bounds.map(({ good }) => good.successes)),
    successes: widened.good.successes - widened.bad.successes,
    repeats: Math.max(...samples.map(repeats)) - repeats(before),
  };
};

const shareOf = ({ censored, unmade, moved, attempts }: Unknowns): number =>
  attempts === 0 ? 0 : (censored + unmade + moved) / attempts;
