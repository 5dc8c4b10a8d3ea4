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

/** What became of undoing a turn. @param ownerOf who must act about what stays */
export const compensationOf = (
  { reason = 'crashed', entries }: Journal,
  ownerOf: (entry: JournalEntry) => string,
): Compensation => ({
  reason,
  compensated: entries.filter(({ state }) => state === 'compensated').map(({ id }) => id),
  stays: entries
    .filter((entry) => entry.state === 'compensation_failed' || isOpen(entry))
    .map((entry): LeftBehind => {
      const { id, toolName, callKey, message = 'it was not come to; resume() goes on with it' } = entry;
      return { id, toolName, callKey, why: message, owner: ownerOf(entry) };
    }),
});

/**
 * A sentence for the person who must act. @param redact takes secrets out of a name, before it is put into
 * words
 */
export const leftBehindSentence = (
  { toolName, why, owner }: LeftBehind,
  isDone: boolean,
  redact: (name: string) => string,
): string => {
  const name = redact(toolName).replaceAll('_', ' ');
  const stays = isDone ? 'was done, could not be undone, and stays' : 'may have been done, and may stay';
  return `${name.charAt(0).toUpperCase()}${name.slice(1)} ${stays}: ${why.replace(/[.\s]+$/, '')}. ${owner.charAt(0).toUpperCase()}${owner.slice(1)} must look at it and undo it by hand.`;
};
