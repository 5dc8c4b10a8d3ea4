import { MEANINGS, UNICODE } from '../../../inspect/share/glyphs.ts';
import type { ReplayReport } from '../replay.ts';
import { sameText } from '../report.ts';
import type { WhatIf } from '../what-if.ts';
import { flipHtml } from './flip.ts';
import { row, table, words } from './markup.ts';
import { Side } from './sides.ts';
import { STYLE } from './style.ts';

/** Flipped calls that are drawn of each policy, and on the whole page: a person reads the worst. */
const [FLIPS_EACH, FLIPS_ALL] = [50, 200] as const;

const FIGURES = ['calls', 'successes', 'attempts', 'worse', 'better'] as const;
const FIGURE_WORDS: Readonly<Record<(typeof FIGURES)[number], string>> = {
  calls: 'calls that are made',
  successes: 'calls that succeed',
  attempts: 'attempts',
  worse: 'calls that lose their success, or may act twice',
  better: 'calls that fail as recorded, and succeed now',
};
const UNKNOWNS = ['calls', 'censored', 'unmade', 'feedback', 'moved', 'shifted'] as const;
const UNKNOWN_WORDS: Readonly<Record<(typeof UNKNOWNS)[number], string>> = {
  calls: 'calls that hang on what the trace does not tell',
  censored: 'attempts that were cut off, and are now waited for longer',
  unmade: 'attempts that were never made',
  feedback: 'of those, at a tool that mostly failed just then',
  moved: 'attempts made at another time, of which nothing tells what they do',
  shifted: 'attempts made at another time, which do what others around them did',
};

const cell = (name: string, value: number): string => `<data value="${value}" data-figure="${name}">${value}</data>`;

const boundsTable = ({ recorded, bounds }: WhatIf): string => {
  const rows = FIGURES.map((of) =>
    row([
      FIGURE_WORDS[of],
      of !== 'worse' && of !== 'better' ? cell(`recorded.${of}`, recorded[of]) : '',
      ...(['bad', 'fitted', 'good'] as const).map((bound) => cell(`bounds.${bound}.${of}`, bounds[bound][of])),
    ]),
  );
  return table(['', 'recorded', 'at worst', 'expected', 'at best'], rows);
};

const unknownTable = ({ unknown }: WhatIf): string => {
  const rows = UNKNOWNS.map((of) => row([UNKNOWN_WORDS[of], cell(`unknown.${of}`, unknown[of])]));
  const share = `${(unknown.share * 100).toFixed(1)} % of all`;
  return table(
    ['what the trace does not tell', 'how many'],
    [...rows, row(['the greater share, of attempts or calls', share])],
  );
};

const verdictHtml = ({ verdict, calls, flips }: WhatIf): string => {
  const because = verdict.code === 'cannot_tell' ? `: ${verdict.because}` : '';
  const made = flips.filter(({ before }) => before.status === 'not_made').length;
  const more = made === 0 ? '' : ` ${made} more ${made === 1 ? 'is' : 'are'} made that the trace holds nothing of.`;
  return (
    `<p class="verdict ${verdict.code}"><strong>${words(verdict.text)}</strong>${words(because)}</p>` +
    `<p>Of ${calls} calls ${flips.length - made} end otherwise, or take another number of attempts.${more}</p>`
  );
};

/** A policy: the verdict, the bounds, and its flipped calls, the worst first. */
const candidateHtml = (found: WhatIf, index: number, most: number): string => {
  const { name, events, flips } = found;
  const sides = [new Side(events.recorded), new Side(events.replayed)] as const;
  const drawn = new Map<string, string>();
  const shown = flips.slice(0, most).map((flip, place) => flipHtml(flip, sides, drawn, `flip-${index}-${place}`));
  const rest = flips.length - shown.length;
  const more = rest === 0 ? '' : `<p>And ${rest} more, which <code>--json</code> lists.</p>`;
  return (
    `<section id="policy-${index}" data-policy="${words(name)}"><h2>${words(name)}</h2>${verdictHtml(found)}` +
    `<div class="tables">${boundsTable(found)}${unknownTable(found)}</div>${shown.join('')}${more}</section>`
  );
};

/** All policies at a glance; of one alone its own part says it. */
const overview = (candidates: readonly WhatIf[]): string => {
  if (candidates.length < 2) return '';
  const rows = candidates.map(({ name, verdict, bounds: { fitted }, flips }, index) =>
    row([
      `<a href="#policy-${index}">${words(name)}</a>`,
      words(verdict.text),
      String(fitted.successes),
      String(fitted.attempts),
      String(flips.length),
    ]),
  );
  return table(['policy', 'verdict', 'successes', 'attempts', 'flipped calls'], rows, ' class="overview"');
};

const legend = (): string =>
  Object.entries(UNICODE.marks)
    .map(([kind, sign]) => `${kind === 'start' ? '○' : sign} ${MEANINGS[kind as keyof typeof MEANINGS]}`)
    .join(', ');

/**
 * A replay as a page: for each policy the verdict and the bounds, and of each call that it decides otherwise both
 * sides beside each other, the worst first. One file that loads nothing and runs nothing.
 */
export function replayPage({ identity, candidates }: ReplayReport): string {
  let left = FLIPS_ALL;
  const parts = candidates.map((found, index) => {
    const most = Math.min(left, FLIPS_EACH);
    left -= Math.min(most, found.flips.length);
    return candidateHtml(found, index, most);
  });
  const none = candidates.length === 0 ? '<p>No other policy was asked about.</p>' : '';
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>spillway replay</title>
<meta name="viewport" content="width=device-width">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<style>${STYLE}</style></head>
<body><main><h1>What another policy would have made of it</h1>
<p>${sameText(identity)}.</p>
${overview(candidates)}${none}${parts.join('\n')}
<footer>${legend()}</footer></main></body></html>
`;
}
