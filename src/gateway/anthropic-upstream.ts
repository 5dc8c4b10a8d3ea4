import { defer, firstValueFrom, merge, type Observable } from 'rxjs';
import type { RetryPolicy } from '../contract/policy.ts';
import type { Runtime } from '../contract/runtime.ts';
import { httpThrown } from '../entrance/http.ts';
import { abortable } from '../operators/abortable.ts';
import { attemptTimeout } from '../operators/attempt-timeout.ts';
import { retryBackoff } from '../operators/retry-backoff.ts';
import { classify } from '../policy/classify.ts';
import { failsOnAbort, firstAborted } from './anthropic-signal.ts';
import { GatewayError } from './error.ts';

/** What of the platform's `fetch` is used. */
export type FetchLike = (url: string, init: UpstreamInit) => Promise<Response>;

/** What is sent: bytes, text, or a body that is passed on as it comes. */
type UpstreamBody = Uint8Array<ArrayBuffer> | string | ReadableStream<Uint8Array<ArrayBuffer>>;

export interface UpstreamInit {
  readonly method: string;
  readonly headers: Headers;
  readonly body?: UpstreamBody;
  /** Of a body that is passed on. */
  readonly duplex?: 'half';
  readonly redirect: 'manual';
  readonly signal: AbortSignal;
}

/** One request to the upstream. */
export interface UpstreamRequest {
  readonly method: string;
  /** Path and query. */
  readonly target: string;
  readonly headers: Headers;
  readonly body?: UpstreamBody;
  /** Aborting it ends the request and the answer's body. */
  readonly signal: AbortSignal;
}

/** Headers that are about one connection, not about the request. */
const HOP_BY_HOP = ['connection', 'keep-alive', 'proxy-authenticate', 'proxy-authorization', 'proxy-connection', 'te', 'trailer', 'transfer-encoding', 'upgrade', 'expect'];

const without = (given: Headers, names: readonly string[]): Headers => {
  const headers = new Headers(given);
  // The connection's own list of what is about it.
  const listed = (given.get('connection') ?? '').split(',').map((name) => name.trim());
  for (const name of [...names, ...listed]) if (/^[!#$%&'*+.^`|~\w-]+$/.test(name)) headers.delete(name);
  return headers;
};

/** The client's headers as the upstream gets them: all, but for those of the connection. */
export function upstreamHeaders(given: Headers): Headers {
  const headers = without(given, [...HOP_BY_HOP, 'host', 'content-length']);
  // What comes compressed would not go on byte for byte.
  headers.set('accept-encoding', 'identity');
  return headers;
}

/** The upstream's headers as the client gets them. */
export function clientHeaders(given: Headers): Headers {
  const headers = without(given, HOP_BY_HOP);
  if (headers.has('content-encoding')) {
    // Decoded on its way here.
    headers.delete('content-encoding');
    headers.delete('content-length');
  }
  return headers;
}

/** Answers that have no body: `Response` takes none with them. */
const BODILESS: ReadonlySet<number> = new Set([204, 205, 304]);
const STATUS_MAX = 599;

/** An answer that is no success, with its body read, so that it can be given on after all retries. */
export class UpstreamRefusal extends Error {
  override readonly name: string = 'UpstreamRefusal';
  readonly status: number;
  readonly headers: Headers;
  readonly body: string;

  constructor(status: number, headers: Headers, body: string) {
    super(`the upstream answered ${status}`);
    this.status = status;
    this.headers = headers;
    this.body = body;
  }

  toResponse(): Response {
    const headers = clientHeaders(this.headers);
    headers.delete('content-length');
    // An answer beyond what HTTP has cannot be given on.
    return new Response(BODILESS.has(this.status) ? null : this.body, { status: this.status <= STATUS_MAX ? this.status : 502, headers });
  }
}

/** As Anthropic's SDK retries: 3 attempts, 0.5 s doubling to 8 s. */
export const STEP_RETRY: RetryPolicy = { strategy: 'exponential', initialDelayMs: 500, maxDelayMs: 8_000, multiplier: 2, jitterPercent: 25, maxAttempts: 3, maxTotalTimeMs: 60_000 };

/** Whether asking again may help. */
export const isTransient = (error: UpstreamRefusal): boolean => classify(httpThrown(error)).classification === 'transient';

export interface UpstreamOptions {
  readonly url: URL;
  readonly fetch: FetchLike;
  /** How long the upstream may take to begin its answer. */
  readonly timeoutMs: number;
  readonly retry: RetryPolicy;
  readonly runtime: Runtime;
}

/** The Messages API behind the gateway. */
export class Upstream {
  readonly #options: UpstreamOptions;
  readonly #base: string;

  constructor(options: UpstreamOptions) {
    this.#options = options;
    this.#base = options.url.href.replace(/\/+$/, '');
  }

  /** Sends a request once, and gives whatever is answered. @throws GatewayError when nothing is */
  async send(request: UpstreamRequest): Promise<Response> {
    try {
      return await firstValueFrom(this.#attempt(request));
    } catch (error) {
      throw this.#unanswered(error, request);
    }
  }

  /** Sends a request of a later step: it is retried, since the client cannot do it without its tools running again. @throws UpstreamRefusal, GatewayError */
  async sendAgain(request: UpstreamRequest): Promise<Response> {
    const { retry, runtime } = this.#options;
    const attempt$ = defer(async () => {
      const response = await firstValueFrom(this.#attempt(request));
      if (response.ok) return response;
      throw new UpstreamRefusal(response.status, response.headers, await response.text());
    });
    try {
      // Nobody waits for a retry once the client is gone, or the gateway shut down.
      const gone$ = failsOnAbort(request.signal, () => request.signal.reason);
      return await firstValueFrom(merge(gone$, attempt$.pipe(retryBackoff(retry, runtime))));
    } catch (error) {
      throw error instanceof UpstreamRefusal ? error : this.#unanswered(error, request);
    }
  }

  #attempt({ method, target, headers, body, signal }: UpstreamRequest): Observable<Response> {
    const { fetch, timeoutMs, runtime } = this.#options;
    const start = (attempt: AbortSignal): Promise<Response> =>
      fetch(`${this.#base}${target}`, { method, headers, redirect: 'manual', signal: firstAborted([attempt, signal]), ...(body === undefined ? {} : { body }), ...(body instanceof ReadableStream ? { duplex: 'half' as const } : {}) });
    return abortable(start).pipe(attemptTimeout(timeoutMs, runtime));
  }

  #unanswered(cause: unknown, { signal }: UpstreamRequest): GatewayError {
    if (signal.aborted) return new GatewayError('client_gone', 'The request was canceled', { cause });
    if (httpThrown(cause).kind === 'timeout') return new GatewayError('upstream_timeout', 'The upstream did not begin its answer in time; ask again later', { cause });
    return new GatewayError('upstream_unreachable', 'The upstream could not be reached; ask again later', { cause });
  }
}
