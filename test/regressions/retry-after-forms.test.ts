// Was: `Retry-After: try 60` was a date of the past, so retried at once. Now: one of three forms of a date, seconds, or
// a refusal.
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseRetryAfter } from '../../src/errors/structure.ts';

const NOW_MS = Date.UTC(1994, 10, 6, 8, 49, 0);
const wallNow = (): number => NOW_MS;

describe('R-2.4 the forms of Retry-After', () => {
  it.each([
    ['Sun, 06 Nov 1994 08:49:37 GMT', 37_000],
    ['Sunday, 06-Nov-94 08:49:37 GMT', 37_000],
    ['Sun Nov  6 08:49:37 1994', 37_000],
    ['Sat, 05 Nov 1994 08:49:37 GMT', 0],
    [' 7 ', 7_000],
    ['0', 0],
    ['1.5', 1_500],
  ])('R-2.4 %s is read', (text, ms) => expect(parseRetryAfter(text, wallNow)).toBe(ms));

  it.each([
    'try 60',
    'soon 5',
    'rate limited: 60',
    'Mon 5',
    'may 3',
    '',
    '+5',
    '5s',
    '30 seconds',
    'PT30S',
    '1e3',
    '0x10',
    '1994-11-06T08:49:37Z',
    '06 Nov 1994 08:49:37 GMT',
    'Sun, 06 Nov 1994 08:49:37 +0100',
    'Sun, 31 Feb 1994 08:49:37 GMT',
    'Sun, 06 Nov 1994 25:49:37 GMT',
    'Sun, 06 Nov 1994',
    'Infinity',
    'NaN',
    '5, 10',
  ])('R-2.4 %s means: do not retry', (text) => expect(parseRetryAfter(text, wallNow)).toBeNaN());

  it('R-2.4 milliseconds are a number and nothing else', () => {
    expect(parseRetryAfter('250', wallNow, 1)).toBe(250);
    for (const text of ['Mon 5', 'Sun, 06 Nov 1994 08:49:37 GMT', 'soon'])
      expect(parseRetryAfter(text, wallNow, 1)).toBeNaN();
  });

  it('R-2.4 two digits of a year are the nearer century', () => {
    const inMs = (text: string): number | undefined => parseRetryAfter(text, () => Date.UTC(2026, 0, 1));
    expect(inMs('Friday, 02-Jan-26 00:00:00 GMT')).toBe(86_400_000);
    expect(inMs('Sunday, 06-Nov-94 08:49:37 GMT')).toBe(0);
  });

  it('R-2.4 any date is read back to the second, in all three forms', () => {
    const days = ['Sun', 'Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat'];
    const longDays = ['Sunday', 'Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday'];
    const checked = fc.check(
      fc.property(fc.integer({ min: 1, max: 40 * 365 * 86_400 }), (ahead) => {
        const date = new Date(NOW_MS + ahead * 1_000);
        const [, day = '', month = '', year = '', clock = ''] =
          /^..., (..) (...) (....) (\S+) GMT$/.exec(date.toUTCString()) ?? [];
        const weekday = date.getUTCDay();
        const forms = [
          date.toUTCString(),
          `${longDays[weekday]}, ${day}-${month}-${year.slice(2)} ${clock} GMT`,
          `${days[weekday]} ${month} ${day.replace(/^0/, ' ')} ${clock} ${year}`,
        ];
        return forms.every((form) => parseRetryAfter(form, wallNow) === ahead * 1_000);
      }),
    );
    expect(checked.failed, `seed ${checked.seed}: ${String(checked.counterexample)}`).toBe(false);
  });

  it('R-2.4 whatever is sent is a number or nothing, and an invented text is no date', () => {
    const checked = fc.check(
      fc.property(fc.oneof(fc.anything(), fc.string(), fc.stringMatching(/^[a-z]{3,9},? [\w:-]{1,12}$/)), (value) => {
        const hint = parseRetryAfter(value, wallNow);
        if (value === undefined || value === null) return hint === undefined;
        if (typeof value === 'string' && !/^\s*-?\d/.test(value) && !/\d\d:\d\d:\d\d/.test(value))
          return Number.isNaN(hint);
        return typeof hint === 'number';
      }),
      { numRuns: 2_000 },
    );
    expect(checked.failed, `seed ${checked.seed}: ${String(checked.counterexample)}`).toBe(false);
  });
});
