import { defer, of, switchMap, throwError, type Observable } from 'rxjs';
import type { DedupeOutcome, DedupeReading, DedupeRecord } from '../contract/store.ts';
import { ToolExecutionError } from '../contract/tool-error.ts';
import { ask } from '../operators/dedupe/ask.ts';
import type { CallContext } from './context.ts';
import type { GuardedTool } from '../layer/registry.ts';
import { NAMES_OWNERS, ownersIn, withOwners } from './replay.ts';
import type { CallOutcome } from './result.ts';
import { given } from '../policy/check.ts';

/** Keeps what calls do that may have to be undone. */
export interface CallJournal {
  /** By which the records of calls name the turn. */
  readonly owner: string;
  /**
   * Emits once it is kept that the call is about to begin; `undefined` for one that is not kept.
   * @throws ToolExecutionError (as the stream's error) where it cannot be kept: then the call must not begin
   */
  begins(context: CallContext, guarded: GuardedTool): Observable<void> | undefined;
  /** The call goes straight through to its tool, and nothing is kept of it. */
  passes(context: CallContext, guarded: GuardedTool): void;
  /** The call gets the result of another that may be undone: emits once it is kept that the turn relies on it, too. */
  relies(context: CallContext, guarded: GuardedTool, record: DedupeRecord): Observable<void>;
  /** Whether the turn is still this process's: each attempt needs it to be. */
  holds(): boolean;
  /** The call is over. @param outcome absent where its caller has left */
  ends(context: CallContext, outcome?: CallOutcome): void;
}

/** Relies on an effect for good: a caller who is told of it, and undoes nothing. */
export const ANYONE = '*';
/** So many turns that rely on one effect are named; after that nobody undoes it. */
const OWNERS_MAX = 16;

const gone = (): ToolExecutionError =>
  new ToolExecutionError(
    'store_unavailable',
    'What was remembered under this idempotency key went while it was read; ask again under the same key',
  );

/** An outcome that puts a record back as it is, but for its payload; its time to live goes on. */
export const renewedOutcome = ({ record, atMs }: DedupeReading, payload: string): DedupeOutcome => ({
  state: 'done',
  ttlMs: Math.max(1, record.expiresAtMs - atMs),
  payload,
  ...given({ execution: record.execution }),
});

/**
 * The result of another call whose turn may undo it is only told once the record says that this one relies on it, too:
 * from then on nobody undoes it alone. Emits the record as it stands then; one that was undone in between is a failure
 * like any other.
 */
export const relied = (
  context: CallContext,
  guarded: GuardedTool,
  reading: DedupeReading,
): Observable<DedupeReading> => {
  const { state, payload } = reading.record;
  // Most records name nobody: those are read once, for the replay itself.
  const owners = state === 'done' && payload?.includes(NAMES_OWNERS) === true ? ownersIn(reading.record) : undefined;
  const { undoLog } = context.site;
  const me = undoLog?.owner ?? ANYONE;
  if (owners === undefined || owners.includes(ANYONE) || owners.includes(me)) return of(reading);
  const kept$ = undoLog?.relies(context, guarded, reading.record) ?? of(undefined);
  // A turn that goes on here learns by which name it is known when it is kept.
  return kept$.pipe(
    switchMap(() => claimed(context, reading, owners.length < OWNERS_MAX ? (undoLog?.owner ?? ANYONE) : ANYONE)),
  );
};

const claimed = (context: CallContext, reading: DedupeReading, me: string): Observable<DedupeReading> => {
  const { layer, site } = context;
  const { dedupe } = layer;
  const { key, version } = reading.record;
  const owners = ownersIn(reading.record);
  if (reading.record.state !== 'done' || owners === undefined || owners.includes(me)) return of(reading);
  const outcome = renewedOutcome(reading, withOwners(reading.record, [...owners, me]));
  const { runtime } = site;
  return defer(() =>
    ask(() => dedupe.store().compareAndSet(key, version, outcome), dedupe.storeTimeoutMs, runtime),
  ).pipe(
    switchMap((written) => {
      if (written !== undefined) return of(reading);
      return ask(() => dedupe.store().get(key), dedupe.storeTimeoutMs, runtime).pipe(
        switchMap((now) => (now === undefined ? throwError(gone) : claimed(context, now, me))),
      );
    }),
  );
};
