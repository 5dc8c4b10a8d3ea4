/** The three forms of RFC 9110, section 5.6.7: today's and that of RFC 850, then that of `asctime`. All are in UTC. */
const FORM =
  /^(?:mon|tue|wed|thu|fri|sat|sun)[a-z]*(?:, (\d\d)([ -])([a-z]{3})\2(\d{4}|\d\d) (\d\d:\d\d:\d\d) gmt| ([a-z]{3}) ([ \d]\d) (\d\d:\d\d:\d\d) (\d{4}))$/i;

/** RFC 850 has two digits for a year: the nearest year that ends so, at most 50 years ahead. */
const wholeYear = (year: string, nowMs: number): string => {
  if (year.length === 4) return year;
  const thisYear = new Date(nowMs).getUTCFullYear();
  const near = Math.floor(thisYear / 100) * 100 + Number(year);
  return String(near > thisYear + 50 ? near - 100 : near <= thisYear - 50 ? near + 100 : near);
};

/**
 * The instant of an HTTP date in epoch milliseconds; `NaN` for any other text. `Date.parse` is asked only about what
 * has one of the three forms: it takes `try 60` for a year and a date without a zone for local time.
 */
export function parseHttpDate(text: string, nowMs: number): number {
  const [whole, dayA, separator, monthA, yearA, clockA, monthB, dayB, clockB, yearB] = FORM.exec(text) ?? [];
  // Four digits go with spaces, and two with dashes.
  if (whole === undefined || (yearA !== undefined && (separator === ' ') !== (yearA.length === 4))) return Number.NaN;
  const [day, clock = ''] = [dayA ?? dayB, clockA ?? clockB];
  // A leap second is one of a minute's.
  const leap = /:60$/;
  const ms = Date.parse(
    `${day} ${monthA ?? monthB} ${wholeYear(String(yearA ?? yearB), nowMs)} ${clock.replace(leap, ':59')} GMT`,
  );
  // The 31st of a short month would become the 1st of the next, and 24:00 is no hour.
  return new Date(ms).getUTCDate() === Number(day) ? ms + (leap.test(clock) ? 1_000 : 0) : Number.NaN;
}
