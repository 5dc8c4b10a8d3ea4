import * as z from 'zod';
import type { Awaitable } from '../../contract/store.ts';

/**
 * What a client does not see of an answer it got: the steps behind it, and the calls and results of the gateway's own
 * tools in it. All texts are JSON, kept as it was sent.
 */
export interface ConversationRecord {
  /** The turn that wrote it: only that turn may write something else in its place. */
  readonly author: string;
  /** The client's own calls in the answer, in order. */
  readonly toolUseIds: readonly string[];
  /** A list of messages that stand before the answer. */
  readonly before: string;
  /** The answer's whole content, a list of blocks; empty: it is as the client has it. */
  readonly content: string;
  /** A list of `tool_result` blocks: those of the gateway's calls in the content. */
  readonly results: string;
}

/**
 * Where conversation state lives. An operation fails by throwing or rejecting. Each state forgets its records
 * after a time of its own.
 */
export interface ConversationState {
  /**
   * Keeps a record under a key, in one atomic step: two that come at once must not both believe to be the first. Where
   * the key has a record of another author that says something else, it becomes a tombstone: `retrieve` gives nothing
   * for it, and nothing is kept there any more, until it has expired. An empty record gives way to any other.
   */
  store(key: string, record: ConversationRecord): Awaitable<void>;
  /** The records of those keys that have one; none for a tombstone. */
  retrieve(keys: readonly string[]): Awaitable<ReadonlyMap<string, ConversationRecord>>;
  /** Ends what the state started itself. Idempotent. */
  close?(): Awaitable<void>;
}

/** How long a record is kept, in milliseconds: a day, as the outcomes of calls are. */
export const CONVERSATION_TTL_MS = 86_400_000;

/** Characters of one record: what does not fit into a request any more need not be kept. */
const RECORD_CHARS_MAX = 33_554_432;
const IDS_MAX = 10_000;

const isList = (text: string): boolean => {
  if (text === '') return true;
  try {
    return Array.isArray(JSON.parse(text));
  } catch {
    return false;
  }
};
const list: z.ZodType<string> = z
  .string()
  .max(RECORD_CHARS_MAX)
  .refine(isList, { error: 'must be the JSON of a list, or empty' });

/** For states that read records back from outside: what does not fit is not used. */
const conversationRecordSchema: z.ZodType<ConversationRecord> = z.strictObject({
  author: z.string().max(512),
  toolUseIds: z.array(z.string().min(1).max(512)).max(IDS_MAX),
  before: list,
  content: list,
  results: list,
});

const key: z.ZodString = z.string().min(1).max(512);

/** The body of `/store`. */
export interface StoreBody {
  readonly key: string;
  readonly record: ConversationRecord;
  readonly ttlMs: number;
}

/** The body of `/retrieve`. */
export interface RetrieveBody {
  readonly keys: readonly string[];
}

/** The answer to `/retrieve`. */
export interface RetrieveAnswer {
  readonly records: Readonly<Record<string, ConversationRecord>>;
  /** Keys whose record cannot be read any more. */
  readonly damaged: readonly string[];
}

export const storeBodySchema: z.ZodType<StoreBody> = z.strictObject({
  key,
  record: conversationRecordSchema,
  ttlMs: z.number().positive().max(Number.MAX_SAFE_INTEGER),
});
export const retrieveBodySchema: z.ZodType<RetrieveBody> = z.strictObject({ keys: z.array(key).min(1).max(IDS_MAX) });
export const retrieveAnswerSchema: z.ZodType<RetrieveAnswer> = z.strictObject({
  records: z.record(z.string(), conversationRecordSchema),
  damaged: z.array(z.string()),
});

/**
 * What is kept under a key: the author's name, a line's end, and the record. Texts, since that is what can be compared
 * where they lie.
 */
export interface StoredText {
  readonly author: string;
  readonly said: string;
}

/**
 * Stands under a key that two different contents were stored under. No record is written so: those have a line's end.
 */
export const TOMBSTONE = 'tombstone';

/** What a record says, whoever wrote it. Members always come in this order, so equal records are equal texts. */
const saidBy = ({ toolUseIds, before, content, results }: ConversationRecord): string =>
  JSON.stringify({ toolUseIds, before, content, results });

const lineOf = (text: string): string => text.replaceAll('\n', ' ').toWellFormed();

export const storedTextOf = (record: ConversationRecord): StoredText => ({
  author: lineOf(record.author),
  said: saidBy(record),
});

/** What an empty record says: it gives way to any other. */
export const NOTHING_SAID: string = saidBy({ author: '', toolUseIds: [], before: '', content: '', results: '' });

/** What is kept once a record is stored where `kept` was: the one rule for all states. */
export function storedAfter(kept: string | undefined, { author, said }: StoredText): string {
  const text = `${author}\n${said}`;
  if (kept === undefined) return text;
  const end = kept.indexOf('\n');
  if (end === -1) return TOMBSTONE;
  const before = kept.slice(end + 1);
  return kept.slice(0, end) === author || before === said || before === NOTHING_SAID ? text : TOMBSTONE;
}

/** A record read from what was kept; `undefined` for a tombstone, and for what cannot be used. */
export function recordOf(kept: string): ConversationRecord | undefined {
  const end = kept.indexOf('\n');
  if (end === -1) return undefined;
  try {
    return conversationRecordSchema.parse({
      author: kept.slice(0, end),
      ...(JSON.parse(kept.slice(end + 1)) as object),
    });
  } catch {
    return undefined;
  }
}
