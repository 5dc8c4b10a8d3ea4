import { defer, firstValueFrom, merge, type Observable } from 'rxjs';
import { MODEL_RETRY } from '../../agent/loop/limits.ts';
import type { RetryPolicy } from '../../contract/policy.ts';
import type { Runtime } from '../../contract/runtime.ts';
import { httpThrown } from '../../errors/http.ts';
import { abortable } from '../../operators/work/abortable.ts';
import { attemptTimeout } from '../../operators/attempt-timeout.ts';
import { retryBackoff } from '../../operators/retry-backoff.ts';
import { classify } from '../../policy/recovery/classify.ts';
import { BoundBytes, wholeOf, type ByteSource } from './bytes.ts';
import type { GatewayAnswer } from './exchange.ts';
import { clientHeaders, type HeaderList } from './headers.ts';
import { failsOnAbort } from './signal.ts';
import { GatewayError } from './error.ts';

/** One request to the upstream. */
export interface UpstreamRequest {
  readonly method: string;
  /** Path and query. */
  readonly target: string;
  readonly headers: HeaderList;
  /** Bytes, text, or a body that is passed on as it comes. */
  readonly body?: Uint8Array<ArrayBuffer> | string | ByteSource;
  /** Aborting it ends the request and the answer's body. */
  readonly signal: AbortSignal;
}

/** What the upstream answers. A body must be started. */
export interface UpstreamAnswer {
  readonly status: number;
  readonly headers: HeaderList;
  readonly body: ByteSource | null;
}

/** How the upstream is asked. `attempt` is aborted when nobody waits for the answer to begin. */
export type Transport = (url: string, request: UpstreamRequest, attempt: AbortSignal) => Promise<UpstreamAnswer>;

export const isOk = ({ status }: UpstreamAnswer): boolean => status >= 200 && status <= 299;

export const isEventStream = ({ headers }: UpstreamAnswer): boolean =>
  /^text\/event-stream\b/i.test(headers.get('content-type') ?? '');

/** An answer that is no success, with its body read, so that it can be given on after all retries. */
export class UpstreamRefusal extends Error {
  override readonly name: string = 'UpstreamRefusal';
  readonly status: number;
  readonly headers: HeaderList;
  readonly body: string;

  constructor(status: number, headers: HeaderList, body: string) {
    super(`the upstream answered ${status}`);
    this.status = status;
    this.headers = headers;
    this.body = body;
  }

  toAnswer(): GatewayAnswer {
    return { status: this.status, headers: clientHeaders(this.headers).without('content-length'), body: this.body };
  }
}

/** As a model is asked again, but within a minute: a client waits for the answer's first byte. */
export const STEP_RETRY: RetryPolicy = { ...MODEL_RETRY, maxTotalTimeMs: 60_000 };

/** Whether asking again may help. */
export const isTransient = (error: UpstreamRefusal): boolean =>
  classify(httpThrown(error)).classification === 'transient';

export interface UpstreamOptions {
  readonly url: URL;
  readonly transport: Transport;
  /** How long the upstream may take to begin its answer. */
  readonly timeoutMs: number;
  readonly retry: RetryPolicy;
  readonly runtime: Runtime;
}

/** The Messages API behind the gateway. */
export class Upstream {
  readonly #options: UpstreamOptions;
  readonly #base: string;
  #transport: Transport;

  constructor(options: UpstreamOptions) {
    this.#options = options;
    this.#transport = options.transport;
    this.#base = options.url.href.replace(/\/+$/, '');
  }

  /** From now on the upstream is asked in another way. */
  use(transport: Transport): void {
    this.#transport = transport;
  }

  /** Sends a request once, and gives whatever is answered. @throws GatewayError when nothing is */
  async send(request: UpstreamRequest): Promise<UpstreamAnswer> {
    try {
      return await firstValueFrom(this.#attempt(request));
    } catch (error) {
      throw this.#unanswered(error, request);
    }
  }

  /**
   * Sends a request of a later step: it is retried, since the client cannot do it without its tools running again.
   * @throws UpstreamRefusal, GatewayError
   */
  async sendAgain(request: UpstreamRequest): Promise<UpstreamAnswer> {
    const { retry, runtime } = this.#options;
    const attempt$ = defer(async () => {
      const answer = await firstValueFrom(this.#attempt(request));
      if (isOk(answer)) return answer;
      const bytes = answer.body === null ? new Uint8Array(0) : await wholeOf(answer.body);
      throw new UpstreamRefusal(answer.status, answer.headers, new TextDecoder().decode(bytes));
    });
    try {
      // Nobody waits for a retry once the client is gone, or the gateway shut down.
      return await firstValueFrom(merge(failsOnAbort(request.signal), attempt$.pipe(retryBackoff(retry, runtime))));
    } catch (error) {
      throw error instanceof UpstreamRefusal ? error : this.#unanswered(error, request);
    }
  }

  /**
   * One request. Its signal holds for what is asked and for what is answered, also where the transport does not heed
   * it.
   */
  #attempt(request: UpstreamRequest): Observable<UpstreamAnswer> {
    const { timeoutMs, runtime } = this.#options;
    const start = async (attempt: AbortSignal): Promise<UpstreamAnswer> => {
      const { status, headers, body } = await this.#transport(`${this.#base}${request.target}`, request, attempt);
      return { status, headers, body: body === null ? null : new BoundBytes(body, request.signal) };
    };
    return merge(failsOnAbort(request.signal), abortable(start)).pipe(attemptTimeout(timeoutMs, runtime));
  }

  #unanswered(cause: unknown, { signal }: UpstreamRequest): GatewayError {
    if (signal.aborted) return new GatewayError('client_gone', 'The request was canceled', { cause });
    if (httpThrown(cause).kind === 'timeout')
      return new GatewayError('upstream_timeout', 'The upstream did not begin its answer in time; ask again later', {
        cause,
      });
    return new GatewayError('upstream_unreachable', 'The upstream could not be reached; ask again later', { cause });
  }
}
