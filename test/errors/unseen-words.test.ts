import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import type { Classification } from '../../src/contract/error-kind.ts';
import { toToolError } from '../../src/errors/read-error.ts';
import { classify } from '../../src/policy/recovery/classify.ts';
import { LIBRARY_MESSAGES } from './field/library-words.ts';
import { PERMANENT_WORDS, TEMPORARY_WORDS } from './field/plain-words.ts';

/** A message as a program of someone else's words it, without status, code or name beside it. */
interface Message {
  readonly lot: number;
  readonly source: string;
  readonly classification: Classification;
  readonly text: string;
}

const CLASSES: Readonly<Record<string, Classification>> = { t: 'transient', p: 'permanent' };

/**
 * `## lot N`, `# source`, then a message a line: `t` is transient, `p` permanent, by and what the message means,
 * said before the tables were asked. Left out is what careful people read either way: a thing that is there already.
 */
const messages = (): readonly Message[] => {
  let source = '';
  let lot = 0;
  return readFileSync(new URL('field/unseen-words.txt', import.meta.url), 'utf8')
    .split('\n')
    .flatMap((line) => {
      if (line.startsWith('## lot ')) lot = Number(line.slice(7));
      if (line.startsWith('# ')) source = line.slice(2);
      const classification = /^[tp] /.test(line) ? CLASSES[line.slice(0, 1)] : undefined;
      return classification === undefined ? [] : [{ lot, source, classification, text: line.slice(2) }];
    });
};

const MESSAGES = messages();
/** Which half a message is in, for good: nobody chooses. */
const isHeldOut = ({ text }: Message): boolean => (createHash('sha256').update(text).digest()[0] ?? 0) % 2 === 1;
const classOf = (thrown: unknown): Classification => classify(toToolError(thrown, 'tool')).classification;

/** The share that may be missed. */
const MISSED_MAX = 0.02;
/** The lots of which one half, or all, was never tuned to: what they miss is what the next unseen message would. */
const UNTUNED_LOTS: ReadonlySet<number> = new Set([9, 11]);
const missedOf = (messages: readonly Message[]): readonly Message[] =>
  messages.filter(({ classification, text }) => classOf(new Error(text)) !== classification);
const named = (misses: readonly Message[]): string => misses.map(({ source, text }) => `${source}: ${text}`).join('\n');

