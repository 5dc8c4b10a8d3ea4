import {
  EMPTY,
  ReplaySubject,
  Subject,
  catchError,
  concatMap,
  defer,
  exhaustMap,
  filter,
  finalize,
  from,
  merge,
  repeat,
  switchMap,
  startWith,
  type Observable,
  type Subscription,
} from 'rxjs';
import type { Closeable, FleetTurns } from '../../contract/fleet/port.ts';
import type { TraceEvent } from '../../contract/event.ts';
import type { Runtime } from '../../contract/runtime.ts';
import { checkKeys, checkNumber, duration, integer } from '../../policy/check.ts';
import type { Dispatcher, Given, RunEnd, Workforce } from '../dispatcher.ts';
import type { TurnLedger } from '../ledger.ts';
import { runGiven, type WorkerSite } from './turn-run.ts';

/** A sign of life, and a look for turns to cancel where a message was lost. */
const BEAT_MS = 1_000;
const DRAIN_MS = 10_000;
const CONCURRENCY = 10;
const NAME = /^[\w.@~-]{1,128}$/;

const checked = (turns: FleetTurns): FleetTurns => {
  checkKeys('serve', turns, ['layer', 'version', 'worker', 'concurrency', 'drainMs']);
  const { worker, version, concurrency = CONCURRENCY, drainMs = DRAIN_MS } = turns;
  for (const [name, value] of Object.entries({ worker, version })) {
    if (value !== undefined && !NAME.test(value))
      throw new RangeError(
        `${name} must be 1 to 128 letters, digits or one of _ . @ ~ -, not ${JSON.stringify(value.slice(0, 64))}`,
      );
  }
  checkNumber('concurrency', concurrency, integer(1, 10_000));
  checkNumber('drainMs', drainMs, duration);
  return turns;
};

/** The events of a layer, by turn: each is looked at once, however many turns run. */
const tracesOf = (
  trace$: Observable<TraceEvent>,
): { readonly of: WorkerSite['traceOf']; readonly heard: Subscription } => {
  const turns = new Map<string, Subject<TraceEvent>>();
  const heard = trace$.subscribe((event) => {
    if (event.turnId !== undefined) turns.get(event.turnId)?.next(event);
  });
  return {
    heard,
    of: (turnId) =>
      defer(() => {
        const events$ = turns.get(turnId) ?? new Subject<TraceEvent>();
        turns.set(turnId, events$);
        return events$.pipe(
          finalize(() => {
            if (!events$.observed) turns.delete(turnId);
          }),
        );
      }),
  };
};

/** @throws the reason why a layer cannot serve a fleet */
const checkStore = async ({ layer }: FleetTurns): Promise<void> => {
  const { store } = await layer.inspect();
  if (store?.shared === true) return;
  throw new RangeError(
    `layer must have a store that all workers share, not ${store?.kind ?? 'none'}: give createSpillway a redisStore, so that no tool runs twice`,
  );
};

/** Signs of life, each with what is to be cancelled: once a second, and when an order was given. */
const beatsOf = (
  { ledger, worker, version, runtime }: Pick<WorkerSite, 'ledger' | 'worker' | 'version' | 'runtime'>,
  turns: () => number,
): Observable<readonly string[]> => {
  const background = runtime.background ?? runtime;
  return merge(ledger.orders$, background.after(BEAT_MS).pipe(repeat())).pipe(
    startWith(0),
    switchMap(() => defer(() => ledger.beat(worker, version, turns())).pipe(catchError(() => EMPTY))),
  );
};

/** Turns that should have settled and that nobody has are looked for so often. */
const RESCUE_MS = 10_000;

/**
 * Has turns given to somebody that are overdue: whoever submitted one may have died before the engine heard of it. For
 * one that is there this changes nothing.
 */
const rescues = (ledger: TurnLedger, dispatcher: Dispatcher, runtime: Runtime): Observable<unknown> =>
  (runtime.background ?? runtime).after(RESCUE_MS).pipe(
    repeat(),
    exhaustMap(() =>
      defer(() => ledger.report()).pipe(
        concatMap(({ overdue }) => from(overdue)),
        concatMap(({ turnId }) => dispatcher.add(turnId, 1)),
        catchError(() => EMPTY),
      ),
    ),
  );

/** Runs the turns that a dispatcher gives to this process. */
export function serveTurns(ledger: TurnLedger, dispatcher: Dispatcher, given: FleetTurns, runtime: Runtime): Closeable {
  const { layer, worker = runtime.id(), version = '0', concurrency = CONCURRENCY, drainMs = DRAIN_MS } = checked(given);
  const draining$ = new ReplaySubject<true>(1);
  const cancelled$ = new Subject<readonly string[]>();
  const given$ = new Subject<string>();
  const traces = tracesOf(layer.trace$);
  const site: WorkerSite = {
    ledger,
    runtime,
    layer,
    worker,
    version,
    again: (turnId) => given$.pipe(filter((other) => other === turnId)),
    traceOf: traces.of,
    cancelled$,
    draining$,
    drainedAnyway$: draining$.pipe(switchMap(() => runtime.after(drainMs))),
  };
  let turns = 0;
  const beats = beatsOf(site, () => turns).subscribe(cancelled$);
  beats.add(rescues(ledger, dispatcher, runtime).subscribe());
  const run = (turn: Given): Observable<RunEnd> =>
    defer(() => {
      given$.next(turn.turnId);
      turns++;
      return runGiven(site, turn).pipe(finalize(() => turns--));
    });
  const stop = (): void => {
    beats.unsubscribe();
    traces.heard.unsubscribe();
  };
  return closeable(
    checkStore(given).then(() => dispatcher.work(run, concurrency)),
    () => draining$.next(true),
    () => ledger.leave(worker).catch(() => undefined),
    stop,
  );
}

/** Takes no new turn, then drains what there is, then says that it has gone, and stops. */
const closeable = (
  began: Promise<Workforce>,
  drain: () => void,
  leave: () => Promise<unknown>,
  stop: () => void,
): Closeable => {
  const ready = began.then((workforce) => workforce.ready).then(() => undefined);
  // Whoever wants to know asks for it.
  ready.catch(() => undefined);
  const end = async (): Promise<void> => {
    try {
      const workforce = await began.catch(() => undefined);
      await workforce?.pause();
      drain();
      await workforce?.close();
      await leave();
    } finally {
      stop();
    }
  };
  let ending: Promise<void> | undefined;
  return { ready, close: () => (ending ??= end()) };
};
