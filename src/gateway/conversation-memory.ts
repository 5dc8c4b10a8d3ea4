import type { Runtime } from '../contract/runtime.ts';
import { checkKeys, checkNumber, integer, positiveDuration } from '../policy/check.ts';
import { liveRuntime } from '../runtime.ts';
import { CONVERSATION_TTL_MS, type ConversationRecord, type ConversationState } from './conversation.ts';

export interface MemoryConversationOptions {
  /** How long a record is kept. Default 86,400,000: a day. */
  readonly ttlMs?: number;
  /** Records kept at a time; the oldest makes room. Default 25,000, as many as the memory store has keys. */
  readonly maxRecords?: number;
  /** Characters of all records; the oldest make room. Default 100,000,000. */
  readonly maxChars?: number;
  readonly runtime?: Runtime;
}

const MAX_RECORDS = 25_000;
const MAX_CHARS = 100_000_000;

interface Kept {
  readonly record: ConversationRecord;
  readonly chars: number;
  readonly expiresAtMs: number;
}

const charsOf = ({ toolUseIds, before, content, results }: ConversationRecord): number => toolUseIds.join('').length + before.length + content.length + results.length;

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
  const { ttlMs = CONVERSATION_TTL_MS, maxRecords = MAX_RECORDS, maxChars = MAX_CHARS, runtime = liveRuntime } = options;
  checkNumber('ttlMs', ttlMs, positiveDuration);
  checkNumber('maxRecords', maxRecords, integer(1, Number.MAX_SAFE_INTEGER));
  checkNumber('maxChars', maxChars, integer(1, Number.MAX_SAFE_INTEGER));
  // A Map holds its keys in the order in which they came: with one lifetime for all, the first is the first to expire.
  const kept = new Map<string, Kept>();
  let chars = 0;
  const drop = (key: string): void => {
    chars -= kept.get(key)?.chars ?? 0;
    kept.delete(key);
  };
  return {
    store: (key, record) => {
      drop(key);
      const entry: Kept = { record, chars: charsOf(record), expiresAtMs: runtime.now() + ttlMs };
      kept.set(key, entry);
      chars += entry.chars;
      for (const [oldest, { expiresAtMs }] of kept) {
        const isFull = kept.size > maxRecords || (chars > maxChars && kept.size > 1);
        if (!isFull && expiresAtMs > runtime.now()) break;
        drop(oldest);
      }
    },
    retrieve: (keys) => {
      const now = runtime.now();
      const found = keys.map((key) => [key, kept.get(key)] as const);
      return new Map(found.flatMap(([key, entry]) => (entry === undefined || entry.expiresAtMs <= now ? [] : [[key, entry.record] as const])));
    },
  };
}
