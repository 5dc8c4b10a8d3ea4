import type { Client } from '@modelcontextprotocol/sdk/client/index.js';
import {
  CreateMessageRequestSchema,
  ElicitRequestSchema,
  ListRootsRequestSchema,
} from '@modelcontextprotocol/sdk/types.js';
import {
  EMPTY,
  ReplaySubject,
  defaultIfEmpty,
  firstValueFrom,
  fromEvent,
  isObservable,
  lastValueFrom,
  map,
  mergeMap,
  of,
  race,
  skip,
  throwError,
  type Observable,
  type Subscription,
} from 'rxjs';
import type { ToolOutput } from '../../../contract/output.ts';
import { abortable } from '../../../operators/work/abortable.ts';
import type { Waits } from '../waits.ts';
import type { McpHandlers, McpRoot } from './handlers.ts';

const aborted$ = (signal: AbortSignal): Observable<never> => {
  const fails$ = throwError((): unknown => signal.reason);
  return signal.aborted ? fails$ : fromEvent(signal, 'abort').pipe(mergeMap(() => fails$));
};

/**
 * Lets the host answer what a server asks over a client, before it is connected.
 *
 * @returns what follows the roots; unsubscribe when the connection is gone
 */
export function hearServer(client: Client, { elicit, sample, roots }: McpHandlers, waits: Waits): Subscription {
  const answer = <Given, Answer>(
    handler: (request: Given, signal: AbortSignal) => ToolOutput<Answer>,
    params: Given,
    signal: AbortSignal,
  ): Promise<Answer> => lastValueFrom(race(waits.during(abortable((own) => handler(params, own))), aborted$(signal)));
  if (elicit !== undefined)
    client.setRequestHandler(ElicitRequestSchema, ({ params }, { signal }) => answer(elicit, params, signal));
  if (sample !== undefined)
    client.setRequestHandler(CreateMessageRequestSchema, ({ params }, { signal }) => answer(sample, params, signal));
  if (roots === undefined) return EMPTY.subscribe();
  const roots$ = isObservable(roots) ? roots : of(roots);
  const latest$ = new ReplaySubject<readonly McpRoot[]>(1);
  client.setRequestHandler(ListRootsRequestSchema, () =>
    firstValueFrom(
      latest$.pipe(
        defaultIfEmpty([]),
        map((list) => ({ roots: list.map((root) => ({ ...root })) })),
      ),
    ),
  );
  const followed = roots$.subscribe(latest$);
  // The first list is asked for; a server that is not connected yet, or not any more, need not be told of another.
  followed.add(latest$.pipe(skip(1)).subscribe(() => void client.sendRootsListChanged().catch(() => undefined)));
  return followed;
}
