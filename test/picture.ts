import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** A row of a marble diagram. */
export interface Row {
  /** What stands before the marbles: `attemptTimeout(8)`. */
  readonly label: string;
  /** The marbles, as they are written. */
  readonly marbles: string;
  /** At which millisecond of the picture they begin. */
  readonly startMs: number;
  /** The marbles from the beginning of the picture on, with nothing before their own. */
  readonly fromStart: string;
}

const MARBLES = /^( \* )(\S.*?)( {2,})([-\w|#()^!]*[-|#!)][-\w|#()^!]*|[#!])(?= {2,}|$)/;

const drawn = (block: string): readonly Row[] => {
  const rows = block.split('\n').flatMap((line) => {
    const [, , label, gap, marbles] = MARBLES.exec(line) ?? [];
    if (label === undefined || gap === undefined || marbles === undefined) return [];
    return [{ label, marbles, column: label.length + gap.length }];
  });
  const zero = Math.min(...rows.map(({ column }) => column));
  return rows.map(({ label, marbles, column }) => {
    const startMs = column - zero;
    return { label, marbles, startMs, fromStart: `${'-'.repeat(startMs)}${marbles}` };
  });
};

/** The marble diagrams of a source file's docstrings, in their order. */
const diagramsOf = (path: string): ReadonlyArray<readonly Row[]> => {
  const text = readFileSync(join(import.meta.dirname, '..', path), 'utf8');
  return [...text.matchAll(/^ \* ```\n((?: \* .*\n)+?) \* ```$/gm)].map(([, block = '']) => drawn(block));
};

/**
 * A marble diagram of a docstring, to be run as it is written: what a reader sees is what the test asserts.
 *
 * @param path of the source file
 * @param labels how its rows begin, all of them and in their order
 * @param index which diagram of the file
 */
export function picture<const Labels extends readonly string[]>(
  path: string,
  labels: Labels,
  index = 0,
): { readonly [I in keyof Labels]: Row } {
  const rows = diagramsOf(path)[index] ?? [];
  const wrong =
    rows.length !== labels.length || rows.some(({ label }, place) => !label.startsWith(labels[place] ?? ''));
  if (wrong) throw new Error(`diagram ${index} of ${path} has the rows ${rows.map(({ label }) => label).join(', ')}`);
  return rows as unknown as { readonly [I in keyof Labels]: Row };
}

/** When the one event of a row happens: the `!` of `----!`. */
export const instantOf = ({ fromStart }: Row, event: string): number => fromStart.indexOf(event);

/** The subscription marbles of what begins with a row and is unsubscribed at an instant. */
export const subscribed = ({ startMs }: Row, untilMs: number): string =>
  `${' '.repeat(startMs).replaceAll(' ', '-')}^${'-'.repeat(untilMs - startMs - 1)}!`;

/** The number in a row's label: the 8 of `attemptTimeout(8)`. */
export const numberIn = ({ label }: Row): number => Number(/\d+/.exec(label)?.[0]);
