import {
  EMPTY,
  catchError,
  concat,
  defer,
  filter,
  finalize,
  from,
  ignoreElements,
  merge,
  mergeMap,
  of,
  switchMap,
  takeWhile,
  tap,
  type Observable,
} from 'rxjs';
import type { FleetEngine, SubmitOptions } from '../contract/fleet/port.ts';
import type { TraceEvent, TurnEvent } from '../contract/event.ts';
import type { Runtime } from '../contract/runtime.ts';
import type { Plan } from '../contract/turn.ts';

/** What of an engine a turn needs that runs elsewhere. */
export type FleetPort = Pick<FleetEngine, 'submit' | 'attach' | 'cancel'>;

/** How a turn runs elsewhere. */
export interface ElsewhereOptions extends SubmitOptions {
  readonly fleet: FleetPort;
  readonly turnId?: string;
  readonly onUnsubscribe?: 'cancel' | 'detach';
  /** Emits when the turn is to be canceled. */
  readonly aborted$: Observable<unknown>;
}

const isTurnEvent = (event: TraceEvent): event is TurnEvent => event.source !== 'layer';

const endsTurn = (event: TraceEvent): boolean => event.source === 'turn' && event.type === 'settled';

/** That there is nothing more to listen to. */
const END = 'end';

/**
 * A turn that a fleet runs, as the stream that a local one is: it is submitted when this is subscribed to, and its
 * events come from wherever it runs.
 */
export const turnElsewhere = (
  { fleet, turnId, onUnsubscribe = 'cancel', aborted$, ...identity }: ElsewhereOptions,
  plan: Plan,
  runtime: Runtime,
): Observable<TurnEvent> =>
  defer(() => {
    const id = turnId ?? runtime.id();
    let isOver = false;
    const cancel$ = defer(() => fleet.cancel(id)).pipe(
      ignoreElements(),
      catchError(() => EMPTY),
    );
    const submitted = fleet.submit(id, plan, identity);
    const told$ = fleet.attach(id).pipe(
      filter(isTurnEvent),
      tap((event) => (isOver = endsTurn(event))),
    );
    const events$ = concat(told$, of(END));
    return from(submitted).pipe(
      switchMap(() => merge(events$, aborted$.pipe(mergeMap(() => cancel$)))),
      takeWhile((event): event is TurnEvent => event !== END),
      finalize(() => {
        if (isOver || onUnsubscribe === 'detach') return;
        // Also one that was left while it was submitted.
        from(submitted)
          .pipe(
            mergeMap(() => cancel$),
            catchError(() => EMPTY),
          )
          .subscribe();
      }),
    );
  });
