import type * as z from 'zod';
import { readRequestBody } from './anthropic/body.ts';
import { requestOf, responseOf } from './wire/exchange.ts';
import {
  TOMBSTONE,
  storedAfter,
  storedTextOf,
  recordOf,
  retrieveBodySchema,
  storeBodySchema,
  type ConversationRecord,
  type RetrieveAnswer,
} from './conversation/conversation.ts';
import { GatewayError, errorAnswer } from './wire/error.ts';
import { liveRuntime } from '../runtime.ts';

/** What is used of a Durable Object's SQLite storage. */
export interface SqlStorageLike {
  /** Runs one statement at once, with `?` for each value. Gives the rows, each an object by column. */
  exec(query: string, ...values: ReadonlyArray<string | number>): Iterable<Readonly<Record<string, unknown>>>;
}

/** What is used of a Durable Object's context. */
export interface DurableObjectContextLike {
  /** The object's storage; its class must be bound with `new_sqlite_classes`. */
  readonly storage: {
    /** The SQLite database of the object. */
    readonly sql: SqlStorageLike;
    /** When the alarm is due, in epoch milliseconds; `null` when none is set. */
    getAlarm(): Promise<number | null>;
    /** Has `alarm()` called at this time, in epoch milliseconds, in place of any time set before. */
    setAlarm(atMs: number): Promise<void>;
  };
}

/** A value in SQLite on Durable Objects may have 2 MB; a character takes up to three bytes. */
const PART_CHARS = 500_000;
const BODY_LIMITS = { maxBodyBytes: 134_217_728, maxDepth: 16 };
const ISSUES_MAX = 3;

const isHighSurrogate = (code: number): boolean => code >= 0xd800 && code <= 0xdbff;

/** Pieces of a text that SQLite takes. Half a character would not come back: none is cut in two. */
const partsOf = (text: string): string[] => {
  const parts: string[] = [];
  for (let from = 0; from < text.length;) {
    const end = Math.min(text.length, from + PART_CHARS);
    const to = end < text.length && isHighSurrogate(text.charCodeAt(end - 1)) ? end - 1 : end;
    parts.push(text.slice(from, to));
    from = to;
  }
  return parts;
};

/**
 * Conversation state as a Durable Object with SQLite storage: `POST /store` puts a record under a key for
 * `ttlMs` milliseconds, `POST /retrieve` gives those of a list of keys. Bodies that do not fit the schema get 400. An
 * alarm removes what has expired. Export the class from your worker, bind it with `new_sqlite_classes`, and hand the
 * binding to `durableObjectConversationState`.
 *
 * @example // worker.ts: export { ConversationStateDO } from 'spillway/gateway/conversation-do'; const answer = (state:
 * ConversationStateDO) => state.fetch(new Request('https://state/retrieve', { method: 'POST', body: '{"keys":["k"]}'
 * }));
 */
export class ConversationStateDO {
  readonly #storage: DurableObjectContextLike['storage'];

  constructor(context: DurableObjectContextLike, _env?: unknown) {
    this.#storage = context.storage;
    this.#sql(
      `CREATE TABLE IF NOT EXISTS conversation (key TEXT NOT NULL, part INTEGER NOT NULL, text TEXT NOT NULL,
        expires_at INTEGER NOT NULL, PRIMARY KEY (key, part)) WITHOUT ROWID`,
    );
    this.#sql('CREATE INDEX IF NOT EXISTS conversation_expiry ON conversation (expires_at)');
  }

  /**
   * Answers `/store` and `/retrieve`; never rejects. Another path gets 404, another method 405, a body that does not
   * fit 400.
   */
  async fetch(request: Request): Promise<Response> {
    const requestId = `req_${liveRuntime.id().replaceAll('-', '')}`;
    try {
      const { pathname } = new URL(request.url);
      if (pathname !== '/store' && pathname !== '/retrieve')
        return Response.json({ error: 'there are /store and /retrieve' }, { status: 404 });
      if (request.method !== 'POST')
        return Response.json({ error: 'use POST' }, { status: 405, headers: { allow: 'POST' } });
      const { value } = await readRequestBody(requestOf(request), BODY_LIMITS);
      return pathname === '/store' ? await this.#store(value) : this.#retrieve(value);
    } catch (error) {
      return responseOf(
        errorAnswer(
          error instanceof GatewayError
            ? error
            : new GatewayError('internal_error', 'The conversation state failed', { cause: error }),
          requestId,
        ),
      );
    }
  }

  /** Removes what has expired, and comes back for what is next. */
  async alarm(): Promise<void> {
    this.#sql('DELETE FROM conversation WHERE expires_at <= ?', liveRuntime.wallNow());
    const [next] = this.#sql('SELECT MIN(expires_at) AS at FROM conversation');
    if (typeof next?.['at'] === 'number') await this.#storage.setAlarm(next['at']);
  }

  async #store(value: unknown): Promise<Response> {
    const { key, record, ttlMs } = checked(storeBodySchema, value);
    const nowMs = liveRuntime.wallNow();
    const expiresAtMs = Math.min(Number.MAX_SAFE_INTEGER, Math.ceil(nowMs + ttlMs));
    // No await from here to the last row: of two that store at once each sees what the other wrote, and all is written,
    // or nothing.
    const text = storedAfter(this.#kept(key, nowMs), storedTextOf(record));
    this.#sql('DELETE FROM conversation WHERE key = ?', key);
    partsOf(text).forEach((piece, part) =>
      this.#sql(
        'INSERT INTO conversation (key, part, text, expires_at) VALUES (?, ?, ?, ?)',
        key,
        part,
        piece,
        expiresAtMs,
      ),
    );
    const alarmMs = await this.#storage.getAlarm();
    if (alarmMs === null || alarmMs > expiresAtMs) await this.#storage.setAlarm(expiresAtMs);
    return Response.json({ stored: true });
  }

  #retrieve(value: unknown): Response {
    const { keys } = checked(retrieveBodySchema, value);
    const nowMs = liveRuntime.wallNow();
    const records: Array<[string, ConversationRecord]> = [];
    const damaged: string[] = [];
    for (const key of keys) {
      const kept = this.#kept(key, nowMs);
      if (kept === undefined || kept === TOMBSTONE) continue;
      const record = recordOf(kept);
      if (record === undefined) damaged.push(key);
      else records.push([key, record]);
    }
    return Response.json({ records: Object.fromEntries(records), damaged } satisfies RetrieveAnswer);
  }

  #kept(key: string, nowMs: number): string | undefined {
    const parts = this.#sql('SELECT text FROM conversation WHERE key = ? AND expires_at > ? ORDER BY part', key, nowMs);
    return parts.length === 0 ? undefined : parts.map(({ text }) => String(text)).join('');
  }

  #sql(query: string, ...values: ReadonlyArray<string | number>): ReadonlyArray<Readonly<Record<string, unknown>>> {
    return [...this.#storage.sql.exec(query, ...values)];
  }
}

const checked = <T>(schema: z.ZodType<T>, value: unknown): T => {
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  const issues = parsed.error.issues
    .slice(0, ISSUES_MAX)
    .map(({ path, message }) => `${path.map(String).join('.') || 'the body'}: ${message}`);
  throw new GatewayError('invalid_request', issues.join('; '));
};
