/** What is remembered of a call under its idempotency key. JSON. */
export interface DedupeRecord {
  readonly key: string;
  readonly tool: string;
  readonly idempotencyKey: string;
  readonly state: 'inflight' | 'done' | 'failed' | 'cancelled';
  readonly createdAtMs: number;
  readonly updatedAtMs: number;
  readonly expiresAtMs: number;
  readonly ttlMs: number;
  readonly request: { readonly sessionKey: string; readonly actorId: string; readonly requestId: string; readonly toolCallId?: string; readonly paramsDigest: string };
  readonly execution?: {
    readonly attemptCount: number;
    readonly attempts: ReadonlyArray<{
      readonly startedAtMs: number;
      readonly finishedAtMs: number;
      readonly status: 'success' | 'error';
      readonly retriable: boolean;
      readonly errorCode?: string;
    }>;
  };
  readonly payload?: unknown;
  readonly error?: { readonly code: string; readonly message: string; readonly terminal: boolean; readonly shouldRetriable: boolean };
  /** The lease of a record in flight. */
  readonly lockUntilMs?: number;
  /** Grows with every write; a write with an older one is refused. */
  readonly version: number;
}

/** Where records live. Every write is atomic; `compareAndSet` and `renew` are refused unless `version` is the record's own. */
export interface DedupeStore {
  get(key: string): Promise<DedupeRecord | undefined>;
  /** The record that is there now, and whether it is the one given. */
  setIfNotExists(record: DedupeRecord): Promise<{ readonly created: boolean; readonly record: DedupeRecord }>;
  compareAndSet(key: string, version: number, next: DedupeRecord): Promise<boolean>;
  renew(key: string, version: number, leaseMs: number): Promise<boolean>;
  delete(key: string): Promise<boolean>;
  byTool(tool: string): AsyncIterable<DedupeRecord>;
  bySession(sessionKey: string): AsyncIterable<DedupeRecord>;
  /** Removes what has expired; gives how many. */
  sweep(): Promise<number>;
}
