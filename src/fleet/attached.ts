import {
  EMPTY,
  concatMap,
  defer,
  expand,
  from,
  map,
  merge,
  of,
  repeat,
  startWith,
  takeWhile,
  tap,
  throwError,
  type Observable,
} from 'rxjs';
import type { TraceEvent } from '../contract/event.ts';
import type { Runtime } from '../contract/runtime.ts';
import { ToolExecutionError } from '../contract/tool-error.ts';
import { oneAtATime } from '../operators/timing/one-at-a-time.ts';
import type { LedgerPage, TurnLedger } from './ledger.ts';
import { untilAnswered } from './until-answered.ts';

/** Events of one reading. */
const PAGE = 500;
/** A message can be lost: it is looked all the same from time to time. */
const LOOK_MS = 1_000;

const unknownTurn = (turnId: string): ToolExecutionError =>
  new ToolExecutionError(
    'invalid_parameters',
    `There is no turn ${turnId}: it was never submitted to this fleet, or settled so long ago that it was forgotten`,
    { code: 'unknown_turn' },
  );

const endsTurn = (event: TraceEvent): boolean => event.source === 'turn' && event.type === 'settled';

/**
 * The events of a turn from its first on, as they are written; completes after its `settled`.
 *
 * ```
 * events so far      (abc)
 * told of more       ------x----x
 * attached           (abc)-(de)-(s|)
 * ```
 */
export const attached = (ledger: TurnLedger, turnId: string, runtime: Runtime): Observable<TraceEvent> =>
  defer(() => {
    let seq = 0;
    const page$ = defer(() => untilAnswered(() => ledger.read(turnId, seq, PAGE), runtime)).pipe(
      tap((page) => (seq = page.events.at(-1)?.seq ?? seq)),
    );
    const pages$ = page$.pipe(
      expand((page) => (page.events.length === PAGE ? page$ : EMPTY)),
      concatMap((page) => (page.isKnown ? of(page) : throwError(() => unknownTurn(turnId)))),
    );
    const look$ = runtime.after(LOOK_MS).pipe(repeat());
    return merge(ledger.changes(turnId), look$).pipe(
      startWith(0),
      oneAtATime(() => pages$),
      concatMap(eventsOf),
      takeWhile((event) => !endsTurn(event), true),
    );
  });

const eventsOf = ({ events }: LedgerPage): Observable<TraceEvent> =>
  from(events).pipe(map(({ event }) => JSON.parse(event) as TraceEvent));
