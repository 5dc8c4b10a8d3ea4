import {
  dedupeRecordSchema,
  type DedupeClaim,
  type DedupeOutcome,
  type DedupeReading,
  type DedupeRecord,
} from '../../contract/store.ts';
import { ToolExecutionError } from '../../contract/tool-error.ts';

/** The part of a record that a claim gives and no outcome changes. */
export const headOf = ({ key, tool, idempotencyKey, request }: DedupeClaim): string =>
  JSON.stringify({ key, tool, idempotencyKey, request });

export const storedOutcome = ({ payload, error, execution }: DedupeOutcome): string =>
  JSON.stringify({ payload, error, execution });

/** An answer that is no list, and one that a client was set up to give as bytes. */
export const listOf = (answer: unknown): readonly unknown[] =>
  Array.isArray(answer) ? (answer as readonly unknown[]) : [];
const decoder = new TextDecoder();
export const textOf = (value: unknown): string | undefined => {
  if (typeof value === 'string') return value;
  if (value instanceof Uint8Array) return decoder.decode(value);
  return typeof value === 'number' ? String(value) : undefined;
};
export const numberOf = (value: unknown): number => Number(textOf(value) ?? Number.NaN);

/** The code of a record that cannot be read. */
export const DAMAGED = 'damaged_record';

const shown = (value: unknown): string => {
  if (typeof value === 'number' || value === undefined || value === null) return String(value);
  return Array.isArray(value) ? `a list of ${value.length}` : `a value of type ${typeof value}`;
};

/** Of its content nothing is said: an answer of something else may be secret. */
const badAnswer = (value: unknown, expected: string): ToolExecutionError =>
  new ToolExecutionError(
    'store_unavailable',
    `Redis answered ${shown(value)} instead of ${expected}: look at what stands between it and the client, ` +
      `and at the client's reply mappings`,
    {
      code: 'bad_answer',
      classification: 'permanent',
    },
  );

/** Redis' clock at the head of an answer. */
export function timeOf(value: unknown): number {
  const atMs = numberOf(value);
  if (Number.isSafeInteger(atMs) && atMs > 0) return atMs;
  throw badAnswer(value, 'its time');
}

/** What a script did, or did not do. */
export function flagOf(value: unknown): boolean {
  const flag = numberOf(value);
  if (flag === 0 || flag === 1) return flag === 1;
  throw badAnswer(value, '0 or 1');
}

const damaged = (name: string): ToolExecutionError =>
  new ToolExecutionError(
    'store_unavailable',
    `The record ${name} in Redis is damaged or not a record of spillway's: look at it with HGETALL, and ` +
      'delete it when nothing runs under its key',
    {
      code: DAMAGED,
      classification: 'permanent',
    },
  );

const jsonOf = (value: unknown, name: string): object => {
  const text = textOf(value);
  if (text === undefined) return {};
  try {
    const parsed: unknown = JSON.parse(text);
    if (typeof parsed === 'object' && parsed !== null) return parsed;
  } catch {
    // Told below, without what it holds.
  }
  throw damaged(name);
};

const checked = (candidate: object, key: string | undefined, name: string): DedupeRecord => {
  const parsed = dedupeRecordSchema.safeParse(candidate);
  if (!parsed.success || (key !== undefined && parsed.data.key !== key)) throw damaged(name);
  return parsed.data;
};

const HEADER = /^1 ([a-z]+) (\d+) (\d+) (\d+) (\d+) (\d+) (\d+) \S+$/;

/** The record of a text as `redis-scripts.ts` writes it. */
export function recordOf(value: unknown, key: string | undefined, name: string): DedupeRecord {
  const [header = '', head, outcome] = (textOf(value) ?? '').split('\n');
  const [, state, version, lock, expires, created, updated, ttl] = HEADER.exec(header) ?? [];
  const times = {
    createdAtMs: Number(created),
    updatedAtMs: Number(updated),
    expiresAtMs: Number(expires),
    ttlMs: Number(ttl),
    version: Number(version),
  };
  const lease = state === 'inflight' ? { lockUntilMs: Number(lock) } : {};
  return checked({ ...jsonOf(outcome, name), ...jsonOf(head, name), ...times, ...lease, state }, key, name);
}

export type Claimed = DedupeReading & { readonly created: boolean };

/** A claim as Redis is asked for it, in whole milliseconds. */
export interface Wish {
  readonly claim: DedupeClaim;
  readonly name: string;
  readonly leaseMs: number;
  readonly ttlMs: number;
}

/**
 * What a claim comes to, from its part of the answer: its own record, or the one in its way. A fresh one is known
 * without reading it back.
 */
export function claimedOf(answer: unknown, atMs: number, { claim, name, leaseMs, ttlMs }: Wish): Claimed {
  const version = freshVersionOf(answer);
  if (version === undefined) {
    const text = textOf(answer) ?? '';
    return { created: text.startsWith('='), atMs, record: recordOf(text.slice(1), claim.key, name) };
  }
  const { key, tool, idempotencyKey, request } = claim;
  const times = {
    createdAtMs: atMs,
    updatedAtMs: atMs,
    expiresAtMs: atMs + Math.max(ttlMs, leaseMs),
    ttlMs,
    lockUntilMs: atMs + leaseMs,
  };
  return {
    created: true,
    atMs,
    record: { key, tool, idempotencyKey, state: 'inflight', ...times, request: { ...request }, version },
  };
}

/** The version of a claim that was granted by this very command. */
export function freshVersionOf(answer: unknown): number | undefined {
  const version = numberOf(answer);
  return Number.isSafeInteger(version) && version > 0 ? version : undefined;
}

/** The record that an outcome made; `undefined` when it was refused. */
export function settledOf(
  answer: unknown,
  key: string,
  { state, payload, error, execution }: DedupeOutcome,
  ttlMs: number,
  name: string,
): DedupeRecord | undefined {
  const [head, version, created, updated, expires] = listOf(answer);
  if (head === undefined) return undefined;
  const times = {
    createdAtMs: numberOf(created),
    updatedAtMs: numberOf(updated),
    expiresAtMs: numberOf(expires),
    ttlMs,
    version: numberOf(version),
  };
  const given = {
    ...(payload === undefined ? {} : { payload }),
    ...(error === undefined ? {} : { error }),
    ...(execution === undefined ? {} : { execution }),
  };
  return checked({ ...jsonOf(head, name), ...given, ...times, state }, key, name);
}
