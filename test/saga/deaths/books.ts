import { appendFileSync, readFileSync } from 'node:fs';
import type { Compensation } from '../../../src/contract/turn.ts';

export const STOPS = ['flight', 'hotel', 'car', 'tour', 'insurance'] as const;
export type Stop = (typeof STOPS)[number];

/** A line of the books, which everything that outlives a process is in: what was booked and undone, and who was told. */
export type Line =
  | { readonly act: 'book' | 'undo'; readonly turnId: string; readonly stop: Stop; readonly key: string }
  | { readonly act: 'told'; readonly turnId: string; readonly stays: readonly string[] }
  | { readonly act: 'died'; readonly turnId: string; readonly at: string };

/** It is there once this returns, whatever becomes of whoever wrote it. */
export const enter = (path: string, line: Line): void => appendFileSync(path, `${JSON.stringify(line)}\n`);

export const linesIn = (path: string): readonly Line[] =>
  readFileSync(path, 'utf8')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Line);

/** Whether something is booked under a key, and not undone. */
export const stands = (path: string, key: string): boolean => {
  const own = linesIn(path).filter((line) => 'key' in line && line.key === key);
  return own.filter(({ act }) => act === 'book').length > own.filter(({ act }) => act === 'undo').length;
};

/** What a person is told to stay; what another process goes on with is not said to them. */
export const staysIn = (compensation: Compensation | undefined): string[] =>
  (compensation?.stays ?? [])
    .filter(({ why }) => !why.includes('resume() goes on'))
    .map(({ id, halfUndone }) => (halfUndone === true ? `${id}?` : id));

/** Whom it is about: `at` is where its process died. */
const named = (turnId: string, lines: readonly Line[]): string => {
  const places = lines.flatMap((line) => (line.act === 'died' ? [line.at] : []));
  return places.length === 0 ? turnId : `${turnId}, died at ${places.join(' and ')}`;
};

/** What is wrong with one trip, of which everything was told that will be. */
const problemsOf = (lines: readonly Line[], enforcesKey: boolean): string[] => {
  const told = lines.flatMap((line) => (line.act === 'told' ? [line.stays] : []));
  const stays = new Set(told.flat());
  const problems = STOPS.flatMap((stop) => {
    const count = (act: string): number =>
      lines.filter((line) => 'stop' in line && line.stop === stop && line.act === act).length;
    const [made, undone] = [count('book'), count('undo')];
    const isTold = stays.has(stop) || stays.has(`${stop}?`);
    return [
      ...(made > 1 ? [`${stop} was booked ${made} times`] : []),
      ...(undone > 1 ? [`${stop} was undone ${undone} times`] : []),
      ...(undone > made ? [`${stop} was undone, and never booked`] : []),
      ...(made > undone && !isTold ? [`${stop} stays, and nobody was told`] : []),
      ...(made === undone && stays.has(stop) ? [`${stop} is told to stay, and is not there`] : []),
      ...(isTold && enforcesKey ? [`${stop} is told to stay, and could be undone`] : []),
    ];
  });
  const isBooked = lines.some(({ act }) => act === 'book');
  return isBooked && told.length === 0 ? [...problems, 'nobody was told how it ended'] : problems;
};

/** What is wrong in the books. @param enforcesKey undoing twice does no harm, so that nothing has to stay */
export const problemsIn = (path: string, enforcesKey: boolean): string[] => {
  const lines = linesIn(path);
  // Who undoes for others names no trip: it is of the trip that was booked under the key.
  const booked = new Map(lines.flatMap((line) => (line.act === 'book' ? [[line.key, line.turnId] as const] : [])));
  const tripOf = (line: Line): string => ('key' in line ? booked.get(line.key) : undefined) ?? line.turnId;
  return [...Map.groupBy(lines, tripOf)].flatMap(([turnId, own]) =>
    problemsOf(own, enforcesKey).map((problem) => `${named(turnId, own)}: ${problem}`),
  );
};
