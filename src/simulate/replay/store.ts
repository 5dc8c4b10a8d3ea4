import { Subject, delayWhen, filter, merge } from 'rxjs';
import type { DedupeClaim, DedupeReading, DedupeRecord, DedupeStore } from '../../contract/store.ts';
import { memoryStore } from '../../stores/memory.ts';
import { later } from '../later.ts';
import type { SimulatedTime } from '../time.ts';
import type { InOrder } from './tools.ts';
import type { RecordedKey } from './trace/keys.ts';

/** As many as anybody has recorded. */
const MAX_KEYS = 10_000_000;

/** What another process holds under a key, as the trace of this one shows it. */
const foreignRecord = (
  { key, tool, idempotencyKey, request }: DedupeClaim,
  { foreign, outcome, heldUntilMs }: RecordedKey,
  atMs: number,
): DedupeRecord | undefined => {
  if (foreign?.leaderCallId === undefined) return undefined;
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
    return {
      ...common,
      request: asked,
      state: 'inflight',
      lockUntilMs: Math.max(atMs + 1, foreign.leaseUntilMs ?? heldUntilMs + 1),
    };
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

/** A record of another process, ended as a call that waited for it heard. */
const endedAs = (record: DedupeRecord, outcome: NonNullable<RecordedKey['outcome']>, nowMs: number): DedupeRecord => {
  const { lockUntilMs: _, ...rest } = record;
  const { leaderCallId = record.request.requestId, ageMs = 0 } = outcome.step;
  const request = { ...record.request, requestId: leaderCallId };
  return { ...rest, request, updatedAtMs: nowMs - ageMs, ...outcomeOf(outcome) };
};

/** What other processes hold, as far as calls of the trace met it. */
const foreignKeys = (time: SimulatedTime, inOrder: InOrder, keys: ReadonlyMap<string, RecordedKey>) => {
  const foreign = new Map<string, DedupeRecord>();
  const changed$ = new Subject<string>();
  const become = (key: string, record: DedupeRecord | undefined): void => {
    if (record === undefined) foreign.delete(key);
    else foreign.set(key, record);
    changed$.next(key);
  };
  const met = new Set<string>();
  const heldUntilMs = new Map<string, number>();
  /** Another process has the key from now on, and ends when a call that waited for it heard of its outcome. */
  const endsAsWasHeard = ({ outcome, steps }: RecordedKey, key: string, record: DedupeRecord): void => {
    const end = outcome?.step ?? steps.find((each) => each.step === 'claimed');
    if (end === undefined) return;
    inOrder(end.atMs, end.seq, () =>
      become(key, outcome === undefined ? undefined : endedAs(record, outcome, time.now())),
    );
  };
  const meet = (claim: DedupeClaim): DedupeRecord | undefined => {
    const { key, request } = claim;
    const own = keys.get(request.requestId);
    // What was there has had its time.
    if (own?.steps[0]?.step === 'claimed' && foreign.get(key)?.lockUntilMs === undefined) foreign.delete(key);
    const record = own === undefined || met.has(request.requestId) ? undefined : foreignRecord(claim, own, time.now());
    if (own === undefined || record === undefined) return foreign.get(key);
    // Who asked for something else under the key says nothing of what others will find there.
    if (own.foreign?.step === 'conflict') return record;
    met.add(request.requestId);
    heldUntilMs.set(key, own.heldUntilMs);
    foreign.set(key, record);
    if (own.foreign?.step === 'waiting') endsAsWasHeard(own, key, record);
    return record;
  };
  /** What is there: who holds a key renews its lease for as long as it was waited for. */
  const find = (key: string): DedupeRecord | undefined => {
    const record = foreign.get(key);
    if (record?.lockUntilMs === undefined || record.lockUntilMs > time.now()) return record;
    const untilMs = heldUntilMs.get(key) ?? 0;
    if (untilMs > time.now()) return { ...record, lockUntilMs: untilMs + 1 };
    foreign.delete(key);
    return undefined;
  };
  return { foreign, changed$, meet, find };
};

/** Whether what is found under a key is what the recorded call was told of. */
const fits = (found: DedupeReading | undefined, { steps: [first] }: RecordedKey): boolean => {
  if (first?.step === 'claimed') return found === undefined;
  if (first?.step === 'waiting' || first?.step === 'busy') return found?.record.state === 'inflight';
  return first?.step !== 'replayed' || (found !== undefined && found.record.state !== 'inflight');
};

/** A store as its recorded answers have it. Who writes has its answer before those who waited hear of it. */
interface Answering {
  readonly time: SimulatedTime;
  readonly inOrder: InOrder;
  readonly keys: ReadonlyMap<string, RecordedKey>;
  readonly claimed: DedupeStore['setIfNotExists'];
  readonly look: (claim: DedupeClaim) => DedupeReading | undefined;
  /** An outcome that is on its way is there. */
  readonly arrive: (key: string) => void;
}

/**
 * Claims as slow as the recorded ones, in their order. When on its way the store looked is not told: when it was asked,
 * or when its answer was told, whichever finds what the call was told of.
 */
const slowClaims = ({ time, inOrder, keys, claimed, look, arrive }: Answering): DedupeStore['setIfNotExists'] => {
  const asked = new Set<string>();
  return (claim, over) => {
    const { requestId } = claim.request;
    const key = keys.get(requestId);
    if (key === undefined || asked.has(requestId)) return claimed(claim, over);
    asked.add(requestId);
    const { answeredAfterMs, steps } = key;
    const [first] = steps;
    const found = look(claim);
    const isFound = fits(found, key);
    if (answeredAfterMs <= 0 && isFound) return claimed(claim, over);
    const granted = isFound && first?.step === 'claimed' ? claimed(claim, over) : undefined;
    return later(
      (work) => void inOrder(time.now() + Math.max(0, answeredAfterMs), first?.seq ?? 0, work),
      () => {
        if (granted !== undefined) return granted;
        if (first?.step === 'replayed') arrive(claim.key);
        return isFound && found !== undefined && !fits(look(claim), key)
          ? { created: false, ...found }
          : claimed(claim, over);
      },
    );
  };
};

const readingOf = (record: DedupeRecord | undefined, atMs: number): DedupeReading | undefined =>
  record === undefined ? undefined : { record, atMs };

/** Outcomes that take as long to be kept as the recorded ones took. */
const slowOutcomes =
  (
    time: SimulatedTime,
    write: DedupeStore['compareAndSet'],
    keptOf: (key: string) => RecordedKey['kept'] | undefined,
    onTheirWay: Map<string, () => void>,
  ): DedupeStore['compareAndSet'] =>
  (key, version, outcome) => {
    const { afterMs, heard } = keptOf(key) ?? { afterMs: 0, heard: true };
    if (afterMs === 0) return write(key, version, outcome);
    let kept: ReturnType<DedupeStore['compareAndSet']> | undefined;
    const keep = (): void => {
      kept ??= write(key, version, outcome);
      onTheirWay.delete(key);
    };
    onTheirWay.set(key, keep);
    // Nobody knows when on its way it was kept: half of it is wrong by half at the most.
    time.at(time.now() + (heard ? afterMs / 2 : afterMs), 0, keep);
    return later(
      (work) => void time.at(time.now() + afterMs, 0, work),
      () => kept ?? write(key, version, outcome),
    );
  };

/**
 * The store of a replay: the package's own, in simulated time, which takes as long to answer each call as the recorded
 * one took. What other processes did under its keys, as far as calls of the trace met it, it does as well.
 */
export function recordedStore(
  time: SimulatedTime,
  inOrder: InOrder,
  keys: ReadonlyMap<string, RecordedKey>,
): DedupeStore {
  const memory = memoryStore({ runtime: time, maxKeys: MAX_KEYS, sweepMs: Infinity });
  const { foreign, changed$, meet, find } = foreignKeys(time, inOrder, keys);
  const holders = new Map<string, string>();
  const onTheirWay = new Map<string, () => void>();
  const claimed: DedupeStore['setIfNotExists'] = (claim, over) => {
    const record = meet(claim);
    if (record !== undefined && record.version !== over) return { created: false, record, atMs: time.now() };
    if (record !== undefined) foreign.delete(claim.key);
    const answer = memory.setIfNotExists(claim, over);
    if ('created' in answer && answer.created) holders.set(claim.key, claim.request.requestId);
    return answer;
  };
  return {
    ...memory,
    get: (key) => readingOf(find(key), time.now()) ?? memory.get(key),
    setIfNotExists: slowClaims({
      time,
      inOrder,
      keys,
      claimed,
      look: (claim) => readingOf(meet(claim), time.now()) ?? (memory.get(claim.key) as DedupeReading | undefined),
      arrive: (key) => onTheirWay.get(key)?.(),
    }),
    compareAndSet: slowOutcomes(
      time,
      (...asked) => memory.compareAndSet(...asked),
      (key) => keys.get(holders.get(key) ?? '')?.kept,
      onTheirWay,
    ),
    changes: (key) => {
      const foreign$ = changed$.pipe(filter((changed) => changed === key));
      return merge(memory.changes?.(key) ?? [], foreign$).pipe(delayWhen(() => time.after(0)));
    },
  };
}
