import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import {
  EMPTY,
  type Observable,
  catchError,
  concatMap,
  defer,
  finalize,
  from,
  ignoreElements,
  mergeMap,
  tap,
} from 'rxjs';
import type { Backend } from './backend.ts';
import { CODES, RpcError, errorResponse, isResponse, type Id, type Message } from './message.ts';

/** A message for a client, and the request of its that it belongs to, for a transport with a stream for each. */
export interface Outgoing {
  readonly message: Message;
  readonly related?: Id | undefined;
}

/** Messages that may wait for a client that does not read, before its servers are not read either. */
const BACKLOG_MAX = 256;
const BACKLOG_LOW = 64;
interface Client {
  readonly transport: Transport;
  readonly backend: Backend;
  readonly inOrder: boolean;
}

/** In the place of an answer that could not be written, nested too deep for JSON as it may be. */
const unwritable = (transport: Transport, message: Message, related: Id | undefined): Observable<never> => {
  if (!isResponse(message) || message.id === undefined) return EMPTY;
  const refusal = errorResponse(message.id, new RpcError(CODES.internal, 'The answer cannot be passed on'));
  return defer(() => from(transport.send(refusal, related === undefined ? {} : { relatedRequestId: related }))).pipe(
    catchError(() => EMPTY),
    ignoreElements(),
  );
};

/** Writes messages to a client, and says when it reads too slowly. */
export const written =
  ({ transport, inOrder, backend }: Client) =>
  (outgoing$: Observable<Outgoing>): Observable<never> => {
    let backlog = 0;
    let flows = true;
    const flow = (open: boolean): void => {
      if (flows === open) return;
      flows = open;
      for (const upstream of backend.upstreams) upstream.flow(open);
    };
    const write = ({ message, related }: Outgoing): Observable<never> =>
      defer(() => from(transport.send(message, related === undefined ? {} : { relatedRequestId: related }))).pipe(
        // A client that is gone is told by its transport. One that is there hears of an answer that cannot be written.
        catchError(() => unwritable(transport, message, related)),
        ignoreElements(),
        finalize(() => {
          backlog--;
          if (backlog <= BACKLOG_LOW) flow(true);
        }),
      );
    return outgoing$.pipe(
      tap(() => {
        backlog++;
        if (backlog >= BACKLOG_MAX) flow(false);
      }),
      inOrder ? concatMap(write) : mergeMap(write),
    );
  };
