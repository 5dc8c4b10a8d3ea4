import {
  EMPTY,
  NEVER,
  catchError,
  defer,
  filter,
  ignoreElements,
  map,
  merge,
  of,
  repeat,
  switchMap,
  take,
  type Observable,
} from 'rxjs';
import type { JournalEntry } from '../contract/settle/journal.ts';
import type { Awaitable, DedupeOutcome, DedupeReading, DedupeRecord, DedupeStore } from '../contract/store.ts';
import { ownersIn, withOwners } from '../call/replay.ts';
import { renewedOutcome } from '../call/undo-log.ts';
import type { Layer } from '../layer/services.ts';
import { ask } from '../operators/dedupe/ask.ts';
import type { UndoSite } from './undo.ts';

/** Between two looks at a call that runs, at most. */
const POLL_MS = 1_000;
/** Who waited for a key is given this long to say that it relies on what was done: twice what it polls by. */
const GRACE_MS = 2_000;

const asked = <T>({ dedupe, runtime }: Layer, question: (store: DedupeStore) => Awaitable<T>): Observable<T> =>
  ask(() => question(dedupe.store()), dedupe.storeTimeoutMs, runtime.background ?? runtime);

/**
 * The record of a call, once nobody holds it any more: one that runs is waited for, whichever process runs it, unless
 * the turn's engine has given that one up. Emits `undefined` where there is none.
 * @throws ToolExecutionError `store_unavailable` (as the stream's error)
 */
export const settledRecord = ({ layer, engine }: UndoSite, key: string): Observable<DedupeReading | undefined> =>
  defer(() => {
    const timer = layer.runtime.background ?? layer.runtime;
    let leftMs = 0;
    let gone: DedupeRecord | undefined;
    return asked(layer, (store) => store.get(key)).pipe(
      switchMap((reading) => {
        const { record, atMs = 0 } = reading ?? {};
        // What was given up may have ended meanwhile: it is looked at once more.
        const isGone = gone !== undefined && record?.version === gone.version;
        leftMs = isGone ? 0 : Math.max(0, (record?.lockUntilMs ?? 0) - atMs);
        if (leftMs === 0 || record?.request.turn === undefined || engine === undefined) return of(reading);
        return engine.givenUp(record.request.turn).pipe(
          map((isGivenUp) => {
            if (isGivenUp) [gone, leftMs] = [record, 1];
            return reading;
          }),
        );
      }),
      repeat({
        delay: () =>
          merge(layer.dedupe.store().changes?.(key) ?? NEVER, timer.after(Math.min(leftMs, POLL_MS))).pipe(take(1)),
      }),
      filter(() => layer.closed || leftMs === 0),
      take(1),
    );
  });

const UNDONE = 'What was done under this idempotency key was undone; use a new key to do it again';
const IN_DOUBT =
  'What was done under this idempotency key is being undone, or could not be; look at its turn, and use a new key';

/** A record that no longer stands: nobody gets its result again. */
const revocation = ({ journal }: UndoSite, { ttlMs }: DedupeRecord, isUndone: boolean): DedupeOutcome => {
  const message = isUndone ? UNDONE : `${IN_DOUBT} (${journal.turnId})`;
  const failure = { code: 'conflict', message, terminal: true, shouldRetriable: false } as const;
  return { state: 'failed', ttlMs, error: isUndone ? failure : { ...failure, uncertain: true } };
};

/**
 * Whose an effect is. `own`: nobody else relies on it, and nobody can any more. `shared`: others do. `held`: another
 * process that has died may have relied on it.
 */
export type EffectStanding = 'own' | 'shared' | 'held';

/** Another call has the record: what it succeeded with is its own. */
const standingOfOther = ({ state }: DedupeRecord): EffectStanding => {
  if (state === 'done') return 'shared';
  return state === 'inflight' ? 'held' : 'own';
};

/**
 * Gives up this turn's claim on what a call did, and emits whose it is then. The store decides in one step between who
 * undoes it and who relies on it, so that nobody is told of an effect that is undone.
 *
 * @param isUndoable where it cannot be undone, its record stays as it is
 * @throws ToolExecutionError `store_unavailable` (as the stream's error): then nothing may be undone
 */
export const letGo = (site: UndoSite, entry: JournalEntry, isUndoable: boolean): Observable<EffectStanding> => {
  const { recordKey } = entry;
  if (recordKey === undefined) return of('own');
  const { layer, journal } = site;
  const timer = layer.runtime.background ?? layer.runtime;
  const ready$ = site.live(entry, entry.toolName).wasAwaited === true ? timer.after(GRACE_MS) : of(0);
  return ready$.pipe(
    switchMap(() => settledRecord(site, recordKey)),
    switchMap((reading): Observable<EffectStanding> => {
      if (reading === undefined) return of('own');
      const { record } = reading;
      // An earlier owner of this very turn has only claimed it: what it had begun would be in the journal.
      const isClaimOfTurn = record.state === 'inflight' && record.request.turn?.startsWith(`${journal.submission}/`);
      if (record.request.requestId !== entry.callId && !isClaimOfTurn) return of(standingOfOther(record));
      const owners = record.state === 'done' ? (ownersIn(record) ?? []) : [];
      const others = owners.filter((owner) => owner !== journal.owner);
      if (others.length === 0 && !isUndoable) return of('own');
      const outcome =
        others.length > 0 ? renewedOutcome(reading, withOwners(record, others)) : revocation(site, record, false);
      return asked(layer, (store) => store.compareAndSet(recordKey, record.version, outcome)).pipe(
        switchMap((written) => {
          if (written === undefined) return letGo(site, entry, isUndoable);
          return of<EffectStanding>(others.length > 0 ? 'shared' : 'own');
        }),
      );
    }),
  );
};

/** Puts into a call's own record what became of undoing it. Completes also where that cannot be. */
export const revoked = (site: UndoSite, { recordKey, callId }: JournalEntry, isUndone: boolean): Observable<never> => {
  if (recordKey === undefined) return EMPTY;
  return asked(site.layer, (store) => store.get(recordKey)).pipe(
    filter((reading) => reading !== undefined),
    filter(({ record }) => record.request.requestId === callId && record.state !== 'inflight'),
    switchMap(({ record }) =>
      asked(site.layer, (store) => store.compareAndSet(recordKey, record.version, revocation(site, record, isUndone))),
    ),
    catchError(() => EMPTY),
    ignoreElements(),
  );
};
