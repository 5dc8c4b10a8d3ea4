import { NEVER, filter, map, merge, take, takeWhile, tap, type Observable, type Subscriber } from 'rxjs';
import type { CallContext } from '../call/context.ts';
import type { TurnEvent } from '../contract/event.ts';
import type { TurnJournal } from '../contract/fleet/journal.ts';
import type { TurnContext } from './context.ts';

/** Whoever has the turn, and finds nothing of it, would run it again: it must have stopped by then. */
const isVerifiable = ({ runs }: CallContext): boolean => runs?.verify !== undefined;

/**
 * The ledger has not answered for so long that another may have the turn: whoever that is would run what it finds not
 * to have been done, so such a call may not go on here.
 */
const outOfTouch = (turn: TurnContext, { standing$ }: TurnJournal): Observable<unknown> =>
  standing$.pipe(filter((standing) => standing === 'silent' && turn.someRuns(isVerifiable)));

/**
 * Emits when the turn is to go on elsewhere, also where that is found out while its end is made. A turn of an engine
 * that another process has taken over goes back to that, which knows whose it is: there may be no other process, only a
 * store that was lost for longer than a lease.
 */
export const left = (turn: TurnContext): Observable<unknown> => {
  const { saga, journal } = turn;
  if (journal === undefined) return NEVER;
  const gone$ = merge(outOfTouch(turn, journal), saga?.record.lost$ ?? NEVER);
  return merge(journal.left$, gone$.pipe(tap(() => journal.leave()))).pipe(take(1));
};

/**
 * The turn goes on elsewhere: nothing new starts, and there is no result here. What runs goes on until another has the
 * turn, which is asked at once and then again and again; that one waits until it must have stopped.
 */
export const leave = (turn: TurnContext, subscriber: Subscriber<TurnEvent>): void => {
  turn.isOver = true;
  turn.isSettled = true;
  turn.isLeft = true;
  // Whoever asked for the turn hears of it from where it goes on.
  turn.tellTrace({ type: 'turn_left' });
  // First, so that what a call comes to that is handed over is not taken for the harvest.
  subscriber.complete();
  const running = turn.takeRunning().filter((call) => call !== undefined);
  for (const call of running) call.handOver();
  turn.journal?.standing$.pipe(takeWhile(() => running.some((call) => !call.isOver))).subscribe((standing) => {
    for (const call of running)
      if (standing === 'taken' || (standing === 'silent' && isVerifiable(call))) call.cancel();
  });
};

/** Another process has taken the turn over: nothing of it may go on here. */
export const takenOver = ({ saga, journal }: TurnContext): Observable<'canceled'> =>
  journal === undefined && saga !== undefined ? saga.record.lost$.pipe(map(() => 'canceled' as const)) : NEVER;
