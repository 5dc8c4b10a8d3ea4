import { createHash, timingSafeEqual } from 'node:crypto';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { getRequestListener } from '@hono/node-server';
import ipaddr from 'ipaddr.js';
import { defer, repeat, type Subscription } from 'rxjs';
import type { Runtime } from '../../contract/runtime.ts';
import { HttpSession } from './session.ts';
import { watchedStream } from './stream.ts';
import { ModernTransport, loadServerPackage, namesModern } from './modern.ts';
import { CODES } from '../message.ts';
import type { McpProxy } from '../proxy.ts';

export interface HttpFrontOptions {
  /** Default `127.0.0.1`. An address that others can reach needs a token. */
  readonly host: string;
  /** 0 is any free one. */
  readonly port: number;
  /** What a client has to bear; none at a loopback address. */
  readonly token?: string;
  /** Whether clients of the protocol of 2026-07-28 are served as such: where there is one server. */
  readonly modern: boolean;
  readonly runtime: Runtime;
}

export interface HttpFront {
  readonly url: string;
  close(): Promise<void>;
}

const PATH = '/mcp';
/** Each session has servers of its own. */
const SESSIONS_MAX = 64;
/** A client that is gone without a word holds its servers no longer than this. */
const IDLE_MS = 30 * 60_000;
const SWEEP_MS = 60_000;
const BODY_BYTES_MAX = 4 * 1024 * 1024;
/** What one client of the newer protocol may leave unread: its servers are others' as well, and do not wait for it. */
const UNREAD_BYTES_MAX = 16 * 1024 * 1024;

const refused = (status: number, message: string, code = -32_000): Response =>
  Response.json({ jsonrpc: '2.0', error: { code, message }, id: null }, { status });

const digest = (text: string): Buffer => createHash('sha256').update(text).digest();

const isLoopback = (name: string): boolean => {
  const address = name.replace(/^\[|\]$/g, '');
  return address === 'localhost' || (ipaddr.isValid(address) && ipaddr.process(address).range() === 'loopback');
};

const hostOf = (text: string): string | undefined => URL.parse(text)?.hostname;

/** Whether a page is one of this server's own: another port of this machine serves pages of somebody else's. */
const isOwnPage = (origin: string, host: string): boolean => {
  const [page, asked] = [URL.parse(origin), URL.parse(`http://${host}`)];
  if (page === null || asked === null || page.port !== asked.port) return false;
  return page.hostname === asked.hostname || (isLoopback(page.hostname) && isLoopback(asked.hostname));
};

/** Pages of a browser, and names that were made to point at this machine, are nobody who may ask. */
const mayAsk = (request: Request, { host, token }: HttpFrontOptions): Response | undefined => {
  const asked = request.headers.get('host') ?? '';
  const name = hostOf(`http://${asked}`);
  const origin = request.headers.get('origin');
  if (token === undefined && (name === undefined || !(isLoopback(name) || name === host)))
    return refused(403, 'Host is not one of this server');
  if (origin !== null && !isOwnPage(origin, asked)) return refused(403, 'Origin is not allowed');
  if (token === undefined) return undefined;
  const given = /^Bearer (.+)$/i.exec(request.headers.get('authorization') ?? '')?.[1] ?? '';
  return timingSafeEqual(digest(given), digest(token)) ? undefined : refused(401, 'The token is missing or wrong');
};

/** What was posted, or why it is not read. */
const bodyOf = async (request: Request): Promise<{ readonly body: unknown } | Response> => {
  const tooLarge = refused(413, 'The body is too large');
  if (Number(request.headers.get('content-length') ?? 0) > BODY_BYTES_MAX) return tooLarge;
  const decoder = new TextDecoder();
  let text = '';
  let bytes = 0;
  for await (const chunk of request.body ?? []) {
    bytes += chunk.length;
    if (bytes > BODY_BYTES_MAX) return tooLarge;
    text += decoder.decode(chunk, { stream: true });
  }
  try {
    return { body: JSON.parse(text + decoder.decode()) as unknown };
  } catch {
    return refused(400, 'The body is no JSON', CODES.parse);
  }
};

/** The sessions of a front. */
class Sessions {
  readonly #proxy: McpProxy;
  readonly #options: HttpFrontOptions;
  readonly #open = new Map<string, HttpSession>();
  /** Those whose handshake is under way, too: each has its place, and its servers. */
  readonly #begun = new Set<HttpSession>();
  #modern: { readonly transport: ModernTransport; readonly served: Subscription } | undefined;
  readonly #sweep: Subscription;

