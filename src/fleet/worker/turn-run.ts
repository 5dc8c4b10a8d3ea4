import {
  AsyncSubject,
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
import type { Hold, Holds } from './hold.ts';
import { drained, journalOf } from './journal.ts';
import { refusal } from './refusal.ts';

/** A turn of another version is looked at again after so long: a worker of that version may be free then. */
const OTHER_VERSION_MS = 500;
/** Workers of a version that were not heard of for so long are gone: then its turns are refused by name. */
const VERSION_GONE_MS = 30_000;

/** So many owners in a row may be given up while they have a turn that comes no further: it may be what kills them. */
const TRIES_MAX = 10;

const POISON = `${TRIES_MAX} workers in a row died, stood still or lost it to another, and it came no further`;

/** What the turns of one worker share. */
export interface WorkerSite {
  readonly ledger: TurnLedger;
  readonly runtime: Runtime;
  readonly layer: FleetLayer;
  readonly worker: string;
  readonly version: string;
  /** The turns that it was given. */
  readonly holds: Holds;
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
/** The ledger gave no answer, and something had to be stopped. */
const SILENT: RunEnd = { act: 'again', afterMs: 200 };

/** A worker that is to end begins none: the turn would be of its version then, which may have no worker left. */
const unbegun = ({ ledger, runtime }: WorkerSite, turnId: string): Observable<RunEnd> =>
  untilAnswered(() => ledger.read(turnId, 0, 1), runtime).pipe(
    map(({ events }) => ({ act: 'again', afterMs: 0, isNew: events.length === 0 })),
  );

/** Runs a turn that was given to this worker, from where it was left; emits what becomes of it here. */
export const runGiven = (site: WorkerSite, given: Given): Observable<RunEnd> => {
  const run$ = merge(site.draining$.pipe(map(() => true)), of(false)).pipe(
    take(1),
    switchMap((isDraining) => (isDraining ? unbegun(site, given.turnId) : runTaken(site, given))),
  );
  // Also one that was given up before it began here, as while it waited for a place.
  return merge(given.lost$.pipe(map(() => DONE)), run$).pipe(take(1));
};

const runTaken = (site: WorkerSite, { turnId, lost$ }: Given): Observable<RunEnd> => {
  const { ledger, runtime, worker, version } = site;
  const once = runtime.id();
  let askedMs = 0;
  const begin = (evenSo: boolean): Observable<Taking> =>
    untilAnswered(() => {
      askedMs = runtime.now();
      return ledger.begin(turnId, worker, version, evenSo, once);
    }, runtime);
  return begin(false).pipe(
    mergeMap((taking) => {
      if (taking.state === 'begun') return runBegun(site, { turnId, lost$, askedMs }, taking);
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

const runBegun = (
  site: WorkerSite,
  { turnId, lost$, askedMs }: Given & { readonly askedMs: number },
  begun: Begun,
): Observable<RunEnd> =>
  defer(() => {
    const { ledger, runtime } = site;
    let stored: ReturnType<typeof storedPlan>;
    try {
      if (begun.tries > TRIES_MAX) throw new Error(POISON);
      stored = storedPlan(begun.record);
    } catch (error) {
      return refusedRun(site, turnId, begun, error instanceof Error ? error.message : String(error));
    }
    const recorder = recorderOf(ledger, turnId, begun, tenantOf(begun), runtime);
    const undoes = stored.plan.options.onFailure === 'compensate';
    const hold = site.holds.add({ turnId, epoch: begun.epoch, undoes, askedMs });
    const turn = { turnId, begun, stored, recorder, hold, lost$, busy: new Set<string>() };
    return underway(site, turn).pipe(
      // A defect of ours must not keep the turn from others.
      catchError(() => of<RunEnd>({ act: 'again', afterMs: OTHER_VERSION_MS })),
      take(1),
      tap({
        next: ({ act }) => {
          // Not waited for: without it the turn counts one try more.
          if (act === 'again') ledger.yields(turnId, begun.epoch).catch(() => undefined);
        },
        finalize: () => {
          site.holds.leave(hold);
          recorder.close();
        },
      }),
    );
  });

/** A turn that runs here: what it is about, and where it is kept. */
interface Underway {
  readonly turnId: string;
  readonly begun: Begun;
  readonly stored: ReturnType<typeof storedPlan>;
  readonly recorder: Recorder;
  readonly hold: Hold;
  readonly lost$: Observable<unknown>;
  /** The nodes whose attempts run. */
  readonly busy: Set<string>;
}

/** Why a turn goes elsewhere, as what becomes of it here. */
const leavesOf = (
  site: WorkerSite,
  { recorder, hold, lost$, busy }: Underway,
  happened$: Observable<unknown>,
): Observable<RunEnd> => {
  const calm$ = site.draining$.pipe(switchMap(() => drained(busy, happened$)));
  return merge(
    lost$.pipe(map(() => DONE)),
    recorder.lost$.pipe(
      tap(() => hold.take()),
      map(() => OVERTAKEN),
    ),
    hold.standing$.pipe(
      filter((standing) => standing === 'taken'),
      map(() => OVERTAKEN),
    ),
    race(calm$, site.drainedAnyway$).pipe(map(() => AGAIN)),
  );
};

const isEnd = (event: TraceEvent): boolean => event.source === 'turn' && event.type === 'settled';

/**
 * Follows what happens in a turn, of which others may see less; emits once its end is recorded. Its end is recorded as
 * it is: whoever asked for the turn is to have the result.
 */
const followed = (
  turn$: Observable<TraceEvent>,
  { recorder, busy }: Underway,
  ended$: Subject<unknown>,
): Observable<RunEnd> =>
  turn$.pipe(
    mergeMap((event) => {
      if (isEnd(event)) return recorder.settle(event).pipe(tap(ended$));
      if (event.type === 'attempt_started' && event.nodeId !== undefined) busy.add(event.nodeId);
      return EMPTY;
    }),
    map(() => DONE),
  );

const cancelOf = ({ begun, hold }: Underway): Observable<unknown> => (begun.isCancelled ? of(true) : hold.cancelled$);

const underway = (site: WorkerSite, turn: Underway): Observable<RunEnd> =>
  new Observable((subscriber) => {
    const { runtime, worker, draining$ } = site;
    const { turnId, begun, recorder, hold, busy, stored } = turn;
    const leave = (): void => subscriber.next(SILENT);
    const aborting = new AbortController();
    const left$ = new Subject<unknown>();
    const ended$ = new AsyncSubject<unknown>();
    const told$ = new Subject<unknown>();
    const tell = (event: TraceEvent): void => {
      if (!isEnd(event)) recorder.event(event);
      told$.next(event);
    };
    const ends = { left$, ended$, draining$ };
    const journal = journalOf({ hold, tell, leave, runtime, turnId, worker, begun, recorder, busy, ...ends });
    subscriber.add(
      leavesOf(site, turn, merge(told$, journal.kept$))
        .pipe(take(1))
        .subscribe((end) => subscriber.next(end)),
    );
    subscriber.add(
      cancelOf(turn)
        .pipe(take(1))
        .subscribe(() => aborting.abort()),
    );
    // Not unsubscribed, which would cancel its calls: it has ended by then, or goes on elsewhere.
    subscriber.add(() => {
      site.holds.leave(hold);
      left$.next(0);
    });
    const { plan, identity } = stored;
    const turn$ = site.layer.turn(plan, { journal: journal.port, signal: aborting.signal, ...identity });
    followed(turn$, turn, ended$).subscribe({
      next: (end) => subscriber.next(end),
      error: (error: unknown) => subscriber.error(error),
    });
  });
