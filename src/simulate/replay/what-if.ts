import type { TraceEvent } from '../../contract/event.ts';
import type { Fates } from './fates.ts';
import { flipsBetween, outcomesIn, type Flip, type ReplayedCall } from './outcomes.ts';
import type { LayerPolicies } from './policies.ts';
import type { Recording } from './trace/recording.ts';
import { TraceWorld, type Unknowns } from './world.ts';

/** What is said of a policy: ship it, how many calls it makes worse, or that the trace is not enough to tell. */
export type Verdict =
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

/** What came of one assumption about what the trace does not tell. */
export interface Bound {
  /** Calls that succeed. */
  readonly successes: number;
  /** Attempts in all. */
  readonly attempts: number;
  /** Calls that lose their success, or may act twice. */
  readonly worse: number;
  /** Calls that fail in the trace and succeed now. */
  readonly better: number;
}

/** How much of a what-if rests on what the trace does not tell. */
export interface UnknownShare extends Readonly<Unknowns> {
  /** Censored and unmade attempts, as a share of all. */
  readonly share: number;
}

/** What another policy would have done. */
export interface WhatIf {
  /** The name of the policy. */
  readonly name: string;
  /** What is said of it. */
  readonly verdict: Verdict;
  /** Calls in the trace. */
  readonly calls: number;
  /** As it was recorded. */
  readonly recorded: Pick<Bound, 'successes' | 'attempts'>;
  /** By what stands in for the unknown: what succeeds, what fails, and what the same tool did in the same minute. */
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
export const UNKNOWN_MAX = 0.2;

const bound = (before: ReadonlyMap<string, ReplayedCall>, after: ReadonlyMap<string, ReplayedCall>): Bound => {
  const flips = flipsBetween(before, after);
  return {
    ...totals(after),
    worse: flips.filter(({ change }) => change === 'worse').length,
    better: flips.filter(({ change }) => change === 'better').length,
  };
};

const totals = (calls: ReadonlyMap<string, ReplayedCall>): Pick<Bound, 'successes' | 'attempts'> => {
  const all = [...calls.values()];
  return {
    successes: all.filter(({ status }) => status === 'success').length,
    attempts: all.reduce((sum, { attempts }) => sum + attempts, 0),
  };
};

const percent = (share: number): string => `${(share * 100).toFixed(1)} %`;

const verdictOf = ({ good, fitted, bad }: WhatIf['bounds'], { share }: UnknownShare): Verdict => {
  const unknown = (because: string): Verdict => ({ code: 'cannot_tell', text: 'cannot tell', because });
  if (share > UNKNOWN_MAX)
    return unknown(`${percent(share)} of the attempts are not in the trace, and ${percent(UNKNOWN_MAX)} is the most`);
  const worse = Math.max(good.worse, fitted.worse);
  if (worse > 0) return { code: 'worse', text: `worse for ${worse} call${worse === 1 ? '' : 's'}`, calls: worse };
  if (bad.worse > 0)
    return unknown(
      `it is worse for ${bad.worse} calls if what the trace does not tell fails, and for none if it does not`,
    );
  return { code: 'safe', text: 'safe to ship' };
};

/** What other policies would have made of a trace that was found to be what the recorded ones decide. */
export function whatIf(name: string, recording: Recording, fates: Fates, policies: LayerPolicies): WhatIf {
  const before = outcomesIn(recording.events, recording);
  const replay = (assumption: 'good' | 'bad' | 'fitted') => {
    const { events, unknown } = new TraceWorld(recording, policies, assumption, fates).run();
    return { events, unknown, after: outcomesIn(events, recording) };
  };
  const [good, fitted, bad] = [replay('good'), replay('fitted'), replay('bad')];
  const bounds = {
    good: bound(before, good.after),
    fitted: bound(before, fitted.after),
    bad: bound(before, bad.after),
  };
  // The worst of the three: an assumption may spare itself unknown attempts.
  const unknowns = [good, fitted, bad].map(({ unknown }) => ({ ...unknown, share: shareOf(unknown) }));
  const unknown = unknowns.toSorted((a, b) => b.share - a.share)[0] ?? { ...fitted.unknown, share: 0 };
  return {
    name,
    verdict: verdictOf(bounds, unknown),
    calls: before.size,
    recorded: totals(before),
    bounds,
    unknown,
    flips: flipsBetween(before, fitted.after),
    events: { recorded: recording.events, replayed: fitted.events },
  };
}

const shareOf = ({ censored, unmade, attempts }: Unknowns): number =>
  attempts === 0 ? 0 : (censored + unmade) / attempts;
