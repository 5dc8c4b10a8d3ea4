import {
  Subject,
  catchError,
  defer,
  filter,
  firstValueFrom,
  from,
  map,
  merge,
  of,
  race,
  retry,
  switchMap,
  tap,
  throwError,
  type Observable,
} from 'rxjs';
import type { Runtime } from '../contract/runtime.ts';
import { ToolExecutionError } from '../contract/tool-error.ts';
import type { McpConnection } from '../providers/mcp/client.ts';
import { SESSION_LOST } from '../providers/mcp/client.ts';
import { Waits } from '../providers/mcp/waits.ts';
import { createMcpLink, type LiveConnection } from '../providers/mcp/link.ts';
import { pageOf, type Catalog } from './catalog.ts';
import { Handshake } from './handshake.ts';
import type { Launch } from './launch.ts';
import {
  METHODS,
  isRecord,
  isRequest,
  type Notification,
  type Params,
  type Request,
  type Response,
} from './message.ts';
import { createWire, type Asked, type Wire } from './wire.ts';

/** What only asks: a server that died over it can be asked again. A tool is the layer's to repeat, or not. */
const RESENDABLE: ReadonlySet<string> = new Set([
  METHODS.ping,
  METHODS.list,
  METHODS.discover,
  METHODS.initialize,
  METHODS.setLevel,
  METHODS.subscribe,
  METHODS.unsubscribe,
  METHODS.listen,
  'resources/list',
  'resources/templates/list',
  'resources/read',
  'prompts/list',
  'prompts/get',
  'completion/complete',
]);
const RESENDS_MAX = 3;
/** A wait for a server that is down which a client would not take for a dead connection. */
const RESEND_WAIT_MAX_MS = 5_000;
/** How long a server that let a call time out has to answer a ping; its tools may share its loop. */
const PROBE_MS = 5_000;
/** A listing of our own that takes longer leaves tools unlisted: mutating, and checked by their server alone. */
const LISTING_MS = 10_000;

/** What a server asks of the person or model behind the client; while it waits for that, no tool is late. */
const ASKS_PEOPLE: ReadonlySet<string> = new Set(['elicitation/create', 'sampling/createMessage']);

interface ProxyConnection extends McpConnection {
  readonly wire: Wire;
}

/** One server behind one client, over as many connections as it takes. */
export interface Upstream {
  readonly name: string;
  readonly catalog: Catalog;
  /** What the server says without being asked. */
  readonly said$: Observable<Request | Notification>;
  /** Emits each time that a connection is lost. */
  readonly lost$: Observable<void>;
  /**
   * Whether the server waits for a person or a model to answer what it asked after now: it does not say for which call
   * it asks, so that may be any that was under way by then, and none that came later.
   */
  waiting(): Observable<boolean>;
  request$(asked: Asked): Observable<unknown>;
  notify(method: string, params: Params | undefined): void;
  reply(response: Response): void;
  /** Resolves once the tools are known, or cannot be. */
  listed(): Promise<void>;
  /** A call got no answer in its time: a server that does not answer a ping either is started again. */
  suspect(): void;
  /** Stops and resumes reading from the server. */
  flow(open: boolean): void;
  close(): Promise<void>;
}

export interface UpstreamOptions {
  readonly name: string;
  readonly launch: Launch;
  readonly catalog: Catalog;
  readonly connectTimeoutMs: number;
  readonly runtime: Runtime;
  /** Told what happens to the connection, for a person. */
  readonly note: (text: string) => void;
}

const closedOf = async ({ transport, said$ }: Wire): Promise<unknown> =>
  transport.ended ?? firstValueFrom(said$.pipe(filter(() => false)), { defaultValue: undefined });

const messageOf = (thrown: unknown): string => (thrown instanceof Error ? thrown.message : String(thrown));

const mayResend = (error: unknown, { method }: Asked): boolean =>
  error instanceof ToolExecutionError &&
  error.kind === 'transport_error' &&
  error.classification !== 'permanent' &&
  RESENDABLE.has(method);

/** A client that lists the tools saves us the question. */
const isWholeList = ({ method, params }: Asked, result: unknown): boolean =>
  method === METHODS.list && params?.['cursor'] === undefined && isRecord(result) && result['nextCursor'] === undefined;

/**
 * A server behind one client. It is connected when it is first needed, and again when it was lost: with what the client
 * had settled with it, so that the client need not know.
 */
