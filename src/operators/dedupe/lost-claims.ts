import { tap, type Observable } from 'rxjs';
import type { DedupeClaim, DedupeRecord, DedupeStore } from '../../contract/store.ts';
import { ask } from './ask.ts';
import type { LeaseTerms } from './lease.ts';
import { AT_ONCE_MS } from './release-if.ts';

/** A claim whose fate the store did not tell: it may stand there, and nothing runs under it. */
interface LostClaim {
  /** It was to take over from another, whose work may have taken effect. */
  readonly tookOver: boolean;
  /** The lease has passed by then. */
  readonly untilMs: number;
}

/** So many are remembered of a store that is lost: those of the others run out. */
const MOST = 10_000;

const lostClaims = new WeakMap<DedupeStore, Map<string, LostClaim>>();

const nameOf = ({ key, request }: Pick<DedupeClaim, 'key' | 'request'>): string => `${request.requestId} ${key}`;

/**
 * Remembers a claim, or the end of one, that the store did not answer: the next call of this process under its key need
 * not wait for its lease. Only where the id of its request is no other claim's.
 */
export const loseClaim = (
  { store, runtime, leaseMs, hasOwnId }: LeaseTerms,
  claim: Pick<DedupeClaim, 'key' | 'request'>,
  tookOver: boolean,
): void => {
  if (!hasOwnId) return;
  const lost = lostClaims.get(store) ?? new Map<string, LostClaim>();
  lostClaims.set(store, lost);
  const nowMs = runtime.now();
  lost.delete(nameOf(claim));
  lost.set(nameOf(claim), { tookOver, untilMs: nowMs + 2 * leaseMs });
  for (const [oldest, { untilMs }] of lost) {
    if (lost.size <= MOST && untilMs > nowMs) break;
    lost.delete(oldest);
  }
};

/** The claim was granted: that it was lost before counts no more. */
export const forgetLost = (store: DedupeStore, claim: DedupeClaim): void => {
  lostClaims.get(store)?.delete(nameOf(claim));
};

/**
 * Takes a lost claim of this process out of its own way, if that is what the record is: the key is free again, or, if
 * the claim had taken it over, as free as before. Emits once the store has done so.
 */
export const clearedOfLost = (
  { store, runtime, storeTimeoutMs }: LeaseTerms,
  record: DedupeRecord,
): Observable<unknown> | undefined => {
  const lost = lostClaims.get(store);
  const claim = lost?.get(nameOf(record));
  if (claim === undefined || record.state !== 'inflight') return undefined;
  const { key, version } = record;
  const question = (): ReturnType<DedupeStore['renew']> =>
    claim.tookOver ? store.renew(key, version, AT_ONCE_MS) : store.delete(key, version);
  return ask(question, storeTimeoutMs, runtime).pipe(tap(() => lost?.delete(nameOf(record))));
};
