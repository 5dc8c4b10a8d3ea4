import type { Transport, TransportSendOptions } from '@modelcontextprotocol/sdk/shared/transport.js';
import type { Runtime } from '../../contract/runtime.ts';
import {
  METHODS,
  SUBSCRIPTION_META_KEY,
  isResponse,
  metaOf,
  notificationOf,
  type Id,
  type Message,
} from '../message.ts';

/** The exchange of one HTTP request, as `@modelcontextprotocol/server` 2.x has it. */
interface Exchange {
  onmessage?: ((message: never) => void) | undefined;
  onclose?: (() => void) | undefined;
  start(): Promise<void>;
  send(message: never, options?: { readonly relatedRequestId?: Id }): Promise<void>;
  handleMessage(message: never, extra: { readonly request: Request }): Promise<Response>;
}

/** What is used of `@modelcontextprotocol/server`, an optional peer: it alone speaks the protocol of 2026-07-28. */
interface ServerPackage {
  classifyInboundRequest(request: object): {
    readonly kind: 'modern' | 'legacy' | 'reject';
    readonly httpStatus?: number;
    readonly code?: number;
    readonly message?: unknown;
    readonly data?: unknown;
    readonly classification?: object;
  };
  readonly PerRequestHTTPServerTransport: new (options: { readonly classification: object }) => Exchange;
}

/** The protocol's versions from this one on have no sessions: each request is an exchange of its own. */
const FIRST_MODERN = '2026-07-28';

export const namesModern = (request: Request): boolean =>
  (request.headers.get('mcp-protocol-version') ?? '') >= FIRST_MODERN;

/** The package, where it is installed. */
export async function loadServerPackage(): Promise<ServerPackage | undefined> {
  const name: string = '@modelcontextprotocol/server';
  try {
    return (await import(name)) as ServerPackage;
  } catch {
    return undefined;
  }
}

interface Open {
  readonly exchange: Exchange;
  readonly clientId: Id;
}

/**
 * All requests without a session, of all clients, as the messages of one: under ids of its own, since each client
 * counts from the same number.
 */
export class ModernTransport implements Transport {
  onmessage?: (message: Message) => void;
  onclose?: () => void;
  onerror?: (error: Error) => void;
  readonly #open = new Map<Id, Open>();
  readonly #package: ServerPackage;
  readonly #runtime: Runtime;

  constructor(server: ServerPackage, runtime: Runtime) {
    this.#package = server;
    this.#runtime = runtime;
  }

  start(): Promise<void> {
    return Promise.resolve();
  }

  async send(message: Message, options: TransportSendOptions = {}): Promise<void> {
    const id = isResponse(message) ? message.id : options.relatedRequestId;
    const open = id === undefined ? undefined : this.#open.get(id);
    if (open === undefined) return;
    await open.exchange.send(this.#asAsked(message, open) as never, { relatedRequestId: open.clientId });
  }

  close(): Promise<void> {
    this.onclose?.();
    return Promise.resolve();
  }

  /** Serves one request. */
  async fetch(request: Request, body: unknown): Promise<Response> {
    const header = (name: string): string | undefined => request.headers.get(name) ?? undefined;
    const route = this.#package.classifyInboundRequest({
      httpMethod: request.method,
      protocolVersionHeader: header('mcp-protocol-version'),
      mcpMethodHeader: header('mcp-method'),
      mcpNameHeader: header('mcp-name'),
      body,
    });
    if (route.kind !== 'modern' || route.classification === undefined) {
      const { httpStatus: status = 400, code = -32_600, message = 'Not a request of this protocol', data } = route;
      const error = { code, message, ...(data === undefined ? {} : { data }) };
      return Response.json({ jsonrpc: '2.0', error, id: null }, { status });
    }
    const exchange = new this.#package.PerRequestHTTPServerTransport({ classification: route.classification });
    this.#serve(exchange);
    await exchange.start();
    return exchange.handleMessage(body as never, { request });
  }

  #serve(exchange: Exchange): void {
    let id: Id | undefined;
    Object.assign(exchange, {
      onmessage: (message: Message) => {
        if (!('id' in message)) return this.onmessage?.(message);
        id = this.#runtime.id();
        this.#open.set(id, { exchange, clientId: message.id as Id });
        this.onmessage?.({ ...message, id });
      },
      // Answered, or its client has gone: then nobody wants the answer.
      onclose: () => {
        if (id !== undefined && this.#open.delete(id)) this.#canceled(id);
      },
    });
  }

  #canceled(requestId: Id): void {
    this.onmessage?.(notificationOf(METHODS.cancelled, { requestId }));
  }

  #asAsked(message: Message, { clientId }: Open): Message {
    if (isResponse(message)) {
      this.#open.delete(message.id as Id);
      const { [SUBSCRIPTION_META_KEY]: subscribed } = metaOf('result' in message ? message.result : undefined);
      if (subscribed === undefined || !('result' in message)) return { ...message, id: clientId };
      const meta = { ...metaOf(message.result), [SUBSCRIPTION_META_KEY]: clientId };
      return { ...message, id: clientId, result: { ...message.result, _meta: meta } };
    }
    const meta = metaOf(message.params);
    if (!(SUBSCRIPTION_META_KEY in meta)) return message;
    const params = { ...message.params, _meta: { ...meta, [SUBSCRIPTION_META_KEY]: clientId } };
    return notificationOf(message.method, params);
  }
}
