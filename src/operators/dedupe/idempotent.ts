import {
  EMPTY,
  Observable,
  Subscription,
  concatMap,
  defer,
  dematerialize,
  filter,
  finalize,
  identity,
  map,
  materialize,
  of,
  startWith,
  switchMap,
  throwError,
  type ObservableNotification,
} from 'rxjs';
import type { DedupeClaim, DedupeOutcome, DedupeReading } from '../../contract/store.ts';
import type { ToolExecutionError } from '../../contract/tool-error.ts';
import { held } from '../work/held.ts';
import { acquireKey, type KeyAnswer, type KeyTerms, type TellKeyStep } from './key-acquisition.ts';
import type { Lease } from './lease.ts';
import type { Recording } from './outcome-record.ts';

/** How the work under a key ended: by itself, or since its subscriber left. */
export type RunEnd = Exclude<ObservableNotification<never>, { readonly kind: 'N' }> | { readonly kind: 'left' };

/** What became of the record of a run: `released` where nothing had run, `unprotected` where there was no lease. */
export type RunRecord = Recording | 'released' | 'unprotected';

/**
 * What a stream under a key is, to the operator that runs it once: which key, and how its outcome is put into a record
 * and read from it.
 */
export interface IdempotentRun<T> {
  readonly claim: DedupeClaim;
  readonly terms: KeyTerms;
  readonly tell: TellKeyStep;
  /** It runs now. */
  begins(as: Extract<KeyAnswer, { readonly act: 'run' }>): void;
  /** It must not run, or cannot. Default: the stream errors. */
  refused?(error: ToolExecutionError): Observable<T>;
  /** What a record gives to this stream. */
  replay(reading: DedupeReading, matchedOn: 'inflight' | 'completed'): Observable<T>;
  /** What is remembered of a run; `undefined` where nothing ran, so that the key is free again. */
  outcome(values: readonly T[], end: RunEnd): DedupeOutcome | undefined;
  /**
   * What is emitted of the one value of a stream whose value is held back until it is recorded. Without it values pass
   * as they come.
   */
  recorded?(value: T, recording: RunRecord): Observable<T>;
  /**
   * What is emitted instead when the lease was lost while the work ran, once that has stopped; `undefined` when it goes
   * on unprotected.
   */
  lost(error: ToolExecutionError | undefined): Observable<T> | undefined;
  /**
   * Its subscriber has left while others of this process wait: whether it goes on for them, until `stop` is called.
   * Default: it does.
   */
  outlives?(stop: () => void): boolean;
  /** Nobody waits for it any more. Default: it stops. */
  deserted?(): void;
  /** It had gone on without its subscriber, and is over. */
  endedAlone?(): void;
}

/**
 * Runs a stream once per key: the one engine of `dedupe` and of calls. Its key is acquired, and then it
 * runs under a lease, gets what another's record holds, or errors with why it must not run.
 *
 * ```
 * key      --(lease)-----------------|
 * work       --a--b--|
 * told     ----a--b-----|              once the store has recorded it
 * ```
 */
export const idempotent =
  <T>(run: IdempotentRun<T>) =>
  (source: Observable<T>): Observable<T> =>
    defer(() => acquireKey(run.claim, run.terms, run.tell)).pipe(
      switchMap((answer) => {
        if (answer.act === 'refuse') return run.refused?.(answer.error) ?? throwError(() => answer.error);
        if (answer.act === 'replay') return run.replay(answer.reading, answer.matchedOn);
        run.begins(answer);
        return underLease(run, source, answer.lease);
      }),
    );

/**
 * The work while its lease holds, and what takes its place when the lease is lost. It may outlive its subscriber, for
 * those who wait for its key.
 */
const underLease = <T>(run: IdempotentRun<T>, source: Observable<T>, lease: Lease | undefined): Observable<T> => {
  const values: T[] = [];
  const recorded$ = run.recorded === undefined ? passing(run, source, lease, values) : heldBack(run, source, lease);
  if (lease === undefined) return recorded$;
  const instead$ = lease.lost$.pipe(
    map((error) => run.lost(error)),
    filter((inputs$) => inputs$ !== undefined),
  );
  return outliving(run, lease, values, instead$.pipe(startWith(recorded$), switchMap(identity)));
};

/** Values pass as they come; the end is told once it is recorded, or it is known that it cannot be. */
const passing = <T>(
  run: IdempotentRun<T>,
  source: Observable<T>,
  lease: Lease | undefined,
  values: T[],
): Observable<T> =>
  source.pipe(
    materialize(),
    concatMap((notification) => {
      if (notification.kind !== 'N') return recording(run, lease, values, notification).pipe(map(() => notification));
      if (lease !== undefined) values.push(notification.value);
      return of(notification);
    }),
    dematerialize(),
  );

/** A stream of one value, which is held back until it is known what became of its record. */
const heldBack = <T>(run: IdempotentRun<T>, source: Observable<T>, lease: Lease | undefined): Observable<T> =>
  source.pipe(
    concatMap((value) =>
      recording(run, lease, [value], COMPLETED).pipe(concatMap((became) => run.recorded?.(value, became) ?? EMPTY)),
    ),
  );

const COMPLETED: RunEnd = { kind: 'C' };

/** Puts the outcome into the record, or gives the key back, and emits what became of that. */
const recording = <T>(
  run: IdempotentRun<T>,
  lease: Lease | undefined,
  values: readonly T[],
  end: RunEnd,
): Observable<RunRecord> => {
  if (lease?.isHeld !== true) return of('unprotected');
  const outcome = run.outcome(values, end);
  if (outcome === undefined) {
    lease.release();
    run.tell('released');
    return of('released');
  }
  return lease.settled(outcome).pipe(
    map(({ recording: became, why }) => {
      run.tell(became, why && { message: why.message });
      return became;
    }),
  );
};

/**
 * Goes on without its subscriber while others of this process wait for its key; else it is stopped, and the record says
 * so.
 */
const outliving = <T>(
  run: IdempotentRun<T>,
  lease: Lease,
  values: readonly T[],
  source: Observable<T>,
): Observable<T> =>
  new Observable((subscriber) => {
    const work = new Subscription();
    let isAlone = false;
    const stop = (): void => {
      try {
        work.unsubscribe();
      } finally {
        // Also where its teardown throws: the key would be kept for as long as this process lives.
        if (lease.isHeld) recording(run, lease, values, { kind: 'left' }).subscribe();
      }
    };
    subscriber.add(() => {
      isAlone = lease.isHeld && lease.waitedFor && (run.outlives?.(stop) ?? true);
      if (isAlone) lease.onUnwaited(() => (run.deserted === undefined ? stop() : run.deserted()));
      else stop();
    });
    source
      .pipe(
        held((own) => work.add(own)),
        finalize(() => isAlone && run.endedAlone?.()),
      )
      .subscribe({
        next: (value) => subscriber.next(value),
        error: (error: unknown) => subscriber.error(error),
        complete: () => subscriber.complete(),
      });
  });
