import type { Observable } from 'rxjs';
import * as z from 'zod/mini';

/** What a store may answer: at once, as memory does, or later. */
export type Awaitable<T> = T | PromiseLike<T>;

/**
 * What a record stands for. `inflight`: a call runs. `done`: its result is kept. `failed`: its error is kept.
 * `cancelled`: its caller left while it ran, and the key has to be cleared before it runs again.
 */
export type DedupeState = 'inflight' | 'done' | 'failed' | 'cancelled';

/** Who asked. Checked on every read: a value never crosses scopes. */
export interface DedupeRequest {
  /** The session; empty without one. */
  readonly sessionKey: string;
  /** The user or service; empty without one. */
  readonly actorId: string;
  /** The tenant; absent without one. */
  readonly tenantId?: string;
  /** The id of the call that claimed the key. */
  readonly requestId: string;
  /** The id that the model gave that call. */
  readonly toolCallId?: string;
  /** SHA-256 of the canonical parameters: the same key with another one is a conflict. */
  readonly paramsDigest: string;
  /** Of a turn of a fleet: its submission, `/`, and the epoch of the worker that claimed the key; absent elsewhere. */
  readonly turn?: string;
}

/** What the call that wrote a record did. */
export interface DedupeExecution {
  /** How many attempts were made in all. */
  readonly attemptCount: number;
  /** The last of them, oldest first. */
  readonly attempts: ReadonlyArray<{
    /** When it began, in milliseconds since the Unix epoch by the clock of the process that ran it. */
    readonly startedAtMs: number;
    /** When it ended, by the same clock. */
    readonly finishedAtMs: number;
    /** Whether it succeeded. */
    readonly status: 'success' | 'error';
    /** Whether its failure was transient; false for a success. */
    readonly retriable: boolean;
    /** The kind of its error; absent for a success. */
    readonly errorCode?: string;
  }>;
}

/** How the call that wrote a record failed. */
export interface DedupeFailure {
  /** The error's kind. */
  readonly code: string;
  /** The error's text. */
  readonly message: string;
  /** Asking again the same way cannot help. */
  readonly terminal: boolean;
  /** The failure was transient, so that a `bestEffort` call runs again. The name is that of CLAW's record. */
  readonly shouldRetriable: boolean;
  /** It may have taken effect. */
  readonly uncertain?: true;
}

/** What is remembered of a call under its idempotency key. JSON; all times are the store's own wall clock. */
export interface DedupeRecord {
  /** The key that the store was asked with, `sw1:` and 64 hex digits. A reader checks that it is the one asked for. */
  readonly key: string;
  /** The tool whose call it is. */
  readonly tool: string;
  /** The caller's key, else the hook's, else the computed one. */
  readonly idempotencyKey: string;
  /** What became of the call. */
  readonly state: DedupeState;
  /** When the key was claimed. */
  readonly createdAtMs: number;
  /** When the claim was last renewed, or the outcome written. */
  readonly updatedAtMs: number;
  /** When it is forgotten. */
  readonly expiresAtMs: number;
  /** How long the record is kept, in milliseconds from its last change. */
  readonly ttlMs: number;
  /** The call that claimed the key. */
  readonly request: DedupeRequest;
  /** What that call did, once it has ended. */
  readonly execution?: DedupeExecution;
  /** With `done`: the result as JSON text, so that it is replayed byte for byte. */
  readonly payload?: string;
  /** With `failed` and `cancelled`. */
  readonly error?: DedupeFailure;
  /** With `inflight`: the end of the lease. From then on another may take the key over. */
  readonly lockUntilMs?: number;
  /**
   * The store's own number, given with each claim and outcome. Of one key it only grows, also after the record is gone:
   * it is the fence.
   */
  readonly version: number;
}

/** A record as it was read, and when by the store's clock: nobody else's decides whether a lease has passed. */
export interface DedupeReading {
  /** The record as it stood. */
  readonly record: DedupeRecord;
  /** The store's wall clock when it was read, in milliseconds since the Unix epoch. */
  readonly atMs: number;
}

/** A wish to run: the store makes the record of it. */
export interface DedupeClaim {
  /** The key to claim, unique to tool, scope and what is asked. */
  readonly key: string;
  /** The name that `byTool` lists the record by. */
  readonly tool: string;
  /** The caller's key, else the hook's, else the computed one; kept for people to read. */
  readonly idempotencyKey: string;
  /** The call that wants to run; `sessionKey` is what `bySession` lists it by. */
  readonly request: DedupeRequest;
  /** How long it may run before others may take over, unless it renews. */
  readonly leaseMs: number;
  /** How long the record is kept if nobody ever finishes it. */
  readonly ttlMs: number;
}

/** How a claim ended: the store puts it in the record's place. */
export interface DedupeOutcome {
  /** How it ended. */
  readonly state: Exclude<DedupeState, 'inflight'>;
  /** How long the outcome is kept, in milliseconds. */
  readonly ttlMs: number;
  /** With `done`, and with `failed` where there is one: the result as JSON text. */
  readonly payload?: string;
  /** With `failed` and `cancelled`: how it failed. */
  readonly error?: DedupeFailure;
  /** The attempts that were made. */
  readonly execution?: DedupeExecution;
  /**
   * It must not be given up for lack of room before its time: it is what a process that dies leaves to the next one.
   * Only for stores that give up records. Default: it may.
   */
  readonly pinned?: boolean;
}

