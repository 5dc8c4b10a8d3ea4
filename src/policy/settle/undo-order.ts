import type { Journal, JournalEntry } from '../../contract/settle/journal.ts';
import type { Compensation, LeftBehind } from '../../contract/turn.ts';

/** An entry, and those that have to be undone before it: what builds on what it did. */
export interface UndoStep {
  readonly entry: JournalEntry;
  readonly first: readonly JournalEntry[];
}

/** What may have to be undone, the last that began first: each comes after those that build on it. */
export const undoSteps = (entries: readonly JournalEntry[]): readonly UndoStep[] => {
  const built = new Map<string, JournalEntry[]>();
  for (const entry of entries)
    for (const id of entry.after) {
      const known = built.get(id);
      if (known === undefined) built.set(id, [entry]);
      else known.push(entry);
    }
  return entries.map((entry) => ({ entry, first: built.get(entry.id) ?? [] })).toReversed();
};

/** Whether an entry is still to be undone, or to be asked about. */
export const isOpen = ({ state }: JournalEntry): boolean => state === 'begun' || state === 'done';

/**
 * What became of undoing a turn.
 * @param ownerOf who must act about what stays
 * @param passed what went straight through to its tools, and stays
 */
export const compensationIn = (
  { reason = 'crashed', entries }: Journal,
  ownerOf: (entry: JournalEntry) => string,
  passed: readonly LeftBehind[] = [],
): Compensation => {
  const shared = idsIn(entries, 'shared');
  const stays = entries
    .filter((entry) => entry.state === 'compensation_failed' || isOpen(entry))
    .map((entry): LeftBehind => {
      const { id, toolName, callKey, message = 'it was not come to; resume() goes on with it', halfUndone } = entry;
      const left = { id, toolName, callKey, why: message, owner: ownerOf(entry) };
      return halfUndone === true ? { ...left, halfUndone } : left;
    });
  return {
    reason,
    compensated: idsIn(entries, 'compensated'),
    stays: [...stays, ...passed],
    ...(shared.length === 0 ? {} : { shared }),
  };
};

const idsIn = (entries: readonly JournalEntry[], of: JournalEntry['state']): string[] =>
  entries.filter(({ state }) => state === of).map(({ id }) => id);

const sentence = (words: string): string => `${words.charAt(0).toUpperCase()}${words.slice(1)}`;

/**
 * A sentence for the person who must act. @param redact takes secrets out of a name, before it is put into
 * words
 */
export const leftBehindSentence = (
  { toolName, why, owner, halfUndone }: LeftBehind,
  isDone: boolean,
  redact: (name: string) => string,
): string => {
  const name = redact(toolName).replaceAll('_', ' ');
  const reason = why.replace(/[.\s]+$/, '');
  if (halfUndone === true)
    return [
      `${sentence(name)} was done, and may have been undone: ${reason}.`,
      `${sentence(owner)} must look whether it is still there before it is undone by hand.`,
    ].join(' ');
  const stays = isDone ? 'was done, could not be undone, and stays' : 'may have been done, and may stay';
  return `${sentence(name)} ${stays}: ${reason}. ${sentence(owner)} must look at it and undo it by hand.`;
};
