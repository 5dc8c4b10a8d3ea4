import * as sdk from '@modelcontextprotocol/sdk/server/webStandardStreamableHttp.js';
import { BehaviorSubject, first, firstValueFrom, type Subscription } from 'rxjs';
import type { Runtime } from '../../contract/runtime.ts';
import { eventStore } from './event-store.ts';
import { watchedStream } from './stream.ts';
import { CODES, METHODS, isRecord, isResponse, type Message } from '../message.ts';
import type { McpProxy } from '../proxy.ts';

/** How soon a client is to come back whose stream was cut. */
const RETRY_MS = 1_000;

export interface HttpSessionOptions {
  readonly proxy: McpProxy;
  readonly runtime: Runtime;
  readonly begun: (id: string) => void;
  readonly ended: (id: string) => void;
}

const inUse = (id: unknown): Response =>
  Response.json(
    { jsonrpc: '2.0', error: { code: CODES.invalidRequest, message: 'A request with this id is open' }, id },
    { status: 400 },
  );

/** The ids of the requests in a body, a batch as it may be, and those that its notifications cancel. */
const idsIn = (body: unknown): { readonly asked: readonly unknown[]; readonly canceled: readonly unknown[] } => {
  const messages = (Array.isArray(body) ? (body as unknown[]) : [body]).filter(isRecord);
  return {
    asked: messages.filter((message) => 'method' in message && 'id' in message).map(({ id }) => id),
    canceled: messages.flatMap(({ method, params }) =>
      method === METHODS.cancelled && isRecord(params) ? [params['requestId']] : [],
    ),
  };
};

/** One client over HTTP, with servers of its own. */
export class HttpSession {
  readonly #transport: sdk.WebStandardStreamableHTTPServerTransport;
  readonly #served: Subscription;
  readonly #runtime: Runtime;
  /** Requests that are not answered. For the SDK's transport a second one of an id takes the first one's stream. */
  readonly #open = new Set<unknown>();
  /** Streams of which the client leaves too much unread. */
  readonly #full$ = new BehaviorSubject(0);
  #streams = 0;
  #seenAtMs: number;

  constructor({ proxy, runtime, begun, ended }: HttpSessionOptions) {
    this.#runtime = runtime;
    this.#seenAtMs = runtime.now();
    this.#transport = new sdk.WebStandardStreamableHTTPServerTransport({
      sessionIdGenerator: () => runtime.id(),
      eventStore: eventStore(),
      retryInterval: RETRY_MS,
      onsessioninitialized: begun,
      onsessionclosed: ended,
    });
    const send = this.#transport.send.bind(this.#transport);
    this.#transport.send = async (message: Message, options) => {
      if (isResponse(message)) this.#open.delete(message.id);
      await send(message, options);
      await firstValueFrom(this.#full$.pipe(first((count) => count === 0)));
    };
    this.#served = proxy.serve$(this.#transport, false).subscribe();
  }

  /** Whether nobody reads, and nobody has asked since then. */
  isIdle(atMs: number): boolean {
    return this.#streams === 0 && this.#seenAtMs < atMs;
  }

  end(): void {
    this.#served.unsubscribe();
    this.#full$.next(0);
  }

  /** @param body what was posted */
  async fetch(request: Request, body: unknown): Promise<Response> {
    const { asked, canceled } = idsIn(body);
    const twice = asked.find((id, place) => this.#open.has(id) || asked.indexOf(id) !== place);
    if (twice !== undefined) return inUse(twice);
    for (const id of canceled) this.#open.delete(id);
    for (const id of asked) this.#open.add(id);
    const response = await this.#transport.handleRequest(request, body === undefined ? {} : { parsedBody: body });
    this.#seenAtMs = this.#runtime.now();
    if (!response.ok) for (const id of asked) this.#open.delete(id);
    if (response.body === null) return response;
    this.#streams++;
    return watchedStream(response, {
      runtime: this.#runtime,
      full: (isFull) => this.#full$.next(Math.max(0, this.#full$.value + (isFull ? 1 : -1))),
      ended: () => {
        this.#streams--;
        this.#seenAtMs = this.#runtime.now();
      },
    });
  }

  /** What came without a session was no `initialize`: nothing has begun. */
  get hasBegun(): boolean {
    return this.#transport.sessionId !== undefined;
  }
}
