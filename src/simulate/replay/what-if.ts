import type { TraceEvent } from '../../contract/event.ts';
import { boundOf, boundsOf, totals, type Bound } from './certainty/bounds.ts';
import { unsureCalls } from './certainty/calls.ts';
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
  readonly recorded: Pick<Bound, 'successes' | 'attempts'>;
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
): WhatIfVerdict => {
  const unknown = (because: string): WhatIfVerdict => ({ code: 'cannot_tell', text: 'cannot tell', because });
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
  return { code: 'safe', text: 'safe to ship' };
};

/** What other policies would have made of a trace that was found to be what the recorded ones decide. */
export function whatIf(name: string, recording: Recording, fates: Fates, policies: LayerPolicies): WhatIf {
  const before = outcomesIn(recording.events, recording);
  const runs = (['good', 'fitted', 'bad'] as const).map((assumption) =>
    new TraceWorld(recording, policies, assumption, fates).run(),
  );
  const after = runs.map(({ events }) => outcomesIn(events, recording));
  const unsure = unsureCalls(recording, runs, policies);
  const fitted = after[1] ?? before;
  const bounds = { ...boundsOf(before, after, unsure, policies), fitted: boundOf(before, fitted) };
  // The worst of the three: an assumption may spare itself unknown attempts.
  const shares = runs.map(({ unknown }) => ({ ...unknown, share: shareOf(unknown) }));
  const worst = shares.reduce((a, b) => (b.share > a.share ? b : a));
  const share = Math.max(worst.share, before.size === 0 ? 0 : unsure.all.size / before.size);
  const unknown = { ...worst, calls: unsure.all.size, share };
  return {
    name,
    verdict: verdictOf(bounds, unknown, before.size),
    calls: before.size,
    recorded: totals(before),
    bounds,
    unknown,
    flips: flipsBetween(before, fitted),
    events: { recorded: recording.events, replayed: runs[1]?.events ?? [] },
  };
}

const shareOf = ({ censored, unmade, moved, attempts }: Unknowns): number =>
  attempts === 0 ? 0 : (censored + unmade + moved) / attempts;
