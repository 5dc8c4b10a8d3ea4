import {
  EMPTY,
  NEVER,
  ReplaySubject,
  catchError,
  concatMap,
  defer,
  exhaustMap,
  finalize,
  firstValueFrom,
  from,
  map,
  merge,
  repeat,
  switchMap,
  startWith,
  type Observable,
  type ObservableInput,
} from 'rxjs';
import type { Closeable, FleetTurns } from '../../contract/fleet/port.ts';
import type { Runtime } from '../../contract/runtime.ts';
import { checkKeys, checkNumber, duration, integer } from '../../policy/check.ts';
import type { Dispatcher, Given, RunEnd, Workforce } from '../dispatcher.ts';
import { oneAtATime } from '../../operators/timing/one-at-a-time.ts';
import type { TurnLedger } from '../ledger.ts';
import { untilAnswered } from '../until-answered.ts';
import { CLOSE_MS, within } from './within.ts';
import { BEAT_MS, Holds } from './hold.ts';
import { runGiven, type WorkerSite } from './turn-run.ts';

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

/** A store that gave no answer is looked at so often in all. */
const LOOKS = 3;

type StandingOfLayer = Awaited<ReturnType<FleetTurns['layer']['inspect']>>;

/** How a layer stands. Its store may only be silent: it is looked at again once the ledger, beside it, answers. */
const inspected = async ({ layer, ledger, runtime, draining$ }: WorkerSite): Promise<StandingOfLayer> => {
  let standing = await layer.inspect();
  for (let look = 1; standing.store === undefined && look < LOOKS; look++) {
    const answered$ = untilAnswered(() => ledger.report(), runtime);
    const isClosed = await firstValueFrom(merge(answered$.pipe(map(() => false)), draining$));
    if (isClosed) throw new Error('the worker was closed before its store had answered');
    standing = await layer.inspect();
  }
  return standing;
};

/** @throws the reason why a layer cannot serve a fleet */
const checkLayer = async (site: WorkerSite): Promise<void> => {
  const { store, tools = [] } = await inspected(site);
  const bare = tools.find(({ mode }) => mode !== 'on');
  if (bare !== undefined)
    throw new RangeError(
      `layer runs ${bare.name} in the mode ${bare.mode}, where no key is claimed: serve with the mode on`,
    );
  if (store?.shared === true) return;
  const found = store === undefined ? 'and has none that answers' : `not ${store.kind}`;
  throw new RangeError(
    `layer must have a store that all workers share, ${found}: give createSpillway a redisStore, so that no tool ` +
      'runs twice',
  );
};

/** Signs of life, each of which says also how the turns stand: once a second, and when an order was given. */
const beatsOf = ({ ledger, holds, runtime }: WorkerSite, turns: () => number): Observable<unknown> => {
  const background = runtime.background ?? runtime;
  return merge(ledger.orders$, background.after(BEAT_MS).pipe(repeat())).pipe(
    startWith(0),
    oneAtATime(() => holds.beat(turns())),
  );
};

/** Turns that should have settled and that nobody has are looked for so often. */
const RESCUE_MS = 10_000;

/** One that is overdue for so long is settled by whoever finds it. */
const HARVEST_MS = 20_000;

/** Each minute it is another try, of all workers together. */
const minuteOf = (runtime: Runtime): number => Math.floor(runtime.wallNow() / 60_000);

/**
 * Has turns given to somebody that are overdue: whoever submitted one may have died before the engine heard of it. For
 * one that is there this changes nothing.
 */
const rescues = (
  { ledger, runtime }: WorkerSite,
  dispatcher: Dispatcher,
  run: (given: Given) => Observable<RunEnd>,
): Observable<unknown> =>
  (runtime.background ?? runtime).after(RESCUE_MS).pipe(
    repeat(),
    exhaustMap(() =>
      defer(() => ledger.report()).pipe(
        concatMap(({ overdue }) => from(overdue)),
        concatMap(({ turnId, overdueMs }): ObservableInput<unknown> => {
          // All who could be given it are busy: to settle it takes nobody's place for long.
          if (overdueMs > HARVEST_MS) return run({ turnId, lost$: NEVER });
          return dispatcher.add(turnId, 1, `${turnId}/${minuteOf(runtime)}`);
        }),
        catchError(() => EMPTY),
      ),
    ),
  );

/** Runs the turns that a dispatcher gives to this process. */
export function serveTurns(ledger: TurnLedger, dispatcher: Dispatcher, given: FleetTurns, runtime: Runtime): Closeable {
  const { layer, worker = runtime.id(), version = '0', concurrency = CONCURRENCY, drainMs = DRAIN_MS } = checked(given);
  const draining$ = new ReplaySubject<true>(1);
  const site: WorkerSite = {
    ledger,
    runtime,
    layer,
    worker,
    version,
    holds: new Holds(ledger, runtime, { worker, version }),
    draining$,
    drainedAnyway$: draining$.pipe(switchMap(() => runtime.after(drainMs))),
  };
  let turns = 0;
  const beats = beatsOf(site, () => turns).subscribe();
  const run = (turn: Given): Observable<RunEnd> =>
    defer(() => {
      turns++;
      return runGiven(site, turn).pipe(finalize(() => turns--));
    });
  beats.add(rescues(site, dispatcher, run).subscribe());
  const stop = (): void => {
    beats.unsubscribe();
  };
  return closeable(
    checkLayer(site).then(() => dispatcher.work(run, concurrency)),
    () => draining$.next(true),
    () => ledger.leave(worker),
    stop,
    (ending) => within(drainMs + CLOSE_MS, runtime, ending),
  );
}

/** Takes no new turn, then drains what there is, then says that it has gone, and stops. */
const closeable = (
  began: Promise<Workforce>,
  drain: () => void,
  leave: () => Promise<unknown>,
  stop: () => void,
  bounded: (ending: Promise<void>) => Promise<void>,
): Closeable => {
  const ready = began.then((workforce) => workforce.ready).then(() => undefined);
  // Whoever wants to know asks for it.
  ready.catch(() => undefined);
  const end = async (): Promise<void> => {
    // Not after an engine has answered: nodes that run must end in time also without one, and who still looks for a
    // store looks no more.
    drain();
    const workforce = await began.catch(() => undefined);
    await workforce?.pause();
    await workforce?.close();
    await leave();
  };
  let ending: Promise<void> | undefined;
  return { ready, close: () => (ending ??= bounded(end()).finally(stop)) };
};
