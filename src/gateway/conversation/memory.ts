import type { Runtime } from '../../contract/runtime.ts';
import { checkKeys, checkNumber, integer, positiveDuration } from '../../policy/check.ts';
import { liveRuntime } from '../../runtime.ts';
import {
  CONVERSATION_TTL_MS,
  TOMBSTONE,
  storedAfter,
  storedTextOf,
  recordOf,
  type ConversationRecord,
  type ConversationState,
} from './conversation.ts';

/** How much is kept in memory, and for how long. */
export interface MemoryConversationOptions {
  /** How long a record is kept after it was stored, in milliseconds. Default 86,400,000: a day. */
  readonly ttlMs?: number;
  /** Records stored at a time; the oldest makes room. Default 25,000, as many as the memory store has keys. */
  readonly maxRecords?: number;
  /** Characters of all records together; the oldest make room. Default 100,000,000. */
  readonly maxChars?: number;
  /** The clock by which records expire. Default: the machine's. */
  readonly runtime?: Runtime;
}

const MAX_RECORDS = 25_000;
const MAX_CHARS = 100_000_000;

interface StoredRecord {
  readonly text: string;
  readonly chars: number;
  readonly expiresAtMs: number;
}

const charsOf = ({ toolUseIds, before, content, results }: ConversationRecord): number =>
  toolUseIds.join('').length + before.length + content.length + results.length;

/**
 * Keys of records that made room, for each record: they are remembered, since another content may come to stand there.
 */
const FORGOTTEN_PER_RECORD = 4;

/**
 * Conversation state in the memory of this process: gone with it, and not shared with others.
 *
 * @param options bounds
 * @throws RangeError for an option out of its range
 *
 * @example
 * const state = memoryConversationState({ ttlMs: 3_600_000 });
 */
export function memoryConversationState(options: MemoryConversationOptions = {}): ConversationState {
  checkKeys('memoryConversationState', options, ['ttlMs', 'maxRecords', 'maxChars', 'runtime']);
  const {
    ttlMs = CONVERSATION_TTL_MS,
    maxRecords = MAX_RECORDS,
    maxChars = MAX_CHARS,
    runtime = liveRuntime,
  } = options;
  checkNumber('ttlMs', ttlMs, positiveDuration);
  checkNumber('maxRecords', maxRecords, integer(1, Number.MAX_SAFE_INTEGER));
  checkNumber('maxChars', maxChars, integer(1, Number.MAX_SAFE_INTEGER));
  // A Map holds its keys in the order in which they came: with one lifetime for all, the first is the first to expire.
  const stored = new Map<string, StoredRecord>();
  /** Keys that made room, until they would have expired: what is stored there next could be another's. */
  const forgotten = new Map<string, number>();
  let chars = 0;
  const drop = (key: string): void => {
    chars -= stored.get(key)?.chars ?? 0;
    stored.delete(key);
  };
  const forget = (key: string, expiresAtMs: number): void => {
    drop(key);
    forgotten.set(key, expiresAtMs);
    const [oldest] = forgotten.keys();
    if (forgotten.size > maxRecords * FORGOTTEN_PER_RECORD && oldest !== undefined) forgotten.delete(oldest);
  };
  const storedUnder = (key: string, nowMs: number): string | undefined => {
    const entry = stored.get(key);
    if (entry !== undefined && entry.expiresAtMs > nowMs) return entry.text;
    return (forgotten.get(key) ?? -Infinity) > nowMs ? TOMBSTONE : undefined;
  };
  const makeRoom = (nowMs: number): void => {
    for (const [oldest, { expiresAtMs }] of stored) {
      const isFull = stored.size > maxRecords || (chars > maxChars && stored.size > 1);
      if (expiresAtMs <= nowMs) drop(oldest);
      else if (isFull) forget(oldest, expiresAtMs);
      else break;
    }
  };
  return {
    store: (key, record) => {
      const nowMs = runtime.now();
      const text = storedAfter(storedUnder(key, nowMs), storedTextOf(record));
      drop(key);
      forgotten.delete(key);
      const entry: StoredRecord = { text, chars: text === TOMBSTONE ? 0 : charsOf(record), expiresAtMs: nowMs + ttlMs };
      stored.set(key, entry);
      chars += entry.chars;
      makeRoom(nowMs);
    },
    retrieve: (keys) => {
      const nowMs = runtime.now();
      return new Map(
        keys.flatMap((key): Array<[string, ConversationRecord]> => {
          const record = recordOf(storedUnder(key, nowMs) ?? TOMBSTONE);
          return record === undefined ? [] : [[key, record]];
        }),
      );
    },
  };
}
