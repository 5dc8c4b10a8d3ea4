import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { UnauthorizedError, type OAuthClientProvider } from '@modelcontextprotocol/sdk/client/auth.js';
import type { JSONRPCMessage } from '@modelcontextprotocol/sdk/types.js';
import { firstValueFrom, race } from 'rxjs';
import type { Runtime } from '../../contract/runtime.ts';
import { read } from '../../errors/structure.ts';
import { abortable } from '../../operators/work/abortable.ts';
import { sessionLost } from './client.ts';
import { refusedBy, speaksOfSession, turnedAway, watched } from './http-answer.ts';
import { CLOSED_EARLY, bodyOf, requestIdOf, type OpenRequest, type RequestId } from './open-request.ts';
import { PassingFailure, SIGN_INS_MAX, noting, sendSignIn, type Fetch, type SentTo } from './sign-in.ts';
import { answeredError, statelessHeaders, withHeaders } from './stateless.ts';

/**
 * The waits before a cut stream is taken up again; the SDK's own are 1,000 and 1,500. A server's `retry:` goes before
 * the first.
 */
const RESUME_DELAYS_MS: readonly number[] = [0, 1_000];
/** How long a server has to answer the end of its session. */
const GOODBYE_MS = 1_000;

interface HttpTransportOptions {
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly authProvider: OAuthClientProvider | undefined;
  /** Has a person sign in where the provider sent one away, and gives the code that came back. */
  readonly authorizationCode?: ((authorizationUrl: URL) => string | Promise<string>) | undefined;
  readonly runtime: Runtime;
}

/**
 * The SDK's transport, with what it leaves open: a request whose stream is cut and cannot be taken up again fails at
 * once (there it waits for its timeout); a canceled request lets go of its stream; an answered refusal keeps its
 * `Retry-After`; a session that the server has forgotten is the end of the connection; `close()` leaves no timer and no
 * stream.
 */
export class HttpTransport extends StreamableHTTPClientTransport {
  readonly #options: HttpTransportOptions;
  /** Where a person was sent to sign in, until they have. */
  readonly #sentTo: SentTo;
  readonly #open = new Map<RequestId, OpenRequest>();
  /** Everything that a stream is read for, answered requests too. */
  readonly #live = new Set<AbortController>();
  /** Requests by the event after which they are taken up again. */
  readonly #resuming = new Map<string, RequestId>();
  /**
   * The stream that belongs to no request has ended. It is opened anew with the next request: some servers send
   * progress there.
   */
  #deaf = false;
  #forgotten = false;
  #closed = false;

