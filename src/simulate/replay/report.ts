import type { Flip, ReplayedOutcome } from './outcomes.ts';
import type { ReplayReport } from './replay.ts';
import type { WhatIf } from './what-if.ts';

/** Flipped calls that a report lists; the rest is counted. */
const FLIPS_SHOWN = 20;

/** How a call ended, for a person. */
export const outcomeText = ({ status, code, attempts, repeatsEffect }: ReplayedOutcome): string => {
  if (status === 'not_made') return 'not made';
  const why = code === undefined || code === status ? '' : ` (${code})`;
  return `${status}${why}, ${attempts} attempt${attempts === 1 ? '' : 's'}${repeatsEffect ? ', may act twice' : ''}`;
};

const flipLine = (flip: Flip): string => {
  const whose = flip.nodeId === undefined ? flip.callId : `${flip.nodeId} of turn ${flip.turnId ?? ''}`;
  const ends = [flip.before, flip.after].map(outcomeText).join(' -> ');
  return `  ${flip.change.padEnd(6)} ${flip.toolName} ${whose}: ${ends}`;
};

const range = ({ good, fitted, bad }: WhatIf['bounds'], of: 'calls' | 'successes' | 'attempts'): string => {
  const [low, high] = [Math.min(good[of], fitted[of], bad[of]), Math.max(good[of], fitted[of], bad[of])];
  return low === high ? String(low) : `${fitted[of]} (${low} to ${high})`;
};

/** Of how many calls: they are said on both sides where nodes are made that were not, or are not made any more. */
const successes = ({ recorded, bounds }: WhatIf): string => {
  const of = range(bounds, 'calls');
  const before = of === String(recorded.calls) ? '' : ` of ${recorded.calls}`;
  return `${recorded.successes}${before} -> ${range(bounds, 'successes')} of ${of}`;
};

const candidate = (found: WhatIf): string => {
  const { name, verdict, recorded, bounds, unknown, flips } = found;
  const { censored, unmade, moved, shifted, feedback } = unknown;
  const because = verdict.code === 'cannot_tell' ? `: ${verdict.because}` : '';
  const lines = [
    `${name}: ${verdict.text}${because}`,
    `  successes ${successes(found)}`,
    `  attempts  ${recorded.attempts} -> ${range(bounds, 'attempts')}`,
    `  unknown   ${unknown.calls} calls hang on attempts that are not in the trace: ${censored} waited for longer,`,
    `            ${unmade} never made, ${feedback} of them at a sick server, and ${moved} made at another time`,
    ...(shifted === 0 ? [] : [`  shifted   ${shifted} attempts at another time do what others around them did`]),
    ...flips.slice(0, FLIPS_SHOWN).map(flipLine),
  ];
  if (flips.length > FLIPS_SHOWN) lines.push(`  and ${flips.length - FLIPS_SHOWN} more calls are decided otherwise`);
  return lines.join('\n');
};

/** What the recorded policies made of it once more. */
export const sameText = ({ calls, turns, events }: ReplayReport['identity']): string =>
  `${calls} calls, ${turns} turns, ${events} events: the recorded policies decide all of it ` +
  'once more, without a difference';

/** A replay's findings for a person. */
export function replayText({ identity, candidates }: ReplayReport): string {
  return `${[sameText(identity), ...candidates.map(candidate)].join('\n\n')}\n`;
}

/** A replay's findings for a program: the events of both sides are left out, for they are the trace. */
export const replayJson = ({ identity, candidates }: ReplayReport): unknown => ({
  identity,
  candidates: candidates.map(({ events: _, ...found }) => found),
});
