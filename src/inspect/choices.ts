import { fit } from './columns.ts';
import { plain } from './plain.ts';

/** Of a name inside a message. */
const NAME_COLUMNS_MAX = 64;

/** A name from elsewhere as a message shows it. */
export function shownName(name: string): string {
  // Most names are such, and a file can have many thousands of them.
  return /^[!-~]{1,64}$/.test(name) ? name : fit(plain(name), NAME_COLUMNS_MAX, '...');
}

/** Edits from one word to the other; two letters that changed places are one. */
const distance = (a: string, b: string): number => {
  let before: readonly number[] = [];
  let row: readonly number[] = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const changed = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      const isSwapped = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      const swapped = isSwapped ? (before[j - 2] ?? 0) + 1 : Infinity;
      next.push(Math.min((next[j - 1] ?? 0) + 1, (row[j] ?? 0) + 1, changed, swapped));
    }
    [before, row] = [row, next];
  }
  return row[b.length] ?? 0;
};

const LISTED_MAX = 14;

/** What a misspelt name may have been, or else what there is: the remedy at the end of a message. */
export function choices(name: string, names: readonly string[], listedMax: number = LISTED_MAX): string {
  // A place whose name is missing has none to offer.
  const known = names.filter((candidate) => candidate !== '' && !candidate.startsWith(' '));
  const near = known
    .slice(0, 1000)
    .map((candidate) => ({ candidate, edits: distance(name.slice(0, 64), candidate.slice(0, 64)) }))
    .filter(
      ({ candidate, edits }) =>
        candidate.length > 2 && edits <= Math.max(1, Math.floor(Math.min(candidate.length, 64) / 3)),
    )
    .toSorted((a, b) => a.edits - b.edits)[0];
  if (near !== undefined) return `did you mean ${shownName(near.candidate)}?`;
  if (known.length === 0) return 'there is none';
  const more = known.length > listedMax ? ` and ${known.length - listedMax} more` : '';
  return `there is ${known.slice(0, listedMax).map(shownName).join(', ')}${more}`;
}