export function createUpstream(options: UpstreamOptions): Upstream {
  const { name, launch, catalog, connectTimeoutMs, runtime, note } = options;
  const handshake = new Handshake();
  const said$ = new Subject<Request | Notification>();
  const lost$ = new Subject<void>();
  const waits = new Waits();
  let listing: Promise<void> | undefined;
  let closed = false;

  const hear = (message: Request | Notification): void => {
    const { method, params } = message;
    const asksPeople = ASKS_PEOPLE.has(method);
    if (asksPeople && isRequest(message)) waits.opened(message.id);
    // It does not want to know any more.
    if (method === METHODS.cancelled) waits.closed(params?.['requestId']);
    said$.next(message);
  };

  const listTools = async (wire: Wire, cursor?: string): Promise<ReturnType<typeof pageOf>> => {
    if (!handshake.ready) return { tools: [] };
    const params = { ...handshake.envelope, ...(cursor === undefined ? {} : { cursor }) };
    const page$ = wire.request$({
      method: METHODS.list,
      params: Object.keys(params).length === 0 ? undefined : params,
    });
    const late$ = runtime.after(LISTING_MS).pipe(map(() => undefined));
    return pageOf(await firstValueFrom(race(page$.pipe(catchError(() => of(undefined))), late$)));
  };

  const connect = async (): Promise<ProxyConnection> => {
    const transport = launch();
    const wire = createWire(transport, runtime);
    wire.said$.subscribe(hear);
    const closing = closedOf(wire);
    try {
      await transport.start();
      await Promise.race([handshake.replay(wire), closing.then((how) => Promise.reject(how as Error))]);
    } catch (error) {
      await transport.close();
      const said = transport.stderr?.said ?? '';
      note(`${name}: it cannot be reached: ${messageOf(error)}${said === '' ? '' : `; it said: ${said}`}`);
      throw error;
    }
    return {
      wire,
      client: {
        listTools: (params) => listTools(wire, params?.cursor),
        callTool: (params) => firstValueFrom(wire.request$({ method: METHODS.call, params: { ...params } })),
      },
      closed: closing,
      close: () => transport.close(),
      toolsChanged: (heard) =>
        wire.said$.pipe(filter(({ method }) => method === METHODS.toolsChanged)).subscribe(heard),
    };
  };

  const link = createMcpLink<ProxyConnection>({
    name,
    connect,
    connectTimeoutMs,
    runtime,
    listed: (tools) => tools.length > 0 && catalog.update(tools),
  });
  const live$ = defer(() => from(link.acquire())).pipe(map((live) => watch(live)));
  /** What was heard of a connection that is gone, and a new one where there was something to lose. */
  const gone = (live: LiveConnection<ProxyConnection>): void => {
    live.lost$.subscribe({
      error: (error: Error) => {
        if (closed) return;
        listing = undefined;
        waits.closedAll();
        lost$.next();
        note(`${name}: ${error.message}`);
        // What it says of its own accord is heard again, also where nobody asks it anything.
        if (handshake.ready) live$.subscribe({ error: (failed: Error) => note(`${name}: ${failed.message}`) });
      },
    });
  };
  const watched = new WeakSet<object>();
  const watch = (live: LiveConnection<ProxyConnection>): LiveConnection<ProxyConnection> => {
    if (watched.has(live)) return live;
    watched.add(live);
    gone(live);
    return live;
  };

  const once$ = (asked: Asked): Observable<unknown> =>
    live$.pipe(
      switchMap((live) =>
        race(live.connection.wire.request$(asked), live.lost$).pipe(
          tap({
            next: (result) => {
              link.answered();
              handshake.answered(asked, result, live.connection.wire);
              if (isWholeList(asked, result)) {
                catalog.update(pageOf(result).tools);
                listing ??= Promise.resolve();
              }
            },
            error: (error: unknown) => {
              if (error instanceof ToolExecutionError && error.code === SESSION_LOST) link.lose(live, error);
            },
          }),
        ),
      ),
    );
  const resent = (error: unknown, asked: Asked): Observable<unknown> => {
    const waitMs = error instanceof ToolExecutionError ? (error.retryAfterMs ?? 0) : 0;
    return mayResend(error, asked) && waitMs <= RESEND_WAIT_MAX_MS && !closed
      ? runtime.after(waitMs)
      : throwError(() => error);
  };
  const list = async (): Promise<void> => {
    const live = await firstValueFrom(live$);
    if (handshake.ready) await link.relist(live);
  };
  const probe = async (): Promise<void> => {
    const live = await firstValueFrom(live$);
    const answered$ = live.connection.wire.request$({ method: METHODS.ping, params: handshake.envelope }).pipe(
      catchError(() => of({})),
      map(() => true),
    );
    const alive = await firstValueFrom(race(answered$, runtime.after(PROBE_MS).pipe(map(() => false))));
    if (!alive) link.lose(live, new Error('it no longer answers'));
  };
  let probing: Promise<void> | undefined;

  return {
    name,
    catalog,
    said$: said$.asObservable(),
    lost$: lost$.asObservable(),
    waiting: () => waits.begin(),
    request$: (asked) =>
      defer(() => {
        handshake.asking(asked);
        return once$(asked);
      }).pipe(
        retry({
          count: asked.method === METHODS.listen ? Infinity : RESENDS_MAX,
          delay: (error: unknown) => resent(error, asked),
        }),
      ),
    notify: (method, params) => {
      handshake.said(method);
      // Of no use to a server that is not there: what it needs to know, it is told when it is.
      live$.pipe(catchError(() => from([]))).subscribe(({ connection }) => connection.wire.notify(method, params));
    },
    reply: (response) => {
      waits.closed(response.id);
      live$.pipe(catchError(() => from([]))).subscribe(({ connection }) => connection.wire.reply(response));
    },
    listed: () => (listing ??= list().catch(() => undefined)),
    suspect: () => {
      probing ??= probe()
        .catch(() => undefined)
        .finally(() => (probing = undefined));
    },
    flow: (isOpen) =>
      void live$.pipe(catchError(() => from([]))).subscribe(({ connection: { wire } }) => {
        if (isOpen) wire.transport.resume?.();
        else wire.transport.pause?.();
      }),
    close: () => {
      closed = true;
      return link.close();
    },
  };
}

/** What several servers say, each with who said it. */
export const saidBy = (upstreams: readonly Upstream[]): Observable<readonly [Upstream, Request | Notification]> =>
  merge(...upstreams.map((upstream) => upstream.said$.pipe(map((message) => [upstream, message] as const))));
