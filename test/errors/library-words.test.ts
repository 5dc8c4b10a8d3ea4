import { describe, expect, it } from 'vitest';
import type { Classification } from '../../src/contract/error-kind.ts';
import { toToolError } from '../../src/errors/read-error.ts';
import { classify } from '../../src/policy/recovery/classify.ts';
import { LIBRARY_MESSAGES } from './field/library-words.ts';
import { PERMANENT_WORDS, TEMPORARY_WORDS } from './field/plain-words.ts';

const classOf = (text: string): Classification => classify(toToolError(new Error(text), 'tool')).classification;
const missesOf = (texts: readonly string[], expected: Classification): readonly string[] =>
  texts.filter((text) => classOf(text) !== expected);
const textsOf = (expected: Classification, half: number): readonly string[] =>
  LIBRARY_MESSAGES.filter(({ classification }) => classification === expected)
    .filter((_, place) => place % 2 === half)
    .map(({ text }) => text);

/** The share that may be missed. */
const MISSED_MAX = 0.02;

describe('R-1.3 words alone, as libraries say them', () => {
  it('the corpus has more than 300 messages of many sources, half of them temporary, none twice', () => {
    const temporary = LIBRARY_MESSAGES.filter(({ classification }) => classification === 'transient');
    expect(LIBRARY_MESSAGES.length).toBeGreaterThanOrEqual(600);
    expect(temporary.length / LIBRARY_MESSAGES.length).toBeGreaterThanOrEqual(0.5);
    expect(new Set(LIBRARY_MESSAGES.map(({ source }) => source)).size).toBeGreaterThanOrEqual(15);
  });

  // The tables were tuned to the even ones. Asked for the first time, the odd ones were at 97.7 % of the temporary and
  // 96.6 % of the permanent.
  it.each([
    ['transient', 'even', 0],
    ['transient', 'odd', 1],
    ['permanent', 'even', 0],
    ['permanent', 'odd', 1],
  ] as const)('R-1.3 %s messages in %s places: 98 in 100 get their class', (expected, _places, half) => {
    const texts = textsOf(expected, half);
    const misses = missesOf(texts, expected);
    expect(misses.length / texts.length, misses.join('\n')).toBeLessThanOrEqual(MISSED_MAX);
  });

  it.each([
    ['transient', TEMPORARY_WORDS],
    ['permanent', PERMANENT_WORDS],
  ] as const)('R-1.3 plain words, %s: 97 in 100 get their class', (expected, texts) => {
    const misses = missesOf(texts, expected);
    expect(misses.length / texts.length, misses.join('\n')).toBeLessThanOrEqual(0.03);
  });
});
