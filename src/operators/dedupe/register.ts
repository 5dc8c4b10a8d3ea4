import { defer, map, of, repeat, switchMap, take, throwError, type Observable } from 'rxjs';
import type { Runtime } from '../../contract/runtime.ts';
import type { Awaitable, DedupeClaim, DedupeReading, DedupeStore } from '../../contract/store.ts';
import { ToolExecutionError } from '../../contract/tool-error.ts';
import { sha256 } from '../../policy/key/sha256.ts';
import { ask } from './ask.ts';

/** A writer that died before it wrote is in nobody's way for longer. */
const CLAIM_MS = 1_000;
/** Writers that come in each other's way wait up to so long more each time. */
const STEP_MS = 5;
const WAIT_MAX_MS = 100;
/** So many others wrote between two looks: the store, or whoever writes, is out of order. */
const TRIES_MAX = 200;

/** Where a record is, and how it is listed. */
export interface RegisterPlace {
  readonly key: string;
  /** The name that the store lists it by. */
  readonly tool: string;
  /** How long it is kept where its first write never comes. */
  readonly ttlMs: number;
}

/** A record as a change finds it. */
export interface RegisterReading {
  /** Absent where there is none yet, or its writer died before it wrote. */
  readonly payload: string | undefined;
  /** Only grows, also when the record was gone between. Absent where there is no record at all. */
  readonly version: number | undefined;
  /** The store's clock. */
  readonly atMs: number | undefined;
}

/** What a change comes to: what it gives, and what it writes, if anything. */
export interface RegisterChange<R> {
  readonly result: R;
  readonly write?: { readonly payload: string; readonly ttlMs: number };
}

export interface RegisterTerms {
  readonly store: () => DedupeStore;
  readonly runtime: Runtime;
  readonly storeTimeoutMs: number;
}

const NOTHING: RegisterReading = { payload: undefined, version: undefined, atMs: undefined };

const readingOf = ({ record, atMs }: DedupeReading): RegisterReading => ({
  payload: record.state === 'inflight' ? undefined : record.payload,
  version: record.version,
  atMs,
});

const claimOf = ({ key, tool, ttlMs }: RegisterPlace): DedupeClaim => ({
  key,
  tool,
  idempotencyKey: key,
  // No session: what is forgotten of a session are results, and this is none.
  request: { sessionKey: '', actorId: '', requestId: tool, paramsDigest: sha256('') },
  leaseMs: CLAIM_MS,
  ttlMs,
});

const busy = (): ToolExecutionError =>
  new ToolExecutionError('store_unavailable', 'Too many write one record at once; ask again');

/**
 * Changes a record that processes share, as if nobody else did: reads it, asks what is to become of it, and writes that
 * unless another has written meanwhile; then it begins anew. Emits what the last change gave, once. A write whose
 * answer is lost is an error, and may have taken place.
 *
 * ```
 * read                   r---r---
 * change                 -c---c--
 * write, if unchanged    --x---w-      another wrote first, so it is read again
 * changed                -------(a|)
 * ```
 *
 * @param change called with each reading; it only decides
 */
export const changed = <R>(
  { store, runtime, storeTimeoutMs }: RegisterTerms,
  place: RegisterPlace,
  change: (reading: RegisterReading) => RegisterChange<R>,
): Observable<R> => {
  const asked = <T>(question: (store: DedupeStore) => Awaitable<T>): Observable<T> =>
    ask(() => question(store()), storeTimeoutMs, runtime);
  const written = (reading: DedupeReading): Observable<readonly R[]> => {
    const { result, write } = change(readingOf(reading));
    if (write === undefined) return of([result]);
    const outcome = { state: 'done', ...write } as const;
    return asked((to) => to.compareAndSet(place.key, reading.record.version, outcome)).pipe(
      map((record) => (record === undefined ? [] : [result])),
    );
  };
  const once = (): Observable<readonly R[]> =>
    asked((from) => from.get(place.key)).pipe(
      switchMap((reading) => {
        if (reading !== undefined) return written(reading);
        const { result, write } = change(NOTHING);
        if (write === undefined) return of([result]);
        return asked((to) => to.setIfNotExists(claimOf(place))).pipe(switchMap(written));
      }),
    );
  return defer(() => {
    let tries = 0;
    return defer(() => (++tries > TRIES_MAX ? throwError(busy) : once())).pipe(
      repeat({ delay: () => runtime.after(runtime.random() * Math.min(WAIT_MAX_MS, tries * STEP_MS)) }),
      switchMap((results) => results),
      take(1),
    );
  });
};
