/** A place in a text that cites a rule, or looks as if it did. */
export interface Citation {
  /** As the list of rules would write it: `R-2.3`, `SI-T 2.4`. */
  readonly id: string;
  /** As the text has it. */
  readonly written: string;
  readonly line: number;
}

/** What stands between a prefix and its number. */
const SPACED = new Set(['SI', 'SI-T', 'CLAW', 'AGENT', 'PROXY']);

/**
 * Capitals with a number behind them that cite no rule: encodings, hashes, standards, licences, versions and samples of
 * error texts. Anything else of that shape is a citation, so that a prefix that nobody has defined is found as well.
 */
const NO_RULES = new Set([
  'UTF',
  'SHA',
  'ISO',
  'RFC',
  'SEP',
  'FIPS',
  'HTTP',
  'BSD',
  'FNV',
  'ORA',
  'ABC',
  'SDK',
  'EPROTO',
  'Z',
]);

const PREFIX = String.raw`(?<![\w-])(?<prefix>SI-T|[A-Z]{1,8})`;
const NUMBER = String.raw`\d+(?:\.\d+)*`;
/**
 * What a citation looks like: any capitals, a hyphen and a number; any capitals, a space and a number with a point; or
 * a prefix of ours, in whatever way it is joined to its number.
 */
const SHAPES = [
  `${PREFIX}-(?<number>${NUMBER})`,
  String.raw`${PREFIX} (?<number>\d+\.\d+)(?!\.?\d)`,
  String.raw`(?<![\w-])(?<prefix>SI-T|SI|CLAW|PROXY)[-_ ]?(?<number>${NUMBER})`,
  String.raw`(?<![\w-])(?<prefix>AGENT)[- ]?(?<number>[A-Z]|\d+)\b`,
  String.raw`(?<![\w-])(?<prefix>R|TR)[_ ]?(?<number>\d+\.\d+)(?!\.?\d)`,
].map((source) => new RegExp(source, 'gd'));
/** What goes on behind a citation without its prefix, as ` and 1.2` does. */
export const MORE: RegExp = /^(?:,| and| or| to|\/|–) ?(?<number>\d+\.\d+)(?!\.?\d)/;

/** A number has backslashes in a regular expression, and in prose it may have a dash or a space of another kind. */
const plain = (text: string): string =>
  text
    .replaceAll(/\\+[bBdDnrstwW]/g, (match) => ' '.repeat(match.length))
    .replaceAll('\\', '')
    .replaceAll(/[\u2010-\u2012\u2212]/g, '-')
    .replaceAll(/[\u00A0\u2009\u202F]/g, ' ');

const idOf = (prefix: string, number: string): string => `${prefix}${SPACED.has(prefix) ? ' ' : '-'}${number}`;

/** Every citation in a text, once for each place, in whatever form it is written. */
export function citations(text: string): readonly Citation[] {
  const found = new Map<number, Citation>();
  for (const [index, line] of plain(text).split('\n').entries()) {
    for (const match of SHAPES.flatMap((shape) => [...line.matchAll(shape)])) {
      const { prefix = '', number = '' } = match.groups ?? {};
      if (NO_RULES.has(prefix)) continue;
      let end = match.index + match[0].length;
      found.set(index * 100_000 + end, { id: idOf(prefix, number), written: match[0], line: index + 1 });
      if (!number.includes('.')) continue;
      for (let more = MORE.exec(line.slice(end)); more !== null; more = MORE.exec(line.slice(end))) {
        end += more[0].length;
        const id = idOf(prefix, more.groups?.['number'] ?? '');
        found.set(index * 100_000 + end, { id, written: more[0], line: index + 1 });
      }
    }
  }
  return [...found.values()];
}

/**
 * The ids that a list of rules defines, in its order, each as often as it is there. A rule is a line
 * `- **R-2.3** What holds.` under a heading `## R: whose rules`.
 */
export const definitions = (text: string): ReadonlyArray<{ readonly id: string; readonly group: string }> => {
  let group = '';
  return text.split('\n').flatMap((line) => {
    group = /^## ([A-Z-]+): /.exec(line)?.[1] ?? group;
    const id = /^- \*\*([^*]+)\*\* \S/.exec(line)?.[1];
    return id === undefined ? [] : [{ id, group }];
  });
};