/** How well a store keeps what it acknowledged. */
export interface StoreReport {
  /** The store's name for itself, such as `memory` or `redis`. */
  readonly kind: string;
  /**
   * `process`: gone with it. `disk`: survives a kill. `replicated`: survives the loss of a machine. `unknown`: the
   * store would not say.
   */
  readonly durability: 'process' | 'memory' | 'disk' | 'replicated' | 'unknown';
  /** Whether several processes can share it. */
  readonly shared: boolean;
  /**
   * It may lose what it acknowledged by less than the loss of its disk: by a kill, by eviction, by a failover. Default:
   * when its durability is `memory` or `unknown`.
   */
  readonly weak?: boolean;
  /** Sentences: settings that lose what was acknowledged. */
  readonly warnings: readonly string[];
  /** How many records it holds; absent where counting would cost too much. */
  readonly records?: number;
}

/**
 * Where records live. Each operation is atomic. A failure to answer is told by throwing or rejecting: whether the
 * operation took place is then not known, and the caller may ask again.
 */
export interface DedupeStore {
  /** Gives the record of a key, or `undefined` when there is none or it has expired. */
  get(key: string): Awaitable<DedupeReading | undefined>;
  /**
   * Claims a key: `created` is true when the record is the claim's own, else it is the one that stands in its way. A
   * key is free when it has no record or an expired one. With `over`, also when its record has this version and no
   * valid lease: so a lease that has passed is taken over, and a failure is run again, by one only and never on the
   * word of an old read.
   * @throws `store_unavailable` when the store is full of claims that run
   */
  setIfNotExists(
    claim: DedupeClaim,
    over?: number,
  ): Awaitable<
    DedupeReading & {
      /** Whether the record given is that of this claim. */
      readonly created: boolean;
    }
  >;
  /**
   * Ends a claim, or replaces an outcome, if the record still has this version; gives the new record, or `undefined`
   * when it was refused. A lease that passed unnoticed does not matter.
   */
  compareAndSet(key: string, version: number, outcome: DedupeOutcome): Awaitable<DedupeRecord | undefined>;
  /**
   * Makes the lease of a claim with this version end `leaseMs` from now; `false` when the claim is no longer there. The
   * version stays.
   * @throws `store_unavailable` with the code `store_moved` when others no longer see what this store holds: the claim
   * is lost at once
   */
  renew(key: string, version: number, leaseMs: number): Awaitable<boolean>;
  /** Removes a record, with `version` only that one; gives whether it did. */
  delete(key: string, version?: number): Awaitable<boolean>;
  /** Lists the records of one tool, in no order; expired ones are left out. */
  byTool(tool: string): AsyncIterable<DedupeRecord>;
  /** Lists the records of one session, in no order; expired ones are left out. */
  bySession(sessionKey: string): AsyncIterable<DedupeRecord>;
  /** Removes what has expired; gives how many. */
  sweep(): Awaitable<number>;
  /**
   * Emits when the record of a key may have changed. A hint: who waits asks again from time to time all the same. Never
   * errors.
   */
  changes?(key: string): Observable<unknown>;
  /** Says how well it keeps what it acknowledges; asked once at the start, and by `inspect()`. */
  report?(): Awaitable<StoreReport>;
  /** Ends timers and subscriptions of the store's own, not the client it was given. Idempotent. */
  close?(): Awaitable<void>;
}

const text: z.ZodMiniString = z.string();
const ms: z.ZodMiniNumber = z.number().check(z.nonnegative(), z.maximum(Number.MAX_SAFE_INTEGER));

/** For stores that read records back from outside: what does not fit is not replayed. */
export const dedupeRecordSchema: z.ZodMiniType<DedupeRecord> = z.strictObject({
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
    tenantId: z.exactOptional(text),
    requestId: text,
    toolCallId: z.exactOptional(text),
    paramsDigest: text,
    turn: z.exactOptional(text),
  }),
  execution: z.exactOptional(
    z.strictObject({
      attemptCount: z.number().check(z.int(), z.nonnegative()),
      attempts: z.array(
        z.strictObject({
          startedAtMs: ms,
          finishedAtMs: ms,
          status: z.enum(['success', 'error']),
          retriable: z.boolean(),
          errorCode: z.exactOptional(text),
        }),
      ),
    }),
  ),
  payload: z.exactOptional(text),
  error: z.exactOptional(
    z.strictObject({
      code: text,
      message: text,
      terminal: z.boolean(),
      shouldRetriable: z.boolean(),
      uncertain: z.exactOptional(z.literal(true)),
    }),
  ),
  lockUntilMs: z.exactOptional(ms),
  version: z.number().check(z.int(), z.nonnegative(), z.maximum(Number.MAX_SAFE_INTEGER)),
});
