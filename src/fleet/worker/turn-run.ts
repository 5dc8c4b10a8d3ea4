import {
  EMPTY,
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
/**
 * Another began the turn, who may be one that the engine had given up before: slow to begin, and about to leave. So the
 * engine must not take the turn for done because this one, which it did mean, has been overtaken.
 */
const OVERTAKEN: RunEnd = { act: 'again', afterMs: 200 };

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
    return merge(recorder.settle(event).pipe(map(() => DONE)), recorder.lost$.pipe(map(() => OVERTAKEN))).pipe(
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
    const trace$ = site.traceOf(turnId).pipe(filter((event) => !('late' in event)));
    const turn = { turnId, begun, stored, recorder, lost$, trace$, busy: new Set<string>() };
    return underway(site, turn).pipe(
      // A defect of ours must not keep the turn from others.
      catchError(() => of<RunEnd>({ act: 'again', afterMs: OTHER_VERSION_MS })),
      take(1),
      tap({ finalize: () => recorder.close() }),
    );
  });

/** A turn that runs here: what it is about, and where it is kept. */
interface Underway {
  readonly turnId: string;
  readonly begun: Begun;
  readonly stored: ReturnType<typeof storedPlan>;
  readonly recorder: Recorder;
  readonly lost$: Observable<unknown>;
  /** What others may see of it; calls of an earlier run that have no turn here any more are told of to nobody. */
  readonly trace$: Observable<TraceEvent>;
  /** The nodes whose attempts run. */
  readonly busy: Set<string>;
}

/** Why a turn goes elsewhere, as what becomes of it here. */
const leavesOf = (
  site: WorkerSite,
  { turnId, recorder, lost$, trace$, busy }: Underway,
  kept$: Observable<unknown>,
): Observable<RunEnd> => {
  const calm$ = site.draining$.pipe(switchMap(() => drained(busy, trace$, kept$)));
  return merge(
    merge(lost$, site.again(turnId)).pipe(map(() => DONE)),
    recorder.lost$.pipe(map(() => OVERTAKEN)),
    race(calm$, site.drainedAnyway$).pipe(map(() => AGAIN)),
  );
};

/** Records what is told of a turn; emits once its end is recorded. */
const recorded = ({ trace$, recorder, busy }: Underway, result: () => TraceEvent | undefined): Observable<RunEnd> =>
  trace$.pipe(
    mergeMap((event) => {
      // What others may see of its end lacks the result, which whoever asked for the turn is to have.
      if (event.source === 'turn' && event.type === 'settled') return recorder.settle(result() ?? event);
      if (event.type === 'attempt_started' && event.nodeId !== undefined) busy.add(event.nodeId);
      recorder.event(event);
      return EMPTY;
    }),
    map(() => DONE),
  );

const cancelOf = ({ cancelled$ }: WorkerSite, { turnId, begun }: Underway): Observable<unknown> =>
  begun.isCancelled ? of(turnId) : cancelled$.pipe(filter((turns) => turns.includes(turnId)));

const underway = (site: WorkerSite, turn: Underway): Observable<RunEnd> =>
  new Observable((subscriber) => {
    const { ledger, runtime, worker, draining$ } = site;
    const { turnId, begun, recorder, busy, stored } = turn;
    const aborting = new AbortController();
    const left$ = new Subject<unknown>();
    const journal = journalOf({ ledger, runtime, turnId, worker, begun, recorder, busy, left$, draining$ });
    let result: TraceEvent | undefined;
    subscriber.add(recorded(turn, () => result).subscribe(subscriber));
    subscriber.add(
      leavesOf(site, turn, journal.kept$)
        .pipe(take(1))
        .subscribe((end) => subscriber.next(end)),
    );
    subscriber.add(
      cancelOf(site, turn)
        .pipe(take(1))
        .subscribe(() => aborting.abort()),
    );
    // Not unsubscribed, which would cancel its calls: it has ended by then, or goes on elsewhere.
    subscriber.add(() => left$.next(0));
    const { plan, identity } = stored;
    site.layer.turn(plan, { journal: journal.port, signal: aborting.signal, ...identity }).subscribe({
      next: (event) => {
        if (event.source === 'turn' && event.type === 'settled') result = event;
      },
      error: (error: unknown) => subscriber.error(error),
    });
  });
