import type { DedupeClaim, DedupeOutcome, DedupeReading, DedupeRecord } from '../../../src/contract/store.ts';

/** What a store can be asked about one key. */
export type StoreQuestion =
  | { readonly ask: 'get' }
  | { readonly ask: 'claim'; readonly claim: DedupeClaim; readonly over: number | undefined }
  | { readonly ask: 'end'; readonly version: number; readonly outcome: DedupeOutcome }
  | { readonly ask: 'renew'; readonly version: number; readonly leaseMs: number }
  | { readonly ask: 'delete'; readonly version: number | undefined };

export type StoreAnswer = (DedupeReading & { readonly created?: boolean }) | DedupeRecord | boolean | undefined;

/** What a store keeps of one key. */
export interface Kept {
  readonly record?: DedupeRecord;
  /** The highest version it gave. */
  readonly fence: number;
}

export const NOTHING: Kept = { fence: 0 };

/** Fences grow with the clock: a replica that has not heard of the last ones gives none of them again. */
const FENCES_PER_MS = 1_000;

const fenceAfter = (fence: number, atMs: number): number => Math.max(fence + 1, Math.floor(atMs * FENCES_PER_MS));

/**
 * The contract of `DedupeStore` for one key, as a function: written for the simulation, and not from any of the stores,
 * so that they can be held against each other.
 */
export function answer(kept: Kept, question: StoreQuestion, atMs: number): readonly [Kept, StoreAnswer] {
  const { fence } = kept;
  const record = kept.record !== undefined && kept.record.expiresAtMs > atMs ? kept.record : undefined;
  const runs = record?.state === 'inflight' && (record.lockUntilMs ?? 0) > atMs;
  switch (question.ask) {
    case 'get':
      return [kept, record === undefined ? undefined : { record, atMs }];
    case 'claim': {
      const { claim, over } = question;
      if (record !== undefined && (over !== record.version || runs)) return [kept, { record, atMs, created: false }];
      const { key, tool, idempotencyKey, request, leaseMs, ttlMs } = claim;
      const version = fenceAfter(fence, atMs);
      const times = {
        createdAtMs: atMs,
        updatedAtMs: atMs,
        expiresAtMs: atMs + Math.max(ttlMs, leaseMs),
        ttlMs,
        lockUntilMs: atMs + leaseMs,
      };
      const made: DedupeRecord = {
        key,
        tool,
        idempotencyKey,
        state: 'inflight',
        request: { ...request },
        version,
        ...times,
      };
      return [
        { record: made, fence: version },
        { record: made, atMs, created: true },
      ];
    }
    case 'end': {
      if (record?.version !== question.version) return [kept, undefined];
      const { lockUntilMs: _, ...claimed } = record;
      const version = fenceAfter(fence, atMs);
      const ended: DedupeRecord = {
        ...claimed,
        ...structuredClone(question.outcome),
        updatedAtMs: atMs,
        expiresAtMs: atMs + question.outcome.ttlMs,
        version,
      };
      return [{ record: ended, fence: version }, ended];
    }
    case 'renew': {
      if (record?.version !== question.version || record.state !== 'inflight') return [kept, false];
      const lockUntilMs = atMs + question.leaseMs;
      return [
        { record: { ...record, lockUntilMs, expiresAtMs: Math.max(record.expiresAtMs, lockUntilMs) }, fence },
        true,
      ];
    }
    case 'delete': {
      const theirs = record !== undefined && (question.version === undefined || question.version === record.version);
      return theirs ? [{ fence }, true] : [kept, false];
    }
  }
}
