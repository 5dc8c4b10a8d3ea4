import { createServer, type Server } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { getRequestListener } from '@hono/node-server';
import ipaddr from 'ipaddr.js';
import type { Runtime } from '../../contract/runtime.ts';
import { checkNumber, integer } from '../../policy/check.ts';
import { liveRuntime } from '../../runtime.ts';
import { AdminRefused, refusalOf, type AdminRefusal } from './refusal.ts';

/** Where a server for people at this machine listens; each member as `AdminServerOptions` has it. */
export interface LocalServerOptions {
  readonly host?: string;
  readonly port?: number;
  readonly closeGraceMs?: number;
  readonly runtime?: Runtime;
  readonly token?: string;
  readonly onRefused?: (refusal: AdminRefusal) => void;
}

/** Answers requests; never rejects. */
export interface LocalHandler {
  fetch(request: Request, from: { readonly remoteAddress?: unknown }): Promise<Response>;
}

export interface LocalServer {
  readonly url: string;
  close(): Promise<void>;
}

/** A person's request fits into these many times over; a slow one does not hold a connection. */
const LIMITS = {
  headersTimeout: 5_000,
  requestTimeout: 10_000,
  keepAliveTimeout: 5_000,
  connectionsCheckingInterval: 1_000,
} as const;
const CONNECTIONS_MAX = 64;
const CLOSE_GRACE_MS = 500;

const isLoopback = (address: string): boolean =>
  address === 'localhost' || (ipaddr.isValid(address) && ipaddr.process(address).range() === 'loopback');
const isWildcard = (address: string): boolean =>
  ipaddr.isValid(address) && ipaddr.process(address).range() === 'unspecified';
const bracketed = (address: string): string => (address.includes(':') ? `[${address}]` : address);

const tokenless = (host: string): RangeError =>
  new RangeError(
    `host ${JSON.stringify(host.slice(0, 64))} can be reached by others, and so needs a token of your own; ` +
      'give token, or listen at 127.0.0.1',
  );

const WORDS: Readonly<Record<string, (host: string, port: number) => string>> = {
  EADDRINUSE: (host, port) => `port ${port} of ${host} is in use; give another one, or 0 for a free one`,
  EACCES: (host, port) =>
    `port ${port} of ${host} may not be used by this user; give one above 1023, or 0 for a free one`,
  EADDRNOTAVAIL: (host) => `this machine has no address ${host}; listen at 127.0.0.1, or at one it has`,
  ENOTFOUND: (host) => `the host ${host} is not known; listen at 127.0.0.1, or at an address of this machine`,
};

const listen = (server: Server, what: string, host: string, port: number): Promise<AddressInfo> =>
  new Promise((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => {
      const words =
        WORDS[error.code ?? '']?.(host, port) ??
        `listening at ${host}, port ${port}, failed (${error.code ?? error.name})`;
      reject(new Error(`${what} cannot start: ${words}`, { cause: error }));
    });
    server.listen({ host, port }, () => resolve(server.address() as AddressInfo));
  });

/**
 * The target as it was sent, and what it was read as: `/a/../b`, `//b` and whole addresses would get past a proxy's
 * rules for paths.
 */
const isPlainTarget = (target: string | undefined, { pathname, search }: URL): boolean =>
  target === `${pathname}${search}`;

const MALFORMED = new AdminRefused('malformed', 'it is not HTTP as it should be');
/** Node's own answers to what it cannot read. */
const STATUS_LINES: Readonly<Record<string, string>> = {
  HPE_HEADER_OVERFLOW: '431 Request Header Fields Too Large',
  ERR_HTTP_REQUEST_TIMEOUT: '408 Request Timeout',
};

const checkPlace = (host: string, port: number, closeGraceMs: number): void => {
  checkNumber('port', port, integer(0, 65_535));
  checkNumber('closeGraceMs', closeGraceMs, integer(0, 60_000));
  // An empty host would be every address of the machine.
  if (typeof host !== 'string' || !/^[\w.:-]{1,253}$/.test(host))
    throw new RangeError(
      `host must be a name or an address without a port, not ${JSON.stringify(String(host).slice(0, 64))}`,
    );
};