  constructor(options: HttpTransportOptions) {
    const { url, headers, authProvider } = options;
    const sentTo: SentTo = { url: undefined };
    // Private members are there only after `super`.
    const late: { fetch?: Fetch } = {};
    super(url, {
      requestInit: { headers: { ...headers } },
      fetch: (input, init) => (late.fetch ?? fetch)(input, init),
      // Streams are taken up again here: the SDK keeps one timer for all of them, and its `close()` misses the others.
      reconnectionOptions: {
        maxRetries: 0,
        initialReconnectionDelay: 0,
        maxReconnectionDelay: 0,
        reconnectionDelayGrowFactor: 1,
      },
      ...(authProvider === undefined ? {} : { authProvider: noting(authProvider, sentTo) }),
    });
    this.#sentTo = sentTo;
    late.fetch = (input, init = {}) => this.#fetch(input, init);
    this.#options = options;
    // The client that connects calls this one first.
    Object.assign(this, { onmessage: (message: JSONRPCMessage) => this.#hear(message) });
  }

  override async send(
    message: JSONRPCMessage | JSONRPCMessage[],
    options?: { resumptionToken?: string; onresumptiontoken?: (token: string) => void },
  ): Promise<void> {
    const id = requestIdOf(message);
    if (id === undefined) {
      const sent = super.send(message, options);
      if (read(message, 'method') === 'notifications/cancelled')
        this.#letGo(read(read(message, 'params'), 'requestId') as RequestId);
      return sent;
    }
    // After a sign-in the SDK sends the same request again.
    const open: OpenRequest = this.#open.get(id) ?? {
      controller: new AbortController(),
      token: undefined,
      emptyHanded: 0,
      turnedAway: undefined,
      wait: undefined,
    };
    this.#open.set(id, open);
    if (this.#deaf) this.#listen();
    try {
      await this.#sendSigned(message, { ...options, onresumptiontoken: (token) => this.#advance(open, token) });
    } catch (error) {
      this.#open.delete(id);
      if (error instanceof PassingFailure) throw error.failure;
      throw open.turnedAway === undefined ? error : turnedAway(error, open.turnedAway);
    }
  }

  /** Sends, and once more after a sign-in that needed a person, which may need another with more rights. */
  async #sendSigned(
    message: JSONRPCMessage | JSONRPCMessage[],
    options: { resumptionToken?: string; onresumptiontoken: (token: string) => void },
    signIns = 0,
  ): Promise<void> {
    const { authorizationCode } = this.#options;
    try {
      return await super.send(message, options);
    } catch (error) {
      const { url } = this.#sentTo;
      if (!(error instanceof UnauthorizedError) || url === undefined || authorizationCode === undefined) throw error;
      if (signIns >= SIGN_INS_MAX) throw error;
      this.#sentTo.url = undefined;
      await this.finishAuth(await authorizationCode(url));
    }
    return this.#sendSigned(message, options, signIns + 1);
  }

  /** Ends the session at the server, which gets a second to answer, then everything here. */
  async end(): Promise<void> {
    const { runtime } = this.#options;
    if (!this.#forgotten && !this.#closed) {
      const ended$ = abortable(() => this.terminateSession().catch(() => undefined));
      await firstValueFrom(race(ended$, (runtime.background ?? runtime).after(GOODBYE_MS)), {
        defaultValue: undefined,
      });
    }
    await this.close();
  }

  override async close(): Promise<void> {
    this.#closed = true;
    for (const { wait } of this.#open.values()) wait?.unsubscribe();
    this.#open.clear();
    for (const controller of this.#live) controller.abort();
    this.#live.clear();
    await super.close();
  }

  readonly #fetch = async (input: string | URL, init: RequestInit): Promise<Response> => {
    if (this.#closed) throw new Error('Not connected');
    const headers = new Headers(init.headers);
    // Whatever else comes through here is a sign-in, or the end of the session.
    if (headers.get('accept')?.includes('text/event-stream') !== true)
      return sendSignIn(this.#options.authProvider, input, init);
    return init.method === 'GET'
      ? this.#fetchStream(input, init, headers.get('last-event-id'))
      : this.#post(input, init, headers.has('mcp-session-id'));
  };

  async #post(input: string | URL, given: RequestInit, inSession: boolean): Promise<Response> {
    const { authProvider } = this.#options;
    const message = bodyOf(given.body);
    const headers = statelessHeaders(message);
    const init = headers === undefined ? given : { ...given, headers: withHeaders(given.headers, headers) };
    const id = requestIdOf(message);
    if (id === undefined) {
      const response = await fetch(input, init);
      return response.ok ? response : this.#refuse(response, inSession);
    }
    const open = this.#open.get(id);
    // Canceled while its headers were made, which may ask for a token.
    if (open === undefined) throw new Error('Not wanted any more');
    open.turnedAway = undefined;
    const response = await this.#follow(open, input, init, () => this.#cut(id, open));
    const { ok, status } = response;
    if (ok) return response;
    // Both are the SDK's to follow.
    const signsIn = authProvider !== undefined && (status === 401 || status === 403);
    if (!signsIn && status >= 400)
      return (headers === undefined ? undefined : await answeredError(response)) ?? this.#refuse(response, inSession);
    open.turnedAway = status;
    return response;
  }

  async #refuse(response: Response, inSession: boolean): Promise<Response> {
    const { runtime } = this.#options;
    if (!inSession || !(await speaksOfSession(response))) throw await refusedBy(response, () => runtime.wallNow());
    this.#forgotten = true;
    throw sessionLost();
  }

  /** A stream that is asked for: one taken up again, or the one that belongs to no request. */
  async #fetchStream(input: string | URL, init: RequestInit, token: string | null): Promise<Response> {
    const { authProvider, runtime } = this.#options;
    if (token === null) {
      const response = await fetch(input, init);
      return response.ok ? watched(response, () => (this.#deaf = true)) : response;
    }
    const id = this.#resuming.get(token);
    const open = id === undefined ? undefined : this.#open.get(id);
    if (id === undefined || open === undefined) throw new Error('Not wanted any more');
    const response = await this.#follow(open, input, init, () => this.#cut(id, open));
    if (response.ok || (response.status === 401 && authProvider !== undefined)) return response;
    // The SDK takes a 405 for an answer: no such stream is offered.
    throw await refusedBy(response, () => runtime.wallNow());
  }

  async #follow(
    { controller }: OpenRequest,
    input: string | URL,
    init: RequestInit,
    ended: () => void,
  ): Promise<Response> {
    this.#live.add(controller);
    try {
      const response = await fetch(input, { ...init, signal: controller.signal });
      if (response.ok && response.body !== null) {
        const streams = response.headers.get('content-type')?.includes('text/event-stream') === true;
        return watched(response, () => {
          this.#live.delete(controller);
          if (streams) ended();
        });
      }
      this.#live.delete(controller);
      return response;
    } catch (error) {
      this.#live.delete(controller);
      throw error;
    }
  }

  #hear(message: JSONRPCMessage): void {
    const id = read(message, 'method') === undefined ? read(message, 'id') : undefined;
    if (id === undefined) return;
    this.#open.get(id as RequestId)?.wait?.unsubscribe();
    this.#open.delete(id as RequestId);
  }

  #letGo(id: RequestId): void {
    const open = this.#open.get(id);
    this.#open.delete(id);
    open?.wait?.unsubscribe();
    open?.controller.abort();
  }

