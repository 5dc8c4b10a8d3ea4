import { createHash, timingSafeEqual } from 'node:crypto';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { getRequestListener } from '@hono/node-server';
import * as sdk from '@modelcontextprotocol/sdk/server/webStandardStreamableHttp.js';
import ipaddr from 'ipaddr.js';
import { defer, repeat, type Subscription } from 'rxjs';
import type { Runtime } from '../contract/runtime.ts';
import { watched } from '../providers/mcp/http-answer.ts';
import { eventStore } from './event-store.ts';
import { ModernTransport, loadServerPackage, namesModern } from './modern-http.ts';
import type { McpProxy } from './proxy.ts';

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
/** How soon a client is to come back whose stream was cut. */
const RETRY_MS = 1_000;

interface OpenSession {
  readonly transport: sdk.WebStandardStreamableHTTPServerTransport;
  readonly served: Subscription;
  streams: number;
  seenAtMs: number;
}

const refused = (status: number, message: string): Response =>
  Response.json({ jsonrpc: '2.0', error: { code: -32_000, message }, id: null }, { status });

const digest = (text: string): Buffer => createHash('sha256').update(text).digest();

const isLoopback = (name: string): boolean => {
  const address = name.replace(/^\[|\]$/g, '');
  return address === 'localhost' || (ipaddr.isValid(address) && ipaddr.process(address).range() === 'loopback');
};

const hostOf = (text: string): string | undefined => URL.parse(text)?.hostname;

/** Pages of a browser, and names that were made to point at this machine, are nobody who may ask. */
const mayAsk = (request: Request, { host, token }: HttpFrontOptions): Response | undefined => {
  const allowed = (name: string | undefined): boolean => name !== undefined && (isLoopback(name) || name === host);
  const origin = request.headers.get('origin');
  if (token === undefined && !allowed(hostOf(`http://${request.headers.get('host') ?? ''}`)))
    return refused(403, 'Host is not one of this server');
  if (origin !== null && !allowed(hostOf(origin))) return refused(403, 'Origin is not allowed');
  if (token === undefined) return undefined;
  const given = /^Bearer (.+)$/i.exec(request.headers.get('authorization') ?? '')?.[1] ?? '';
  return timingSafeEqual(digest(given), digest(token)) ? undefined : refused(401, 'The token is missing or wrong');
};

const bodyOf = async (request: Request): Promise<unknown> => {
  const text = await request.text();
  if (text.length > BODY_BYTES_MAX) throw new RangeError('too large');
  return JSON.parse(text) as unknown;
};

/** The sessions of a front. */
class Sessions {
  readonly #proxy: McpProxy;
  readonly #options: HttpFrontOptions;
  readonly #open = new Map<string, OpenSession>();
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
    if (Number(request.headers.get('content-length') ?? 0) > BODY_BYTES_MAX)
      return refused(413, 'The body is too large');
    if (this.#options.modern && request.method === 'POST' && namesModern(request)) {
      const modern = await this.#modernTransport();
      if (modern !== undefined) return this.#exchange(modern, request);
    }
    const id = request.headers.get('mcp-session-id');
    const session = id === null ? this.#begin(request) : this.#open.get(id);
    if (session === undefined) return refused(404, 'Session not found');
    return session instanceof Response ? session : this.#within(session, request);
  }

  close(): void {
    this.#sweep.unsubscribe();
    this.#modern?.served.unsubscribe();
    for (const { served } of this.#open.values()) served.unsubscribe();
    this.#open.clear();
  }

  #begin(request: Request): OpenSession | Response {
    if (request.method !== 'POST') return refused(400, 'The request has no session; begin one with initialize');
    if (this.#open.size >= SESSIONS_MAX) return refused(503, `There are ${SESSIONS_MAX} sessions already`);
    const { runtime } = this.#options;
    const transport = new sdk.WebStandardStreamableHTTPServerTransport({
      sessionIdGenerator: () => runtime.id(),
      eventStore: eventStore(),
      retryInterval: RETRY_MS,
      onsessioninitialized: (id) => void this.#open.set(id, session),
      onsessionclosed: (id) => this.#end(id),
    });
    const served = this.#proxy.serve$(transport, false).subscribe();
    const session: OpenSession = { transport, served, streams: 0, seenAtMs: runtime.now() };
    return session;
  }

  async #within(session: OpenSession, request: Request): Promise<Response> {
    const { transport, served } = session;
    const response = await transport.handleRequest(request);
    session.seenAtMs = this.#options.runtime.now();
    // What came without a session was no `initialize`: nothing has begun.
    if (transport.sessionId === undefined) served.unsubscribe();
    if (response.body === null) return response;
    session.streams++;
    return watched(response, () => {
      session.streams--;
      session.seenAtMs = this.#options.runtime.now();
    });
  }

  async #modernTransport(): Promise<ModernTransport | undefined> {
    const server = await loadServerPackage();
    if (server === undefined) return undefined;
    if (this.#modern === undefined) {
      const transport = new ModernTransport(server, this.#options.runtime);
      this.#modern = { transport, served: this.#proxy.serve$(transport, false).subscribe() };
    }
    return this.#modern.transport;
  }

  async #exchange(transport: ModernTransport, request: Request): Promise<Response> {
    let body: unknown;
    try {
      body = await bodyOf(request);
    } catch (error) {
      return error instanceof RangeError ? refused(413, 'The body is too large') : refused(400, 'The body is no JSON');
    }
    return transport.fetch(request, body).catch(() => refused(499, 'The client is gone'));
  }

  #end(id: string): void {
    this.#open.get(id)?.served.unsubscribe();
    this.#open.delete(id);
  }

  #sweeps(): Subscription {
    const { runtime } = this.#options;
    const later$ = defer(() => (runtime.background ?? runtime).after(SWEEP_MS));
    return later$.pipe(repeat()).subscribe(() => {
      for (const [id, { streams, seenAtMs }] of this.#open)
        if (streams === 0 && runtime.now() - seenAtMs > IDLE_MS) this.#end(id);
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
