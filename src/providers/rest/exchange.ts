import { Agent as HttpAgent, request as openHttp, type IncomingMessage } from 'node:http';
import { Agent as HttpsAgent, request as openHttps } from 'node:https';
import { ToolExecutionError } from '../../contract/tool-error.ts';
import { toToolError } from '../../errors/read-error.ts';
import { mcpAborted } from '../../errors/mcp.ts';
import { isTyped } from '../../errors/tool.ts';
import type { RestBody } from './body.ts';
import type { Headers } from './headers.ts';
import { isSafe } from './policy.ts';
import { unusable } from './response.ts';
import type { TargetGuard } from './target.ts';

/** One request, ready to be sent. */
export interface RestRequest {
  readonly method: string;
  readonly url: URL;
  /** By lower-case name. */
  readonly headers: Readonly<Headers>;
  /** The names of those that a redirect to another origin may take along. */
  readonly forStrangers: ReadonlySet<string>;
  readonly body: RestBody | undefined;
}

/** Connections of a provider, kept while they are of use. */
export interface Connections {
  readonly http: HttpAgent;
  readonly https: HttpsAgent;
}

const REDIRECTS_MAX = 5;
const REDIRECTS: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);
/**
 * How long an idle connection is kept: less than servers keep theirs (Node and Apache 5 s, nginx 75 s), since a request
 * on one that the server is closing fails, and nobody can say whether it ran.
 */
const IDLE_MS = 4_000;
const IDLE_SOCKETS_MAX = 16;

/** @param ca certificates to trust instead of the machine's own, in PEM */
export function createConnections(ca: string | readonly string[] | undefined): Connections {
  const options = { keepAlive: true, timeout: IDLE_MS, maxFreeSockets: IDLE_SOCKETS_MAX };
  return {
    http: new HttpAgent(options),
    https: new HttpsAgent({ ...options, ...(ca === undefined ? {} : { ca: typeof ca === 'string' ? ca : [...ca] }) }),
  };
}

/** What the connection failed with. Before it was there, nothing was sent; after that, nobody knows. */
const failed = (thrown: unknown, connected: boolean): ToolExecutionError => {
  if (isTyped(thrown)) return thrown;
  const { kind, message, code, classification } = toToolError(thrown, 'http');
  return new ToolExecutionError(kind === 'timeout' ? 'timeout' : 'transport_error', message, {
    code,
    classification,
    executed: connected,
    uncertain: connected,
    cause: thrown,
  });
};

/** Sends one request and waits for the head of its answer. */
const hop = (
  { method, url, headers, body }: RestRequest,
  { http, https }: Connections,
  guard: TargetGuard,
  signal: AbortSignal,
): Promise<IncomingMessage> =>
  new Promise((resolve, reject) => {
    guard.check(url);
    if (signal.aborted) throw mcpAborted(signal, false);
    const secure = url.protocol === 'https:';
    const options = {
      protocol: url.protocol,
      hostname: url.hostname.replace(/^\[|\]$/g, ''),
      port: url.port === '' ? undefined : url.port,
      path: `${url.pathname}${url.search}`,
      method,
      headers: { ...headers, ...(body === undefined ? {} : { 'content-length': body.bytes.length }) },
      agent: secure ? https : http,
      lookup: guard.lookupFor(url),
    };
    const request = secure ? openHttps(options) : openHttp(options);
    let connected = false;
    request.on('socket', (socket) => {
      connected = request.reusedSocket;
      // Its listener would stay with the connection, call after call.
      if (connected) return;
      socket.once(secure ? 'secureConnect' : 'connect', () => {
        connected = true;
      });
    });
    const abort = (): void => {
      reject(mcpAborted(signal, connected));
      request.destroy();
    };
    signal.addEventListener('abort', abort);
    let settled = false;
    const settle = (): boolean => {
      const first = !settled;
      settled = true;
      signal.removeEventListener('abort', abort);
      return first;
    };
    request.on('response', (response) => {
      settle();
      resolve(response);
    });
    // The listener stays: a failure after the head of the answer is the answer's to report, and must not end the
    // process.
    request.on('error', (error) => {
      if (settle()) reject(failed(error, connected));
    });
    // An end without an answer and without an error, as after a 101.
    request.on('close', () => {
      if (settle())
        reject(
          failed(
            Object.assign(new Error('The connection was closed without an answer'), { code: 'ECONNRESET' }),
            connected,
          ),
        );
    });
    request.end(body?.bytes);
  });

const notFollowed = (request: RestRequest, status: number, rule: string): ToolExecutionError =>
  new ToolExecutionError('execution_error', `HTTP ${status}: ${rule}`, {
    status,
    classification: 'permanent',
    uncertain: !isSafe(request.method),
  });

/** The request that a redirect asks for. */
const redirected = (
  request: RestRequest,
  { statusCode: status = 0, headers }: IncomingMessage,
  guard: TargetGuard,
): RestRequest => {
  const { location } = headers;
  const url =
    location !== undefined && URL.canParse(location, request.url) ? new URL(location, request.url) : undefined;
  if (url === undefined) throw notFollowed(request, status, 'the redirect does not say where to');
  guard.check(url);
  if (request.url.protocol === 'https:' && url.protocol === 'http:')
    throw new ToolExecutionError(
      'not_permitted',
      'The redirect leads from https: to http:, where everyone can read along; it is not followed',
    );
  const sameOrigin = url.origin === request.url.origin;
  const kept = sameOrigin
    ? request.headers
    : Object.fromEntries(Object.entries(request.headers).filter(([name]) => request.forStrangers.has(name)));
  if (isSafe(request.method)) return { ...request, url, headers: kept };
  if (status === 303) {
    const { 'content-type': _, ...headers } = kept;
    return { ...request, method: 'GET', url, headers, body: undefined };
  }
  if ((status === 307 || status === 308) && sameOrigin) return { ...request, url };
  throw notFollowed(
    request,
    status,
    `redirects of ${request.method} are followed only within their origin with 307 or 308, or to what to ` +
      'read next with 303',
  );
};

/** What fails behind a redirect of a request that changes something leaves that request's own effects in doubt. */
const behindChange = (thrown: unknown): unknown => {
  if (!(thrown instanceof ToolExecutionError)) return thrown;
  const { kind, message, code, status, classification, worded, cause } = thrown;
  return new ToolExecutionError(kind, message, {
    code,
    status,
    classification,
    worded,
    cause,
    executed: true,
    uncertain: true,
  });
};

/**
 * Sends a request and follows its redirects by hand, each through the guard.
 *
 * @returns the head of the answer; its body is still to be read
 * @throws ToolExecutionError `not_permitted` for a target that is refused, `transport_error` for a connection that
 * fails, `canceled` when aborted
 */
export async function exchange(
  request: RestRequest,
  connections: Connections,
  guard: TargetGuard,
  signal: AbortSignal,
): Promise<IncomingMessage> {
  let current = request;
  let changed = false;
  try {
    for (let redirects = 0; ; redirects++) {
      const response = await hop(current, connections, guard, signal);
      if (!REDIRECTS.has(response.statusCode ?? 0)) return response;
      // Its body is of no use, and may have no end.
      response.destroy();
      if (redirects === REDIRECTS_MAX) throw unusable(`The server redirects more than ${REDIRECTS_MAX} times`);
      changed ||= !isSafe(current.method);
      current = redirected(current, response, guard);
    }
  } catch (error) {
    throw changed ? behindChange(error) : error;
  }
}
