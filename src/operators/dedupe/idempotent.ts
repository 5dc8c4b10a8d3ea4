import {
  EMPTY,
  Observable,
  Subscription,
  filter,
  finalize,
  identity,
  map,
  mergeMap,
  switchMap,
  throwError,
} from 'rxjs';
import type { DedupeClaim, DedupeOutcome, DedupeReading } from '../../contract/store.ts';
import type { ToolExecutionError } from '../../contract/tool-error.ts';
import { held } from '../work/held.ts';
import { acquireKey, type KeyAnswer, type KeyTerms, type TellKeyStep } from './key-acquisition.ts';
import type { Lease } from './lease.ts';
import type { Recording } from './outcome-record.ts';

/** What became of the record of a run: `released` where nothing had run, `unprotected` where there was no lease. */
export type RunRecord = Recording | 'released' | 'unprotected';

/**
 * Puts an outcome into the record of a run, or gives the key back where there is none, and goes on with `follow`. The
 * outcome is asked for only while the key is held. What follows is a function and no operator: a record that is written
 * at once costs no stream of its own.
 */
export type Recorder = <R>(
  outcome: () => DedupeOutcome | undefined,
  follow: (became: RunRecord) => Observable<R>,
) => Observable<R>;

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
  /**
   * The work, with its outcome put into the record: its values pass as they come, or are held back until it is known
   * what became of that.
   */
  recorded(source: Observable<T>, record: Recorder): Observable<T>;
  /** What is remembered where its subscriber left; `undefined` where nothing ran, so that the key is free again. */
  left(): DedupeOutcome | undefined;
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
    acquireKey(run.claim, run.terms, run.tell).pipe(
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
  const record = recorderOf(run, lease);
  const recorded$ = run.recorded(source, record);
  if (lease === undefined) return recorded$;
  // `startWith` by hand, without the streams that it joins. Who has left by then watches no lease.
  const work$ = new Observable<Observable<T>>((subscriber) => {
    subscriber.next(recorded$);
    if (subscriber.closed) return;
    lease.lost$
      .pipe(
        map((error) => run.lost(error)),
        filter((instead$) => instead$ !== undefined),
      )
      .subscribe(subscriber);
  });
  return outliving(run, lease, record, work$.pipe(switchMap(identity)));
};

const recorderOf =
  <T>(run: IdempotentRun<T>, lease: Lease | undefined): Recorder =>
  (outcomeOf, follow) => {
    if (lease?.isHeld !== true) return follow('unprotected');
    const outcome = outcomeOf();
    if (outcome === undefined) {
      lease.release();
      run.tell('released');
      return follow('released');
    }
    return lease.settled(outcome).pipe(
      mergeMap(({ recording, why }) => {
        run.tell(recording, why && { message: why.message });
        return follow(recording);
      }),
    );
  };

/**
 * Goes on without its subscriber while others of this process wait for its key; else it is stopped, and the record says
 * so.
 */
const outliving = <T>(run: IdempotentRun<T>, lease: Lease, record: Recorder, source: Observable<T>): Observable<T> =>
  new Observable((subscriber) => {
    const work = new Subscription();
    let isAlone = false;
    const stop = (): void => {
      try {
        work.unsubscribe();
      } finally {
        // Also where its teardown throws: the key would be kept for as long as this process lives.
        if (lease.isHeld)
          record(
            () => run.left(),
            () => EMPTY,
          ).subscribe();
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