type TellRefused = (refused: AdminRefused, method: string | undefined, socket: Socket | Duplex) => void;

const tellerOf =
  (onRefused: LocalServerOptions['onRefused']): TellRefused =>
  (refused, method, socket) => {
    try {
      onRefused?.(refusalOf(refused, method, (socket as Partial<Socket>).remoteAddress));
    } catch {
      // A log's failure is its own.
    }
  };

const answeredBy = (handler: LocalHandler, tellRefused: TellRefused): Server =>
  createServer({ ...LIMITS, requireHostHeader: false }, (incoming, outgoing) => {
    const { socket, url, method } = incoming;
    const malformed = (): Response => {
      tellRefused(MALFORMED, method, socket);
      return new Response(undefined, { status: 400 });
    };
    const answer = (request: Request): Promise<Response> | Response =>
      isPlainTarget(url, new URL(request.url))
        ? handler.fetch(request, { remoteAddress: socket.remoteAddress })
        : malformed();
    // Made for each request, so that `onRefused` also gets one whose target or Host is no URL.
    void getRequestListener(answer, { overrideGlobalObjects: false, errorHandler: malformed })(incoming, outgoing);
  });

/** What Node would answer by itself is told, too. */
const guarded = (server: Server, tellRefused: TellRefused): Server => {
  server.maxConnections = CONNECTIONS_MAX;
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
    const { code = '' } = error;
    if (code === 'ECONNRESET' || !socket.writable) return void socket.destroy();
    tellRefused(MALFORMED, undefined, socket);
    socket.end(`HTTP/1.1 ${STATUS_LINES[code] ?? '400 Bad Request'}\r\nConnection: close\r\n\r\n`, () =>
      socket.destroy(),
    );
  });

  // Node would refuse these, and a lack of Host, by itself, and `onRefused` would not be called.
  server.on('checkExpectation', ({ method, socket }, outgoing) => {
    tellRefused(MALFORMED, method, socket);
    outgoing.writeHead(417, { connection: 'close' }).end();
  });
  server.on('connect', ({ method }, socket) => {
    tellRefused(MALFORMED, method, socket);
    socket.destroy();
  });
  return server;
};

const closing = (server: Server, runtime: Runtime, closeGraceMs: number): Promise<void> =>
  new Promise((resolve) => {
    const grace = runtime.after(closeGraceMs).subscribe(() => server.closeAllConnections());
    server.close(() => {
      grace.unsubscribe();
      resolve();
    });
    server.closeIdleConnections();
  });

/**
 * Listens at a loopback address, or at one that others can reach where a token was given.
 * @param what what it is, for messages: `the admin server`
 * @param handlerFor makes what answers, given the host names that are the server's own
 * @throws RangeError for an option out of its range, and for an address that others can reach without a token
 * @throws Error when it cannot listen, with the reason and the remedy
 */
export async function serveLocally(
  what: string,
  options: LocalServerOptions,
  handlerFor: (ownHosts: readonly string[]) => LocalHandler,
): Promise<LocalServer> {
  const { host = '127.0.0.1', port = 0, closeGraceMs = CLOSE_GRACE_MS, runtime = liveRuntime } = options;
  const { token, onRefused } = options;
  checkPlace(host, port, closeGraceMs);
  const mayBeReached = token !== undefined;
  if (!isLoopback(host) && !mayBeReached) throw tokenless(host);
  const own = isLoopback(host) || isWildcard(host) ? [] : [bracketed(host)];
  const handler = handlerFor(own);
  const tellRefused = tellerOf(onRefused);
  const server = guarded(answeredBy(handler, tellRefused), tellRefused);

  const bound = await listen(server, what, host, port);
  let closed: Promise<void> | undefined;
  const closeOnce = (): Promise<void> => (closed ??= closing(server, runtime, closeGraceMs));
  if (!isLoopback(bound.address) && !mayBeReached) {
    await closeOnce();
    throw tokenless(host);
  }
  return { url: `http://${bracketed(bound.address)}:${bound.port}`, close: closeOnce };
}
