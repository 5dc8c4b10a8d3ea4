import { Subject, filter, merge, type Observable } from 'rxjs';
import type { DedupeClaim, DedupeRecord, DedupeStore } from '../../contract/store.ts';
import { memoryStore } from '../../stores/memory.ts';
import { later } from '../later.ts';
import type { SimulatedTime } from '../time.ts';
import type { RecordedKey } from './trace/keys.ts';

/** As many as anybody has recorded. */
const MAX_KEYS = 10_000_000;
/** What another process holds under a key, as the trace of this one shows it. */
const foreignRecord = (
  { key, tool, idempotencyKey, request }: DedupeClaim,
  { foreign, outcome, endMs }: RecordedKey,
  atMs: number,
): DedupeRecord | undefined => {
  if (foreign?.leaderCallId === undefined) return undefined;
  // It renews its lease for as long as it runs: as long as it was waited for.
  const lockUntilMs = Math.max(atMs, endMs, foreign.leaseUntilMs ?? 0) + 1;
  const common = {
    key,
    tool,
    idempotencyKey,
    createdAtMs: atMs,
    updatedAtMs: atMs - (foreign.ageMs ?? 0),
    expiresAtMs: Number.MAX_SAFE_INTEGER,
    ttlMs: 1,
    version: 1,
  };
  const asked = { ...request, requestId: foreign.leaderCallId };
  if (foreign.step === 'waiting' || foreign.step === 'busy')
    return { ...common, request: asked, state: 'inflight', lockUntilMs };
  if (foreign.step === 'conflict')
    return { ...common, request: { ...asked, paramsDigest: 'another' }, state: 'done', payload: '{}' };
  return outcome === undefined ? undefined : { ...common, request: asked, ...outcomeOf(outcome) };
};

/** How a replayed result was recorded. */
const outcomeOf = ({
  result: { status, toolName, error, verified },
}: NonNullable<RecordedKey['outcome']>): Pick<DedupeRecord, 'state' | 'payload' | 'error'> => {
  const payload = JSON.stringify({ status, toolName, output: {}, error, verified });
  if (error === undefined) return { state: 'done', payload };
  const { code, message, terminal, uncertain } = error;
  return {
    state: 'failed',
    payload,
    error: { code, message, terminal, shouldRetriable: !terminal, ...(uncertain === true ? { uncertain } : {}) },
  };
};

/** What other processes hold, as far as calls of the trace met it. */
const foreignKeys = (time: SimulatedTime, keys: ReadonlyMap<string, RecordedKey>) => {
  const foreign = new Map<string, DedupeRecord>();
  const changed$ = new Subject<string>();
  const become = (key: string, record: DedupeRecord | undefined): void => {
    if (record === undefined) foreign.delete(key);
    else foreign.set(key, record);
    changed$.next(key);
  };
  /** Another process has the key from now on, and ends when a call that waited for it heard of its outcome. */
  const meet = (claim: DedupeClaim): DedupeRecord | undefined => {
    const met = keys.get(claim.request.requestId);
    const known = foreign.get(claim.key);
    if (met === undefined || (known !== undefined && known.request.requestId === met.foreign?.leaderCallId))
      return known;
    const record = foreignRecord(claim, met, time.now());
    if (record === undefined) foreign.delete(claim.key);
    else foreign.set(claim.key, record);
    const { outcome, foreign: step } = met;
    if (step?.step !== 'waiting' || record === undefined) return record;
    const freed = met.steps.find((each) => each.step === 'claimed');
    const end = outcome?.step ?? freed;
    if (end !== undefined)
      time.at(end.atMs, end.seq, () => {
        if (outcome === undefined) return become(claim.key, undefined);
        const { lockUntilMs: _, ...rest } = record;
        become(claim.key, { ...rest, updatedAtMs: time.now() - (end.ageMs ?? 0), ...outcomeOf(outcome) });
      });
    return record;
  };
  return { foreign, changed$, meet };
};

/** Claims as slow as the recorded ones. One that was granted was so when it was asked for, or when that was told. */
const slowClaims = (
  time: SimulatedTime,
  keys: ReadonlyMap<string, RecordedKey>,
  claimed: DedupeStore['setIfNotExists'],
): DedupeStore['setIfNotExists'] => {
  const asked = new Set<string>();
  return (claim, over) => {
    const { requestId } = claim.request;
    const key = keys.get(requestId);
    if (key === undefined || asked.has(requestId)) return claimed(claim, over);
    asked.add(requestId);
    const { answeredAfterMs, steps } = key;
    if (answeredAfterMs <= 0 || steps[0]?.step !== 'claimed')
      return later(time, answeredAfterMs, () => claimed(claim, over));
    const now = claimed(claim, over);
    const isFree = 'created' in now && now.created;
    return later(time, answeredAfterMs, () => (isFree ? now : claimed(claim, over)));
  };
};

/**
 * The store of a replay: the package's own, in simulated time, which takes as long to answer each call as the recorded
 * one took. What other processes did under its keys, as far as calls of the trace met it, it does as well.
 */
export function recordedStore(time: SimulatedTime, keys: ReadonlyMap<string, RecordedKey>): DedupeStore {
  const memory = memoryStore({ runtime: time, maxKeys: MAX_KEYS, sweepMs: Infinity });
  const { foreign, changed$, meet } = foreignKeys(time, keys);
  const holders = new Map<string, string>();
  return {
    ...memory,
    get: (key) => {
      const record = foreign.get(key);
      if (record?.lockUntilMs !== undefined && record.lockUntilMs <= time.now()) foreign.delete(key);
      return record === undefined ? memory.get(key) : { record, atMs: time.now() };
    },
    setIfNotExists: slowClaims(time, keys, (claim, over) => {
      holders.set(claim.key, claim.request.requestId);
      const record = meet(claim);
      if (record !== undefined && record.version === over) foreign.delete(claim.key);
      return record === undefined || record.version === over
        ? memory.setIfNotExists(claim, over)
        : { created: false, record, atMs: time.now() };
    }),
    // Nobody knows when on its way it was kept: half of it is wrong by half at the most.
    compareAndSet: (key, version, outcome) => {
      const halfMs = (keys.get(holders.get(key) ?? '')?.keptAfterMs ?? 0) / 2;
      if (halfMs === 0) return memory.compareAndSet(key, version, outcome);
      let kept: ReturnType<DedupeStore['compareAndSet']>;
      const keep = (): void => void (kept = memory.compareAndSet(key, version, outcome));
      time.at(time.now() + halfMs, 0, keep);
      return later(time, 2 * halfMs, () => kept);
    },
    changes: (key): Observable<unknown> =>
      merge(memory.changes?.(key) ?? [], changed$.pipe(filter((changed) => changed === key))),
  };
}