  constructor(proxy: McpProxy, options: HttpFrontOptions) {
    this.#proxy = proxy;
    this.#options = options;
    this.#sweep = this.#sweeps();
  }

  async fetch(request: Request): Promise<Response> {
    const refusal = mayAsk(request, this.#options);
    if (refusal !== undefined) return refusal;
    if (new URL(request.url).pathname !== PATH) return refused(404, `There is only ${PATH}`);
    const read = request.method === 'POST' ? await bodyOf(request) : { body: undefined };
    if (read instanceof Response) return read;
    if (this.#options.modern && request.method === 'POST' && namesModern(request)) {
      const modern = await this.#modernTransport();
      if (modern !== undefined) return this.#exchange(modern, request, read.body);
    }
    const id = request.headers.get('mcp-session-id');
    const session = id === null ? this.#begin(request) : this.#open.get(id);
    if (session === undefined) return refused(404, 'Session not found');
    return session instanceof Response ? session : this.#within(session, request, read.body);
  }

  close(): void {
    this.#sweep.unsubscribe();
    this.#modern?.served.unsubscribe();
    for (const session of this.#begun) session.end();
    this.#begun.clear();
    this.#open.clear();
  }

  #begin(request: Request): HttpSession | Response {
    if (request.method !== 'POST') return refused(400, 'The request has no session; begin one with initialize');
    if (this.#begun.size >= SESSIONS_MAX) return refused(503, `There are ${SESSIONS_MAX} sessions already`);
    const session = new HttpSession({
      proxy: this.#proxy,
      runtime: this.#options.runtime,
      begun: (id) => void this.#open.set(id, session),
      ended: (id) => this.#end(id),
    });
    this.#begun.add(session);
    return session;
  }

  async #within(session: HttpSession, request: Request, body: unknown): Promise<Response> {
    const response = await session.fetch(request, body);
    if (!session.hasBegun) {
      session.end();
      this.#begun.delete(session);
    }
    return response;
  }

  async #modernTransport(): Promise<ModernTransport | undefined> {
    const server = await loadServerPackage();
    if (server === undefined) return undefined;
    if (this.#modern === undefined) {
      const transport = new ModernTransport(server, this.#options.runtime);
      this.#modern = { transport, served: this.#proxy.serve$(transport, false, true).subscribe() };
    }
    return this.#modern.transport;
  }

  async #exchange(transport: ModernTransport, request: Request, body: unknown): Promise<Response> {
    const { runtime } = this.#options;
    const response = await transport.fetch(request, body).catch(() => refused(499, 'The client is gone'));
    return watchedStream(response, { runtime, maxBytes: UNREAD_BYTES_MAX, ended: () => undefined });
  }

  #end(id: string): void {
    const session = this.#open.get(id);
    if (session === undefined) return;
    session.end();
    this.#begun.delete(session);
    this.#open.delete(id);
  }

  #sweeps(): Subscription {
    const { runtime } = this.#options;
    const later$ = defer(() => (runtime.background ?? runtime).after(SWEEP_MS));
    return later$.pipe(repeat()).subscribe(() => {
      for (const [id, session] of this.#open) if (session.isIdle(runtime.now() - IDLE_MS)) this.#end(id);
    });
  }
}

const listen = (server: Server, host: string, port: number): Promise<AddressInfo> =>
  new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen({ host, port }, () => resolve(server.address() as AddressInfo));
  });

/**
 * Serves a proxy over Streamable HTTP.
 * @throws RangeError for an address that others can reach without a token
 * @throws the error of the server that cannot listen
 */
export async function serveHttp(proxy: McpProxy, options: HttpFrontOptions): Promise<HttpFront> {
  const { host, port, token } = options;
  if (!isLoopback(host) && token === undefined)
    throw new RangeError(`${host} can be reached by others, and so needs a token; set SPILLWAY_MCP_TOKEN`);
  const sessions = new Sessions(proxy, options);
  const listener = getRequestListener((request) => sessions.fetch(request), { overrideGlobalObjects: false });
  const server = createServer((incoming, outgoing) => void listener(incoming, outgoing));
  const { address, port: bound } = await listen(server, host, port);
  return {
    url: `http://${address.includes(':') ? `[${address}]` : address}:${bound}${PATH}`,
    close: () =>
      new Promise((resolve) => {
        sessions.close();
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
