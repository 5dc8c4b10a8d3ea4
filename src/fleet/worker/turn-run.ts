import {
  EMPTY,
  NEVER,
  Observable,
  Subject,
  catchError,
  defer,
  filter,
  map,
  merge,
  mergeMap,
  of,
  race,
  switchMap,
  take,
  tap,
} from 'rxjs';
import type { FleetLayer } from '../../contract/fleet/port.ts';
import type { TraceEvent } from '../../contract/event.ts';
import type { Runtime } from '../../contract/runtime.ts';
import type { Given, RunEnd } from '../dispatcher.ts';
import type { Begun, Taking, TurnLedger } from '../ledger.ts';
import { storedPlan } from '../plan-record.ts';
import { recorderOf, type Recorder } from '../recorder.ts';
import { untilAnswered } from '../until-answered.ts';
import { drained, journalOf } from './journal.ts';
import { refusal } from './refusal.ts';

/** A turn of another version is looked at again after so long: a worker of that version may be free then. */
const OTHER_VERSION_MS = 500;
/** Workers of a version that were not heard of for so long are gone: then its turns are refused by name. */
const VERSION_GONE_MS = 30_000;

/** What the turns of one worker share. */
export interface WorkerSite {
  readonly ledger: TurnLedger;
  readonly runtime: Runtime;
  readonly layer: FleetLayer;
  readonly worker: string;
  readonly version: string;
  /** Emits when the turn is given to this worker once more: an earlier run of it here is to leave first. */
  again(turnId: string): Observable<unknown>;
  /** What others may see of a turn. */
  traceOf(turnId: string): Observable<TraceEvent>;
  /** Emits the turns that are to be cancelled. */
  readonly cancelled$: Observable<readonly string[]>;
  /** Emits when the worker is to end: turns are handed over once their running nodes have ended. */
  readonly draining$: Observable<unknown>;
  /** Emits when that has taken too long. */
  readonly drainedAnyway$: Observable<unknown>;
}

const DONE: RunEnd = { act: 'done' };
const AGAIN: RunEnd = { act: 'again', afterMs: 0 };

/** Runs a turn that was given to this worker, from where it was left; emits what becomes of it here. */
export const runGiven = (site: WorkerSite, { turnId, lost$ }: Given): Observable<RunEnd> => {
  const { ledger, runtime, worker, version } = site;
  const begin = (evenSo: boolean): Observable<Taking> =>
    untilAnswered(() => ledger.begin(turnId, worker, version, evenSo), runtime);
  return begin(false).pipe(
    mergeMap((taking) => {
      if (taking.state === 'begun') return runBegun(site, turnId, taking, lost$);
      if (taking.state !== 'other_version') return of(DONE);
      const isTime = taking.nowMs < taking.deadlineAtMs;
      if (isTime && taking.silentMs < VERSION_GONE_MS) return of<RunEnd>({ act: 'again', afterMs: OTHER_VERSION_MS });
      return begin(true).pipe(
        mergeMap((forced) => {
          if (forced.state !== 'begun') return of(DONE);
          return refusedRun(
            site,
            turnId,
            forced,
            `tools of version ${taking.version} began it, and no worker has them`,
          );
        }),
      );
    }),
  );
};

/** A turn that no worker can finish: it settles as failed, and says why. */
const refusedRun = (
  { ledger, runtime, version }: WorkerSite,
  turnId: string,
  begun: Begun,
  why: string,
): Observable<RunEnd> =>
  defer(() => {
    const recorder = recorderOf(ledger, turnId, begun, tenantOf(begun), runtime);
    const event = refusal(turnId, begun, `${why}; this worker has version ${version}`, runtime);
    return merge(recorder.settle(event).pipe(map(() => DONE)), recorder.lost$.pipe(map(() => DONE))).pipe(
      take(1),
      tap({ finalize: () => recorder.close() }),
    );
  });

const tenantOf = ({ record }: Begun): string => {
  const { tenant = '' } = JSON.parse(record) as { readonly tenant?: string };
  return tenant;
};

const runBegun = (site: WorkerSite, turnId: string, begun: Begun, lost$: Observable<unknown>): Observable<RunEnd> =>
  defer(() => {
    let stored: ReturnType<typeof storedPlan>;
    try {
      stored = storedPlan(begun.record);
    } catch (error) {
      return refusedRun(site, turnId, begun, error instanceof Error ? error.message : String(error));
    }
    const { ledger, runtime } = site;
    const recorder = recorderOf(ledger, turnId, begun, tenantOf(begun), runtime);
    return underway(site, turnId, begun, stored, recorder, lost$).pipe(
      // A defect of ours must not keep the turn from others.
      catchError(() => of<RunEnd>({ act: 'again', afterMs: OTHER_VERSION_MS })),
      take(1),
      tap({ finalize: () => recorder.close() }),
    );
  });

const underway = (
  site: WorkerSite,
  turnId: string,
  begun: Begun,
  { plan, identity }: ReturnType<typeof storedPlan>,
  recorder: Recorder,
  lost$: Observable<unknown>,
): Observable<RunEnd> =>
  new Observable((subscriber) => {
    const { layer, ledger, runtime, worker } = site;
    const aborting = new AbortController();
    const left$ = new Subject<unknown>();
    // Calls of an earlier run that have no turn here any more are told of to nobody.
    const trace$ = site.traceOf(turnId).pipe(filter((event) => !('late' in event)));
    const busy = new Set<string>();
    const journal = journalOf({
      ledger,
      runtime,
      turnId,
      worker,
      begun,
      recorder,
      busy,
      left$,
      draining$: site.draining$,
    });
    const handedOver$ = race(
      site.draining$.pipe(switchMap(() => drained(busy, trace$, journal.kept$))),
      site.drainedAnyway$,
    );
    const leaves$ = merge(
      recorder.lost$.pipe(map(() => DONE)),
      lost$.pipe(map(() => DONE)),
      site.again(turnId).pipe(map(() => DONE)),
      handedOver$.pipe(map(() => AGAIN)),
    );
    let result: TraceEvent | undefined;
    const settled$ = trace$.pipe(
      mergeMap((event) => {
        if (event.source !== 'turn' || event.type !== 'settled') {
          if (event.type === 'attempt_started' && event.nodeId !== undefined) busy.add(event.nodeId);
          recorder.event(event);
          return EMPTY;
        }
        // What others may see of it lacks the result, which whoever asked for the turn is to have.
        return recorder.settle(result ?? event).pipe(map(() => DONE));
      }),
    );
    const cancel$ = site.cancelled$.pipe(
      filter((turns) => turns.includes(turnId)),
      take(1),
    );
    subscriber.add(settled$.subscribe(subscriber));
    subscriber.add(leaves$.pipe(take(1)).subscribe((end) => subscriber.next(end)));
    subscriber.add(merge(cancel$, begun.isCancelled ? of(0) : NEVER).subscribe(() => aborting.abort()));
    const run$ = layer.turn(plan, { journal: journal.port, signal: aborting.signal, ...identity });
    // Not unsubscribed, which would cancel its calls: it has ended by then, or goes on elsewhere.
    subscriber.add(() => left$.next(0));
    run$.subscribe({
      next: (event) => {
        if (event.source === 'turn' && event.type === 'settled') result = event;
      },
      error: (error: unknown) => subscriber.error(error),
    });
  });
