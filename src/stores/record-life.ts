import type { DedupeClaim, DedupeOutcome, DedupeRecord } from '../contract/store.ts';
import { checkNumber, positiveDuration } from '../policy/check.ts';

/** The last moment a record can name: times are safe integers. */
const END_OF_TIME_MS = Number.MAX_SAFE_INTEGER;

const after = (atMs: number, ms: number): number => Math.min(atMs + ms, END_OF_TIME_MS);

/**
 * Whether a claim may have a key at `atMs`: `over` is the version of which it knows that nothing runs.
 *
 * @param record what is kept under the key, expired or not
 */
export function mayClaim(record: DedupeRecord | undefined, over: number | undefined, atMs: number): boolean {
  if (record === undefined || record.expiresAtMs <= atMs) return true;
  return record.version === over && !runs(record, atMs);
}

/** Whether a record's lease is valid: its owner, and nobody else, may be running. */
export function runs({ lockUntilMs = 0 }: DedupeRecord, atMs: number): boolean {
  return lockUntilMs > atMs;
}

/** The record of a claim that is granted. A running claim is not forgotten, whatever its time to live. */
export function claimed(
  { key, tool, idempotencyKey, request, leaseMs, ttlMs }: DedupeClaim,
  version: number,
  atMs: number,
): DedupeRecord {
  checkNumber('leaseMs', leaseMs, positiveDuration);
  checkNumber('ttlMs', ttlMs, positiveDuration);
  return {
    key,
    tool,
    idempotencyKey,
    state: 'inflight',
    createdAtMs: atMs,
    updatedAtMs: atMs,
    expiresAtMs: after(atMs, Math.max(ttlMs, leaseMs)),
    ttlMs,
    // Copied, as is all that a caller hands over: what it does with its own object later is no matter of the record's.
    request: { ...request },
    lockUntilMs: after(atMs, leaseMs),
    version,
  };
}

type WritableRecord = { -readonly [Member in keyof DedupeRecord]: DedupeRecord[Member] };

/** The record of how a claim ended. */
export function ended(
  { key, tool, idempotencyKey, createdAtMs, request }: DedupeRecord,
  { state, ttlMs, payload, error, execution }: DedupeOutcome,
  version: number,
  atMs: number,
): DedupeRecord {
  checkNumber('ttlMs', ttlMs, positiveDuration);
  const record: WritableRecord = {
    key,
    tool,
    idempotencyKey,
    state,
    createdAtMs,
    updatedAtMs: atMs,
    expiresAtMs: after(atMs, ttlMs),
    ttlMs,
    request,
    version,
  };
  if (payload !== undefined) record.payload = payload;
  if (error !== undefined) record.error = { ...error };
  if (execution !== undefined)
    record.execution = {
      attemptCount: execution.attemptCount,
      attempts: execution.attempts.map((attempt) => ({ ...attempt })),
    };
  return record;
}

/** The record of a claim whose lease was renewed. */
export function renewed(record: DedupeRecord, leaseMs: number, atMs: number): DedupeRecord {
  checkNumber('leaseMs', leaseMs, positiveDuration);
  const lockUntilMs = after(atMs, leaseMs);
  return { ...record, lockUntilMs, expiresAtMs: Math.max(record.expiresAtMs, lockUntilMs) };
}