  #advance(open: OpenRequest, token: string): void {
    open.token = token;
    open.emptyHanded = 0;
  }

  /** The stream of a request ended. What was read of it last may still be on its way through the SDK's parser. */
  #cut(id: RequestId, open: OpenRequest): void {
    const { runtime } = this.#options;
    if (this.#open.get(id) !== open) return;
    open.wait = (runtime.background ?? runtime).after(0).subscribe(() => this.#takeUp(id, open));
  }

  #takeUp(id: RequestId, open: OpenRequest): void {
    const { token } = open;
    const delayMs = RESUME_DELAYS_MS[open.emptyHanded];
    if (token === undefined || delayMs === undefined) return this.#fail(id);
    const { runtime } = this.#options;
    const waitMs = open.emptyHanded === 0 ? (this.#retryMs ?? delayMs) : delayMs;
    open.emptyHanded++;
    open.wait = runtime.after(waitMs).subscribe(() => void this.#resume(id, open, token));
  }

  async #resume(id: RequestId, open: OpenRequest, token: string): Promise<void> {
    this.#resuming.set(token, id);
    try {
      await this.resumeStream(token, { onresumptiontoken: (next) => this.#advance(open, next) });
    } catch {
      this.#cut(id, open);
    } finally {
      this.#resuming.delete(token);
    }
  }

  /** What the server asked to wait before a stream is taken up again. */
  get #retryMs(): number | undefined {
    const retryMs = read(this, '_serverRetryMs');
    return typeof retryMs === 'number' ? retryMs : undefined;
  }

  #fail(id: RequestId): void {
    this.onmessage?.({ jsonrpc: '2.0', id, error: CLOSED_EARLY });
  }

  #listen(): void {
    this.#deaf = false;
    this.resumeStream('').catch(() => undefined);
  }
}
