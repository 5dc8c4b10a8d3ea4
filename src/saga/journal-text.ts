import type { Journal, JournalEntry } from '../contract/settle/journal.ts';
import type { DedupeClaim, DedupeRecord } from '../contract/store.ts';
import { MESSAGE_LENGTH_MAX } from '../errors/text/plain.ts';
import { given } from '../policy/check.ts';
import { sha256 } from '../policy/key/sha256.ts';
import { fitting } from '../policy/shape/parts.ts';
import { journalShape, pageShape } from './journal-shape.ts';
import { PAGE_TOOL } from './own-records.ts';

/** So many entries are in one record: a turn of any size writes no more than these for each of its calls. */
export const PAGE_ENTRIES = 50;
/** How long a journal is kept: a week, so that a process that stood still over a holiday is still finished. */
export const KEEP_MS = 604_800_000;
/** The longest output of one call that is kept. */
const OUTPUT_MAX_CHARS = 100_000;

type Identity = Pick<Journal, 'turnId' | 'session' | 'actor' | 'tenant' | 'submission'>;

/** Turns of two tenants, sessions or actors are two, whatever their ids; so are two submissions to an engine. */
export const turnKey = (tool: string, { turnId, tenant, session, actor, submission }: Identity): string =>
  `sw1:${sha256(JSON.stringify([tool, tenant, session, actor, turnId, submission]))}`;

/** @param claimant which owner of a turn of an engine claims it */
export const claimOf = (
  tool: string,
  turn: Identity,
  writer: string,
  leaseMs: number,
  claimant?: { readonly turn: string },
): DedupeClaim => ({
  key: turnKey(tool, turn),
  tool,
  idempotencyKey: turn.turnId,
  request: { sessionKey: '', actorId: '', requestId: writer, paramsDigest: sha256(''), ...claimant },
  leaseMs,
  ttlMs: KEEP_MS,
});

/** A further page of a journal, behind the first one, which is in its own record. */
export const pageClaim = (turn: Identity, place: number, writer: string, leaseMs: number): DedupeClaim => ({
  ...claimOf(PAGE_TOOL, turn, writer, leaseMs),
  key: turnKey(`${PAGE_TOOL}/${place}`, turn),
});

/** What of a value a journal can hold: what is no JSON, or too long, is left out. */
const jsonOf = (value: unknown): string | undefined => {
  try {
    const text = JSON.stringify(value);
    return text === undefined || text.length > OUTPUT_MAX_CHARS ? undefined : text;
  } catch {
    return undefined;
  }
};

/** A value with its JSON text, which is made once: most of a journal stays as it is from one write to the next. */
interface Texted {
  readonly value: unknown;
  readonly text: string | undefined;
}

/** An entry's parts that do not change, and those that do, as they were when it was written last. */
interface WrittenParts {
  readonly input: Texted;
  output: Texted;
  stands: string;
  text: string;
}

const texted = (value: unknown): Texted => ({ value, text: jsonOf(value) });

const standsOf = ({ state, toolName, callId, message, halfUndone }: JournalEntry): string =>
  JSON.stringify([state, toolName, callId, message, halfUndone]);

/** A journal as JSON text. Of an entry that has not changed the text is not made again. */
export class JournalText {
  readonly #kept = new WeakMap<JournalEntry, WrittenParts>();

  /** @param head what stands beside the entries */
  of(head: object, entries: readonly JournalEntry[]): string {
    const texts = entries.map((entry) => this.#entry(entry));
    return `${JSON.stringify(head).slice(0, -1)},"entries":[${texts.join(',')}]}`;
  }

  #entry(entry: JournalEntry): string {
    const stands = standsOf(entry);
    const known = this.#kept.get(entry);
    if (known?.stands === stands && known.output.value === entry.output) return known.text;
    const input = known?.input ?? texted(entry.input);
    const output = known !== undefined && known.output.value === entry.output ? known.output : texted(entry.output);
    const text = entryText(entry, input.text, output.text);
    this.#kept.set(entry, { input, output, stands, text });
    return text;
  }
}

const entryText = (
  { input: _, output: _output, message, ...entry }: JournalEntry,
  input: string | undefined,
  output: string | undefined,
): string => {
  const told = given({ message: message?.slice(0, MESSAGE_LENGTH_MAX) });
  const values = [
    ...(input === undefined ? [] : [`"input":${input}`]),
    ...(output === undefined ? [] : [`"output":${output}`]),
  ];
  return `${[JSON.stringify({ ...entry, ...told }).slice(0, -1), ...values].join(',')}}`;
};

const parsed = ({ payload }: DedupeRecord): unknown => {
  try {
    return payload === undefined ? undefined : JSON.parse(payload);
  } catch {
    return undefined;
  }
};

/** The journal in a record, with its first page; `undefined` in one that has none yet, or none that can be read. */
export const journalIn = (record: DedupeRecord): Journal | undefined => fitting(journalShape, parsed(record));

/** The entries of a further page; `undefined` in a record that has none that can be read. */
export const pageIn = (record: DedupeRecord | undefined): JournalEntry[] | undefined =>
  record === undefined ? undefined : fitting(pageShape, parsed(record))?.entries;

/** Which process has written a record, as far as that can be read. */
export const writerIn = (record: DedupeRecord): unknown => {
  const value = parsed(record);
  return typeof value === 'object' && value !== null && 'writer' in value ? value.writer : undefined;
};
