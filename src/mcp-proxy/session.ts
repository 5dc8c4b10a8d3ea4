import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import {
  EMPTY,
  Observable,
  Subject,
  catchError,
  defer,
  endWith,
  finalize,
  from,
  ignoreElements,
  map,
  merge,
  mergeMap,
  of,
  share,
  switchMap,
  takeUntil,
  tap,
} from 'rxjs';
import type { Runtime } from '../contract/runtime.ts';
import { isToolExecutionError } from '../contract/tool-error.ts';
import type { Backend } from './backend.ts';
import type { ProxyGuard } from './guard.ts';
import {
  CODES,
  DEPTH_MAX,
  METHODS,
  RpcError,
  errorResponse,
  isNestedDeep,
  isNotification,
  isRequest,
  metaOf,
  notificationOf,
  requestOf,
  resultOf,
  SUBSCRIPTION_META_KEY,
  type Id,
  type Message,
  type Notification,
  type Params,
  type Request,
  type Response,
} from './message.ts';
import { isOfLongAnswer } from '../providers/mcp/stdio/long-message.ts';
import { written, type Outgoing } from './outgoing.ts';
import { AskedForTasks } from './tasks.ts';
import type { McpUpstream } from './upstream.ts';

/** How long the answers may take that a client waits for which has closed its side. */
const DRAIN_MS = 2_000;

export interface SessionOptions {
  readonly transport: Transport;
  readonly backend: Backend;
  readonly guard: ProxyGuard;
  /** Whether one message is written after the other: over a pipe that fills up, and not where each has its stream. */
  readonly inOrder: boolean;
  /** Whether several clients are behind the transport: what a server says of no request of theirs is for no one. */
  readonly isShared: boolean;
  readonly runtime: Runtime;
}

const refused = (id: Id, error: RpcError): Outgoing => ({ message: errorResponse(id, error), related: id });

const IN_USE = new RpcError(CODES.invalidRequest, 'A request with this id is open');

const TOO_DEEP = new RpcError(
  CODES.invalidParams,
  `The message is nested deeper than ${DEPTH_MAX} levels, the most that is read; flatten it`,
);

/** What a request that could not be served is answered with. */
const refusalOf = (thrown: unknown): RpcError => {
  if (thrown instanceof RpcError) return thrown;
  if (!isToolExecutionError(thrown)) return new RpcError(CODES.internal, 'The proxy failed');
  const { kind, executed, retryAfterMs, message, cause } = thrown;
  // Of anything but a tool's call, whose model is told by the layer.
  if (isOfLongAnswer(cause)) return new RpcError(CODES.internal, message, { kind });
  const happened = executed ? 'was lost before it answered' : 'cannot be reached';
  const when = retryAfterMs === undefined ? '' : `; it may be there again in ${Math.ceil(retryAfterMs / 1_000)} s`;
  return new RpcError(CODES.lost, `The MCP server ${happened}${when}`, { kind });
};

/** A question of a server that its client has not answered. */
interface Ask {
  readonly upstream: McpUpstream;
  readonly id: Id;
  /** Under which the server wants to hear how far its client is. The client has our own: servers count alike. */
  readonly progressToken: unknown;
}

/** Whether a server asks about a task that its client runs for it, under an id of the client's. */
const isOfClientsTask = (message: Request | Notification): boolean =>
  isRequest(message) && message.method.startsWith('tasks/');

/** One client and what is behind it: passes on what is said in both directions, and has its tool calls guarded. */
class Session {
  readonly #options: SessionOptions;
  readonly #canceled$ = new Subject<Id>();
  /** Requests of the client that are under way, the newest last, and the server that each went to. */
  readonly #open = new Map<Id, McpUpstream | undefined>();
  readonly #asks = new Map<Id, Ask>();
  readonly #askedTasks = new AskedForTasks<Ask>();
  /** Progress of tasks, whose requests are answered. */
  readonly late$ = new Subject<Outgoing>();

  constructor(options: SessionOptions) {
    this.#options = options;
  }

