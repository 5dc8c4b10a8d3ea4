import { describe, expect, it } from 'vitest';
import { ndjsonLine } from '../../src/sinks/ndjson.ts';
import { choices, columnsOf, duration, fit, pad, plain } from '../../src/cli/show/text.ts';

describe('text from a server', () => {
  it.each([
    ['colours', '\u001b[31mred\u001b[0m', 'red'],
    ['a window title', '\u001b]0;owned\u0007text', 'text'],
    ['a link', '\u001b]8;;http://evil\u0007here\u001b]8;;\u0007', 'here'],
    ['a forged line', 'ok\n2026-01-01 admin logged in', 'ok 2026-01-01 admin logged in'],
    ['an overwritten line', 'bad\rgood', 'bad good'],
    ['C1 controls', 'a\u009b31mb', 'ab'],
    ['a change of direction', 'a\u202eb', 'ab'],
    ['half a character', 'a\ud800b', 'a\ufffdb'],
    ['nothing bad', 'Hintanäkymä 東京 👍', 'Hintanäkymä 東京 👍'],
  ])('loses %s', (_, text, shown) => {
    expect(plain(text)).toBe(shown);
  });

  it('is cut before it is looked at', () => {
    expect(plain('x'.repeat(10_000_000)).length).toBe(4096);
  });

  it('leaves no control character in NDJSON, which reads back the same', () => {
    const value = { text: 'a\u0000\u001b[31m\u009b\u2028\u007f' };
    const line = ndjsonLine(value);
    expect(line).toMatch(/^[ -~]+\n$/);
    expect(JSON.parse(line)).toEqual(value);
  });
});

describe('columns', () => {
  it.each([
    ['abc', 3],
    ['東京', 4],
    ['👍', 2],
    ['e\u0301', 1],
  ])('of %s are %i', (text, columns) => {
    expect(columnsOf(text)).toBe(columns);
  });

  it('are never exceeded by what is fitted', () => {
    expect(fit('abcdef', 4, '…')).toBe('abc…');
    expect(fit('abcd', 4, '…')).toBe('abcd');
    expect(fit('東京都', 4, '…')).toBe('東…');
    expect(fit('abc', 0, '…')).toBe('');
    expect(pad('東', 4)).toBe('東  ');
  });
});

describe('words', () => {
  it.each([
    [0.4, '0 ms'],
    [12.4, '12 ms'],
    [1240, '1.24 s'],
    [59_999, '1 min 0 s'],
    [125_000, '2 min 5 s'],
  ])('for %d ms are %s', (ms, text) => {
    expect(duration(ms)).toBe(text);
  });

  it('for a misspelt name suggest the nearest, else list what there is', () => {
    expect(choices('flight_serch', ['hotel_search', 'flight_search'])).toBe('did you mean flight_search?');
    // Two letters that changed places, the commonest slip, in a name of four.
    expect(choices('shwo', ['show', 'check'])).toBe('did you mean show?');
    expect(choices('tolos', ['run', 'tools'])).toBe('did you mean tools?');
    expect(choices('zzz', ['echo', 'sum'])).toBe('there is echo, sum');
    expect(choices('z', ['s'])).toBe('there is s');
    expect(choices('zzz', [])).toBe('there is none');
    expect(
      choices(
        'zzz',
        Array.from({ length: 20 }, (_, index) => `tool_number_${index}`),
      ),
    ).toMatch(/and 6 more$/);
  });
});