describe('R-1.3 words alone, as programs that were not looked at before say them', () => {
  it('the corpus has 4,000 messages of 720 sources and more, 1,700 of them temporary, none of them known', () => {
    const temporary = MESSAGES.filter(({ classification }) => classification === 'transient');
    expect(MESSAGES.length).toBeGreaterThanOrEqual(4_000);
    expect(new Set(MESSAGES.map(({ source }) => source)).size).toBeGreaterThanOrEqual(720);
    expect(temporary.length).toBeGreaterThanOrEqual(1_700);
    const texts = MESSAGES.map(({ text }) => text);
    expect(new Set(texts).size).toBe(texts.length);
    const known = new Set([...LIBRARY_MESSAGES.map(({ text }) => text), ...TEMPORARY_WORDS, ...PERMANENT_WORDS]);
    expect(texts.filter((text) => known.has(text))).toEqual([]);
  });

  // Each lot was gathered and labelled after the tables had been tuned to the lots before it. Asked for the first time,
  // of the temporary and the permanent of each: 94.9 and 84.3 in 100, 95.5 and 82.5, 95.8 and 88.0, 94.5 and 84.8, 93.2
  // and 87.7, 92.3 and 91.5, 95.2 and 92.9, 81.5 (of 27) and 84.9. Lot 10, of tools that agents call, was at 95.2 and
  // 81.8: 96.5 and 81.8 in the half that was tuned to, 93.8 and 81.7 in the other, which that left at 93.8 and 81.0
  // until it was opened. Lots 12 to 14, of messages that people ask about, were at 95.7 and 93.5, at 100 and 97.2, and
  // at 93.3 and 90.6, the last of services that one thinks of second; what was known already of those gathered for them
  // is left out. Lots 15 and 16, of servers, protocols, devices and banks, were at 84.1 and 83.2, and at 93.0 and 88.1;
  // lot 17, after those had been mended, at 92.4 and 87.4, and lot 18 at 94.9 and 90.9. Lots 19 to 21, of the
  // first programs that searches of public code came upon, were at 95.9 and 85.7, at 98.6 and 85.5, and at 92.5 and
  // 87.1: many refuse an input in words of their own. Lots 22 to 24, of such programs again, were at 95.2 of 105 and
  // 87.6 of 129; lot 25, written down by another reader, of all trades, at 94.9 and 73.6. What is held here is what has
  // been mended since: of the next message that nobody has seen, 19 in 20 of the temporary and 16 in 20 of the
  // permanent are to be expected right.
  it.each([
    ['transient', 'one half', false],
    ['transient', 'the other half', true],
    ['permanent', 'one half', false],
    ['permanent', 'the other half', true],
  ] as const)('R-1.3 %s messages, %s: 98 in 100 get their class', (expected, _half, held) => {
    const half = MESSAGES.filter(
      (one) => !UNTUNED_LOTS.has(one.lot) && one.classification === expected && isHeldOut(one) === held,
    );
    const misses = missedOf(half);
    expect(misses.length / half.length, named(misses)).toBeLessThanOrEqual(MISSED_MAX);
  });

  // Of lot 9 one half was tuned to, and began at 97.7 and 89.5 in 100; the other was at 95.5 and 84.7, and is at 95.5
  // and 88.1 since the forms for lot 10 were added. Lot 11 was gathered after those, and was at 91.4 and 87.5 when asked
  // first: at 91.4 and 80.0 with the tables before them.
  it.each([
    [9, 'transient', false, 0],
    [9, 'permanent', false, 0.02],
    [9, 'transient', true, 0.05],
    [9, 'permanent', true, 0.12],
    [11, 'transient', false, 0.11],
    [11, 'permanent', false, 0.11],
    [11, 'transient', true, 0.07],
    [11, 'permanent', true, 0.12],
  ] as const)('R-1.3 lot %d, %s, held out: %s: %d is missed at most', (lot, expected, held, missedMax) => {
    const half = MESSAGES.filter(
      (one) => one.lot === lot && one.classification === expected && isHeldOut(one) === held,
    );
    const misses = missedOf(half);
    expect(half.length).toBeGreaterThanOrEqual(lot === 9 ? 44 : 28);
    expect(misses.length / half.length, `${misses.length}/${half.length} ${named(misses)}`).toBeLessThanOrEqual(
      missedMax,
    );
  });

  it('R-12.1 case, odd spaces and quotes, JSON, a stack or a wrapper around it change no class', () => {
    const said = MESSAGES.map(({ text }) => classOf(new Error(text)));
    const forms: ReadonlyArray<(text: string) => unknown> = [
      (text) => text,
      (text) => new Error(text.toUpperCase()),
      (text) => new Error(text.replaceAll("'", '’')),
      (text) => new Error(`  ${text}\n`),
      (text) => new Error(`Error: ${text}`),
      (text) => new Error(`Error executing tool pay: ${text}`),
      (text) => new Error(`**Error:** ${text}`),
      (text) => new Error(`${text}\n    at pay (/srv/app/pay.js:10:3)`),
      (text) => new Error(text.includes('"') ? text : JSON.stringify({ error: { message: text } })),
      (text) => new Error(text.replaceAll(' ', '\u{A0}\u{A0}')),
      (text) => new Error(text.replaceAll(' ', '\t\u{200B}')),
      (text) => ({ message: text }),
      (text) => ({ error: { message: text } }),
      (text) => new Error('', { cause: new Error('', { cause: new Error(text) }) }),
      (text) => new AggregateError([new Error(text)], ''),
    ];
    for (const form of forms) {
      const other = MESSAGES.filter(({ text }, place) => classOf(form(text)) !== said[place]);
      expect(other.map(({ text }) => text)).toEqual([]);
    }
  });
});