  /** What a message of the client leads to. */
  fromClient(message: Message): Observable<Outgoing> {
    const isDeep = isNestedDeep(message);
    if (isRequest(message)) return isDeep ? of(refused(message.id, TOO_DEEP)) : this.#answer$(message);
    if (!isNotification(message)) this.#replied(isDeep ? errorResponse(message.id as Id, TOO_DEEP) : message);
    else if (!isDeep) this.#heard(message);
    return EMPTY;
  }

  /** What a server said, for the client. */
  fromServer(upstream: McpUpstream, message: Request | Notification): Observable<Outgoing> {
    const related = metaOf(message.params)[SUBSCRIPTION_META_KEY] as Id | undefined;
    if (!this.#options.isShared || related !== undefined) return of(this.#forClient(upstream, message, related));
    if (isRequest(message))
      upstream.reply(errorResponse(message.id, new RpcError(CODES.internal, 'There is no one client to ask')));
    return EMPTY;
  }

  #forClient(upstream: McpUpstream, message: Request | Notification, related: Id | undefined): Outgoing {
    const { method, params: given } = message;
    if (method === METHODS.cancelled && !isRequest(message)) return { message: this.#withdrawn(upstream, message) };
    const params = isOfClientsTask(message)
      ? given
      : (this.#options.backend.told(upstream, given) as Params | undefined);
    if (!isRequest(message)) {
      const told = params === given ? message : notificationOf(method, params);
      return { message: told, related: related ?? this.#newest(upstream) };
    }
    const id = this.#options.runtime.id();
    const { progressToken, ...meta } = metaOf(params);
    this.#asks.set(id, { upstream, id: message.id, progressToken });
    const asked = progressToken === undefined ? params : { ...params, _meta: { ...meta, progressToken: id } };
    return { message: requestOf(id, method, asked), related: this.#newest(upstream) };
  }

  /** A server is gone, and with it what it had asked. */
  withdrawn$(upstream: McpUpstream): Observable<Outgoing> {
    const open = [...this.#asks].filter(([, ask]) => ask.upstream === upstream);
    for (const [id] of open) this.#asks.delete(id);
    return from(open).pipe(
      map(([requestId]) => ({
        message: notificationOf(METHODS.cancelled, { requestId, reason: 'The server was restarted' }),
      })),
    );
  }

  #newest(upstream: McpUpstream): Id | undefined {
    return [...this.#open].findLast(([, at]) => at === undefined || at === upstream)?.[0];
  }

  /** A server takes back a question, under the id that the client knows. */
  #withdrawn(upstream: McpUpstream, message: Notification): Notification {
    const [id] =
      [...this.#asks].find(([, ask]) => ask.upstream === upstream && ask.id === message.params?.['requestId']) ?? [];
    if (id === undefined) return message;
    this.#asks.delete(id);
    return notificationOf(message.method, { ...message.params, requestId: id });
  }

  #heard(message: Notification): void {
    const { params } = message;
    if (message.method === METHODS.cancelled) this.#canceled$.next(params?.['requestId'] as Id);
    else if (message.method === METHODS.progress) this.#progressed(params);
    else this.#options.backend.notify(message.method, params);
  }

  /** How far the client is with what a server asked of it: for that one alone. */
  #progressed(params: Params | undefined): void {
    const token = params?.['progressToken'] as Id;
    const ask = this.#asks.get(token) ?? this.#askedTasks.of(token);
    ask?.upstream.notify(METHODS.progress, { ...params, progressToken: ask.progressToken });
  }

  #replied(response: Response): void {
    const ask = this.#asks.get(response.id as Id);
    if (ask === undefined) return;
    this.#asks.delete(response.id as Id);
    const { upstream, id } = ask;
    if ('result' in response) this.#askedTasks.answered(response.id, ask, response.result);
    const { backend } = this.#options;
    upstream.reply('result' in response ? resultOf(id, backend.meant(upstream, response.result)) : { ...response, id });
  }

  #answer$({ id, method, params }: Request): Observable<Outgoing> {
    // Its answer could not be told from the other one's, and a call of a tool would be made twice.
    if (this.#open.has(id)) return of(refused(id, IN_USE));
    this.#open.set(id, undefined);
    const progress$ = new Subject<Outgoing>();
    const { progressToken } = metaOf(params);
    let tell = (message: Notification): void => progress$.next({ message, related: id });
    const progress = (report: Params): void => tell(notificationOf(METHODS.progress, { ...report, progressToken }));
    const told = progressToken === undefined ? {} : { progress };
    const answered$ = defer(() => this.#served$(id, method, params, told)).pipe(
      map((result) => resultOf(id, result)),
      catchError((thrown: unknown) => of(errorResponse(id, refusalOf(thrown)))),
      map((message): Outgoing => ({ message, related: id })),
      tap({
        complete: () => {
          // What is still to come is a task's, and belongs to no request any more.
          tell = (message) => this.late$.next({ message, related: undefined });
          progress$.complete();
        },
      }),
    );
    return merge(progress$, answered$).pipe(
      takeUntil(this.#canceledOf$(id)),
      finalize(() => this.#open.delete(id)),
    );
  }

  #served$(
    id: Id,
    method: string,
    params: Params | undefined,
    told: { readonly progress?: (report: Params) => void },
  ): Observable<unknown> {
    const { backend, guard } = this.#options;
    if (method === METHODS.ping) return of({});
    const target = method === METHODS.call ? backend.toolOf(String(params?.['name'])) : undefined;
    this.#open.set(id, target?.upstream);
    if (target === undefined) return backend.request$({ method, params, askedAs: id, ...told });
    const { upstream, name } = target;
    const meant = backend.meant(upstream, { ...params, name }) as Params;
    const result$ = guard.call$({ upstream, name, params: meant, askedAs: id, ...told });
    return result$.pipe(map((result) => backend.told(upstream, result)));
  }

  #canceledOf$(id: Id): Observable<unknown> {
    return new Observable((subscriber) =>
      this.#canceled$.subscribe((canceled) => canceled === id && subscriber.next(undefined)),
    );
  }
}

/** Reads a transport of the SDK for as long as it is subscribed to; completes when the client is gone. */
const arrivals$ = (transport: Transport): Observable<Message> =>
  new Observable((subscriber) => {
    Object.assign(transport, {
      onmessage: (message: Message) => subscriber.next(message),
      onclose: () => subscriber.complete(),
      // What a client sends that is no message is refused by the transport itself.
      onerror: () => undefined,
    });
    // A microtask later: by then all who read it do.
    Promise.resolve()
      .then(() => transport.start())
      .catch((error: unknown) => subscriber.error(error));
  });

/** What several servers say, each with who said it. */
const saidBy = (upstreams: readonly McpUpstream[]): Observable<readonly [McpUpstream, Request | Notification]> =>
  merge(...upstreams.map((upstream) => upstream.said$.pipe(map((message) => [upstream, message] as const))));

/** Serves one client until it is gone, or until it is unsubscribed. Emits nothing. */
export function session$(options: SessionOptions): Observable<never> {
  return defer(() => {
    const { transport, backend, runtime } = options;
    const session = new Session(options);
    const gone$ = new Subject<void>();
    const arriving$ = arrivals$(transport).pipe(share());
    // What a client that has said all was still to be told it is told, for a while.
    const late$ = arriving$.pipe(
      ignoreElements(),
      endWith(undefined),
      switchMap(() => runtime.after(DRAIN_MS)),
    );
    const fromClient$ = arriving$.pipe(
      mergeMap((message) => session.fromClient(message)),
      takeUntil(late$),
      finalize(() => gone$.next()),
    );
    const fromServers$ = saidBy(backend.upstreams).pipe(
      mergeMap(([upstream, message]) => session.fromServer(upstream, message)),
    );
    const withdrawn$ = from(backend.upstreams).pipe(
      mergeMap((upstream) => upstream.lost$.pipe(mergeMap(() => session.withdrawn$(upstream)))),
    );
    return merge(fromServers$, withdrawn$, session.late$, fromClient$).pipe(takeUntil(gone$), written(options));
  });
}
