import type { Observable } from 'rxjs';
import * as z from 'zod';

/** What a store may answer: at once, as memory does, or later. */
export type Awaitable<T> = T | PromiseLike<T>;

export type DedupeState = 'inflight' | 'done' | 'failed' | 'cancelled';

/** Who asked. Checked on every read: a value never crosses scopes. */
export interface DedupeRequest {
  readonly sessionKey: string;
  readonly actorId: string;
  readonly tenantId?: string;
  readonly requestId: string;
  readonly toolCallId?: string;
  /** SHA-256 of the canonical parameters: the same key with another one is a conflict. */
  readonly paramsDigest: string;
}

export interface DedupeExecution {
  readonly attemptCount: number;
  readonly attempts: ReadonlyArray<{
    readonly startedAtMs: number;
    readonly finishedAtMs: number;
    readonly status: 'success' | 'error';
    readonly retriable: boolean;
    readonly errorCode?: string;
  }>;
}

export interface DedupeFailure {
  readonly code: string;
  readonly message: string;
  readonly terminal: boolean;
  readonly shouldRetriable: boolean;
  /** It may have taken effect. */
  readonly uncertain?: true;
}

/** What is remembered of a call under its idempotency key. JSON; all times are the store's own wall clock. */
export interface DedupeRecord {
  readonly key: string;
  readonly tool: string;
  readonly idempotencyKey: string;
  readonly state: DedupeState;
  readonly createdAtMs: number;
  readonly updatedAtMs: number;
  /** When it is forgotten. */
  readonly expiresAtMs: number;
  readonly ttlMs: number;
  readonly request: DedupeRequest;
  readonly execution?: DedupeExecution;
  /** With `done`: the result as JSON text, so that it is replayed byte for byte. */
  readonly payload?: string;
  /** With `failed` and `cancelled`. */
  readonly error?: DedupeFailure;
  /** With `inflight`: the end of the lease. From then on another may take the key over. */
  readonly lockUntilMs?: number;
  /** The store's own number, given with each claim and outcome. Of one key it only grows, also after the record is gone: it is the fence. */
  readonly version: number;
}

/** A record as it was read, and when by the store's clock: nobody else's decides whether a lease has passed. */
export interface DedupeReading {
  readonly record: DedupeRecord;
  readonly atMs: number;
}

/** A wish to run: the store makes the record of it. */
export interface DedupeClaim {
  readonly key: string;
  readonly tool: string;
  readonly idempotencyKey: string;
  readonly request: DedupeRequest;
  /** How long it may run before others may take over, unless it renews. */
  readonly leaseMs: number;
  /** How long the record is kept if nobody ever finishes it. */
  readonly ttlMs: number;
}

/** How a claim ended: the store puts it in the record's place. */
export interface DedupeOutcome {
  readonly state: Exclude<DedupeState, 'inflight'>;
  readonly ttlMs: number;
  readonly payload?: string;
  readonly error?: DedupeFailure;
  readonly execution?: DedupeExecution;
}

/** How well a store keeps what it acknowledged. */
export interface StoreReport {
  readonly kind: string;
  /** `process`: gone with it. `disk`: survives a kill. `replicated`: survives the loss of a machine. `unknown`: the store would not say. */
  readonly durability: 'process' | 'memory' | 'disk' | 'replicated' | 'unknown';
  /** Whether several processes can share it. */
  readonly shared: boolean;
  /** It may lose what it acknowledged by less than the loss of its disk: by a kill, by eviction, by a failover. Default: when its durability is `memory` or `unknown`. */
  readonly weak?: boolean;
  /** Sentences: settings that lose what was acknowledged. */
  readonly warnings: readonly string[];
  readonly records?: number;
}

/**
 * Where records live. Each operation is atomic. A failure to answer is told by throwing or rejecting: whether the operation took place is then
 * not known, and the caller may ask again.
 */
export interface DedupeStore {
  get(key: string): Awaitable<DedupeReading | undefined>;
  /**
   * Claims a key: `created` is true when the record is the claim's own, else it is the one that stands in its way.
   * A key is free when it has no record or an expired one. With `over`, also when its record has this version and no valid lease:
   * so a lease that has passed is taken over, and a failure is run again, by one only and never on the word of an old read.
   * @throws `store_unavailable` when the store is full of claims that run
   */
  setIfNotExists(claim: DedupeClaim, over?: number): Awaitable<DedupeReading & { readonly created: boolean }>;
  /**
   * Ends a claim, or replaces an outcome, if the record still has this version; gives the new record, or `undefined` when it was refused. A lease that
   * passed unnoticed does not matter.
   */
  compareAndSet(key: string, version: number, outcome: DedupeOutcome): Awaitable<DedupeRecord | undefined>;
  /**
   * Makes the lease of a claim with this version end `leaseMs` from now; `false` when the claim is no longer there. The version stays.
   * @throws `store_unavailable` with the code `store_moved` when others no longer see what this store holds: the claim is lost at once
   */
  renew(key: string, version: number, leaseMs: number): Awaitable<boolean>;
  /** Removes a record, with `version` only that one; gives whether it did. */
  delete(key: string, version?: number): Awaitable<boolean>;
  byTool(tool: string): AsyncIterable<DedupeRecord>;
  bySession(sessionKey: string): AsyncIterable<DedupeRecord>;
  /** Removes what has expired; gives how many. */
  sweep(): Awaitable<number>;
  /** Emits when the record of a key may have changed. A hint: who waits asks again from time to time all the same. Never errors. */
  changes?(key: string): Observable<unknown>;
  report?(): Awaitable<StoreReport>;
  /** Ends timers and subscriptions of the store's own, not the client it was given. Idempotent. */
  close?(): Awaitable<void>;
}

const text: z.ZodString = z.string();
const ms: z.ZodNumber = z.number().nonnegative().max(Number.MAX_SAFE_INTEGER);

/** For stores that read records back from outside: what does not fit is not replayed. */
export const dedupeRecordSchema: z.ZodType<DedupeRecord> = z.strictObject({
  key: text,
  tool: text,
  idempotencyKey: text,
  state: z.enum(['inflight', 'done', 'failed', 'cancelled']),
  createdAtMs: ms,
  updatedAtMs: ms,
  expiresAtMs: ms,
  ttlMs: ms,
  request: z.strictObject({
    sessionKey: text,
    actorId: text,
    tenantId: text.exactOptional(),
    requestId: text,
    toolCallId: text.exactOptional(),
    paramsDigest: text,
  }),
  execution: z
    .strictObject({
      attemptCount: z.number().int().nonnegative(),
      attempts: z.array(
        z.strictObject({ startedAtMs: ms, finishedAtMs: ms, status: z.enum(['success', 'error']), retriable: z.boolean(), errorCode: text.exactOptional() }),
      ),
    })
    .exactOptional(),
  payload: text.exactOptional(),
  error: z.strictObject({ code: text, message: text, terminal: z.boolean(), shouldRetriable: z.boolean(), uncertain: z.literal(true).exactOptional() }).exactOptional(),
  lockUntilMs: ms.exactOptional(),
  version: z.number().int().nonnegative().max(Number.MAX_SAFE_INTEGER),
});
