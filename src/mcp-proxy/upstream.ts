import {
  EMPTY,
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
import { SESSION_LOST, type McpConnection } from '../providers/mcp/client.ts';
import { Waits } from '../providers/mcp/waits.ts';
import { createMcpLink, type LiveConnection, type McpLink } from '../providers/mcp/link.ts';
import { isWholeList, pageAsked$, pageOf, type Listing } from './catalog.ts';
import { Handshake } from './handshake.ts';
import type { Launch } from './launch.ts';
import { METHODS, isRequest, type Notification, type Params, type Request, type Response } from './message.ts';
import { mayResend, messageOf, untaken } from './resend.ts';
import { createWire, type Asked, type Wire } from './wire.ts';

const RESENDS_MAX = 3;
/** A wait for a server that is down which a client would not take for a dead connection. */
const RESEND_WAIT_MAX_MS = 5_000;
/** How long a server that let a call time out has to answer a ping; its tools may share its loop. */
const PROBE_MS = 5_000;
/** A listing of our own that takes longer leaves tools unlisted. */
const LISTING_MS = 10_000;

/** What a server asks of the person or model behind the client; while it waits for that, no tool is late. */
const ASKS_PEOPLE: ReadonlySet<string> = new Set(['elicitation/create', 'sampling/createMessage']);

interface ProxyConnection extends McpConnection {
  readonly wire: Wire;
}

type Live = LiveConnection<ProxyConnection>;

/** One server behind one client, over as many connections as it takes. */
export interface McpUpstream {
  readonly name: string;
  readonly listing: Listing;
  /** How long it may take to start. */
  readonly connectTimeoutMs: number;
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
  /** Resolves once the tools are known, as the server has told of them so far, or cannot be. */
  listed(): Promise<void>;
  /** A call got no answer in its time: a server that does not answer a ping either is started again. */
  suspect(): void;
  /** Stops and resumes reading from the server. */
  flow(open: boolean): void;
  close(): Promise<void>;
}

export interface McpUpstreamOptions {
  readonly name: string;
  readonly launch: Launch;
  readonly listing: Listing;
  readonly connectTimeoutMs: number;
  readonly runtime: Runtime;
  /** Told what happens to the connection, for a person. */
  readonly note: (text: string) => void;
}

const closedOf = async ({ transport, said$ }: Wire): Promise<unknown> =>
  transport.ended ?? firstValueFrom(said$.pipe(filter(() => false)), { defaultValue: undefined });

/**
 * A server behind one client. It is connected when it is first needed, and again when it was lost: with what the client
 * had settled with it, so that the client need not know.
 */
class ServerBehind implements McpUpstream {
  readonly name: string;
  readonly listing: Listing;
  readonly connectTimeoutMs: number;
  readonly #options: McpUpstreamOptions;
  readonly #handshake = new Handshake();
  readonly #waits = new Waits();
  readonly #said$ = new Subject<Request | Notification>();
  readonly #lost$ = new Subject<void>();
  readonly #watched = new WeakSet<Live>();
  readonly #link: McpLink<ProxyConnection>;
  readonly #live$: Observable<Live>;
  readonly said$: Observable<Request | Notification> = this.#said$.asObservable();
  readonly lost$: Observable<void> = this.#lost$.asObservable();
  #listing: Promise<void> | undefined;
  #probing = false;
  #closed = false;

  constructor(options: McpUpstreamOptions) {
    const { name, listing, connectTimeoutMs, runtime } = options;
    this.name = name;
    this.listing = listing;
    this.connectTimeoutMs = connectTimeoutMs;
    this.#options = options;
    this.#link = createMcpLink<ProxyConnection>({
      name,
      connect: () => this.#connect(),
      connectTimeoutMs,
      runtime,
      listed: (tools) => tools.length > 0 && listing.update(tools),
    });
    this.#live$ = defer(() => from(this.#link.acquire())).pipe(tap((live) => this.#watch(live)));
  }

  request$(asked: Asked): Observable<unknown> {
    const count = asked.method === METHODS.listen ? Infinity : RESENDS_MAX;
    return defer(() => {
      this.#handshake.asking(asked);
      return this.#once$(asked);
    }).pipe(retry({ count, delay: (error: unknown) => this.#resent(error, asked) }));
  }

  notify(method: string, params: Params | undefined): void {
    this.#handshake.said(method);
    this.#tell(({ wire }) => wire.notify(method, params));
  }

  reply(response: Response): void {
    this.#waits.closed(response.id);
    this.#tell(({ wire }) => wire.reply(response));
  }

  flow(isOpen: boolean): void {
    this.#tell(({ wire: { transport } }) => (isOpen ? transport.resume?.() : transport.pause?.()));
  }

  waiting(): Observable<boolean> {
    return this.#waits.begin();
  }

  async listed(): Promise<void> {
    if (!this.#handshake.ready) return;
    await (this.#listing ??= this.#list().catch(() => undefined));
    const missed$ = merge(this.#options.runtime.after(LISTING_MS), this.#lost$).pipe(tap(() => this.listing.missed()));
    await firstValueFrom(race(this.listing.current$(), missed$));
  }

  suspect(): void {
    if (this.#probing) return;
    this.#probing = true;
    void this.#probe()
      .catch(() => undefined)
      .finally(() => (this.#probing = false));
  }

  close(): Promise<void> {
    this.#closed = true;
    return this.#link.close();
  }

  /** What is of no use to a server that is not there: what it needs to know, it is told when it is. */
  #tell(what: (connection: ProxyConnection) => void): void {
    this.#live$.pipe(catchError(() => EMPTY)).subscribe(({ connection }) => what(connection));
  }

  #hear(message: Request | Notification): void {
    const { method, params } = message;
    const asksPeople = ASKS_PEOPLE.has(method);
    if (method === METHODS.toolsChanged) this.listing.changed();
    if (asksPeople && isRequest(message)) this.#waits.opened(message.id);
    // It does not want to know any more.
    if (method === METHODS.cancelled) this.#waits.closed(params?.['requestId']);
    this.#said$.next(message);
  }

  async #connect(): Promise<ProxyConnection> {
    const { name, launch, runtime, note } = this.#options;
    const transport = launch();
    const wire = createWire(transport, runtime);
    wire.said$.subscribe((message) => this.#hear(message));
    const closing = closedOf(wire);
    try {
      await transport.start();
      await Promise.race([this.#handshake.replay(wire), closing.then((how) => Promise.reject(how as Error))]);
    } catch (error) {
      await transport.close();
      const said = transport.stderr?.said ?? '';
      note(`${name}: it cannot be reached: ${messageOf(error)}${said === '' ? '' : `; it said: ${said}`}`);
      throw error;
    }
    return {
      wire,
      client: {
        listTools: (params) => this.#page(wire, params?.cursor),
        callTool: (params) => firstValueFrom(wire.request$({ method: METHODS.call, params: { ...params } })),
      },
      closed: closing,
      close: () => transport.close(),
      toolsChanged: (heard) =>
        wire.said$.pipe(filter(({ method }) => method === METHODS.toolsChanged)).subscribe(heard),
    };
  }

  async #page(wire: Wire, cursor?: string): Promise<ReturnType<typeof pageOf>> {
    const { envelope, ready } = this.#handshake;
    if (!ready) return { tools: [] };
    const { told } = this.listing;
    const late$ = this.#options.runtime.after(LISTING_MS).pipe(map(() => undefined));
    const page = pageOf(await firstValueFrom(race(pageAsked$(wire, envelope, cursor), late$)));
    this.listing.page(page.tools, told);
    return page;
  }

  /** Follows a connection: once it is lost there is a new one, where there was something to lose. */
  #watch(live: Live): void {
    if (this.#watched.has(live)) return;
    this.#watched.add(live);
    live.lost$.subscribe({ error: (error: Error) => this.#gone(error) });
  }

  #gone(error: Error): void {
    if (this.#closed) return;
    const { name, note } = this.#options;
    this.#listing = undefined;
    this.#waits.closedAll();
    this.#lost$.next();
    note(`${name}: ${error.message}`);
    // What it says of its own accord is heard again, also where nobody asks it anything.
    if (this.#handshake.ready) this.#live$.subscribe({ error: (failed: Error) => note(`${name}: ${failed.message}`) });
  }

  #once$(asked: Asked): Observable<unknown> {
    return this.#live$.pipe(
      map((live) => [live, this.listing.told] as const),
      switchMap(([live, told]) =>
        race(live.connection.wire.request$(asked), live.lost$).pipe(
          tap({
            next: (result) => this.#answered(asked, result, live, told),
            error: (error: unknown) => {
              if (error instanceof ToolExecutionError && error.code === SESSION_LOST) this.#link.lose(live, error);
              if (untaken(error, asked)) this.#options.note(`${this.name}: ${messageOf(error)}`);
            },
          }),
        ),
      ),
    );
  }

  #answered(asked: Asked, result: unknown, { connection: { wire } }: Live, told: number): void {
    this.#link.answered();
    this.#handshake.answered(asked, result, wire);
    if (!isWholeList(asked, result)) return;
    this.listing.update(pageOf(result).tools, told);
    this.#listing ??= Promise.resolve();
  }

  #resent(error: unknown, asked: Asked): Observable<unknown> {
    const waitMs = error instanceof ToolExecutionError ? (error.retryAfterMs ?? 0) : 0;
    return mayResend(error, asked) && waitMs <= RESEND_WAIT_MAX_MS && !this.#closed
      ? this.#options.runtime.after(waitMs)
      : throwError(() => error);
  }

  async #list(): Promise<void> {
    const live = await firstValueFrom(this.#live$);
    await this.#link.relist(live);
  }

  async #probe(): Promise<void> {
    const live = await firstValueFrom(this.#live$);
    const asked = { method: METHODS.ping, params: this.#handshake.envelope };
    const answered$ = live.connection.wire.request$(asked).pipe(
      catchError(() => of({})),
      map(() => true),
    );
    const late$ = this.#options.runtime.after(PROBE_MS).pipe(map(() => false));
    if (!(await firstValueFrom(race(answered$, late$)))) this.#link.lose(live, new Error('it no longer answers'));
  }
}

export const createUpstream = (options: McpUpstreamOptions): McpUpstream => new ServerBehind(options);
