import type { CompensationReason } from '../contract/settle/compensate.ts';
import type { Journal, JournalEntry, JournalPage, JournalState } from '../contract/settle/journal.ts';
import { anything, list, maybe, number, object, oneOf, text, type Shape } from '../policy/shape/parts.ts';

/** Whatever this package wrote is short enough; what is not its own is refused by its members. */
const ANY_LENGTH = Infinity;
/** Far more than a plan's nodes fill: a damaged record must not have millions of others asked for. */
const PAGES_MAX = 100_000;
const words: Shape<string> = text(ANY_LENGTH, 0);
const yes: Shape<true> = (value, path, issues) => {
  if (value !== true) issues.push({ path, message: 'Invalid input: expected true' });
  return true;
};

const entryShape: Shape<JournalEntry> = object<JournalEntry>({
  id: words,
  toolName: words,
  callId: words,
  callKey: words,
  recordKey: maybe(words),
  input: maybe(anything),
  after: list(words, ANY_LENGTH),
  own: maybe(yes),
  state: oneOf<JournalState>('begun', 'done', 'not_done', 'shared', 'compensated', 'compensation_failed'),
  output: maybe(anything),
  message: maybe(words),
  halfUndone: maybe(yes),
});

const version: Shape<2> = (value, path, issues) => {
  if (value !== 2) issues.push({ path, message: 'Invalid input: expected 2' });
  return 2;
};

/** What is read back from a store is checked: nothing is undone on the word of a damaged record. */
export const journalShape: Shape<Journal> = object<Journal>({
  version,
  writer: words,
  owner: words,
  turnId: words,
  plan: maybe(words),
  session: maybe(words),
  actor: maybe(words),
  tenant: maybe(words),
  state: oneOf<Journal['state']>('running', 'undoing', 'over', 'completed'),
  reason: maybe(oneOf<CompensationReason>('escalated', 'failed', 'canceled', 'deadline', 'crashed')),
  submission: maybe(words),
  pages: number(0, PAGES_MAX, 'whole'),
  entries: list(entryShape, ANY_LENGTH),
});

/** What is read back of a further record is checked, too. */
export const pageShape: Shape<JournalPage> = object<JournalPage>({
  writer: words,
  entries: list(entryShape, ANY_LENGTH),
});
