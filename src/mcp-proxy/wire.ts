import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import { Observable, Subject, type Subscriber } from 'rxjs';
import type { Runtime } from '../contract/runtime.ts';
import { mcpThrown } from '../errors/mcp.ts';
import { CLOSED_EARLY } from '../providers/mcp/open-request.ts';
import { isOfLongAnswer } from '../providers/mcp/stdio/long-message.ts';
import {
  METHODS,
  SUBSCRIPTION_META_KEY,
  isNotification,
  isResponse,
  metaOf,
  notificationOf,
  requestOf,
  rpcErrorOf,
  type Id,
  type Message,
  type Notification,
  type Params,
  type Request,
  type Response,
} from './message.ts';
import { AskedForTasks } from './tasks.ts';

/** The transport to a server, with what the SDK's interface leaves out. */
export interface ServerTransport extends Transport {
  /** Resolves once the connection is gone, with an error that says how, where that is known. */
  readonly ended?: Promise<Error>;
  /** What the server wrote on stderr last, in a line. */
  readonly stderr?: { readonly said: string };
  /** Stops reading from the server until `resume`, where the transport can. */
  pause?(): void;
  resume?(): void;
}

/** A request to a server, as the one who asks wrote it. */
export interface Asked {
  readonly method: string;
  readonly params: Params | undefined;
  /** The asker's own id: what the server says about it is told under this one. */
  readonly askedAs?: Id;
  /** Told the progress that the server reports, under the token of whoever asked. */
  readonly progress?: (params: Params) => void;
}

/** One connection to one server: requests go out under ids of its own, and come back as results. */
export interface Wire {
  /** What the server says without being asked: its own requests, and notifications. Completes with the connection. */
  readonly said$: Observable<Request | Notification>;
  /**
   * Sends a request when it is subscribed to; emits its result, or errors with the server's error. Unsubscribed before,
   * it is canceled at the server.
   */
  request$(asked: Asked): Observable<unknown>;
  notify(method: string, params: Params | undefined): void;
  reply(response: Response): void;
  readonly transport: ServerTransport;
}

interface Pending {
  readonly subscriber: Subscriber<unknown>;
  readonly asked: Asked;
}

/** With a token of its own for each request: late progress of an attempt that was given up is nobody's. */
const withToken = (params: Params | undefined, id: Id): Params => ({
  ...params,
  _meta: { ...metaOf(params), progressToken: id },
});

/** What a server says under an id or token of ours, as it is to be read by whoever asked. */
const renamed = (message: Notification, pending: ReadonlyMap<Id, Pending>): Notification => {
  const subscription = metaOf(message.params)[SUBSCRIPTION_META_KEY];
  const askedAs = pending.get(subscription as Id)?.asked.askedAs;
  if (askedAs === undefined) return message;
  const params = { ...message.params, _meta: { ...metaOf(message.params), [SUBSCRIPTION_META_KEY]: askedAs } };
  return notificationOf(message.method, params);
};

const quietly = (): void => undefined;

class SdkWire implements Wire {
  readonly transport: ServerTransport;
  readonly #said$ = new Subject<Request | Notification>();
  readonly said$: Observable<Request | Notification> = this.#said$.asObservable();
  readonly #pending = new Map<Id, Pending>();
  readonly #tasks = new AskedForTasks<Asked>();
  readonly #prefix: string;
  #asked = 0;

  constructor(transport: ServerTransport, prefix: string) {
    this.transport = transport;
    this.#prefix = prefix;
    Object.assign(transport, {
      onmessage: (message: Message) => this.#hear(message),
      onclose: () => this.#said$.complete(),
      // A line that is no message is passed over; the end of a connection is told by `onclose`.
      onerror: quietly,
    });
  }

  request$(asked: Asked): Observable<unknown> {
    return new Observable((subscriber) => {
      const id = `${this.#prefix}:${++this.#asked}`;
      this.#pending.set(id, { subscriber, asked });
      subscriber.add(() => {
        // Answered, or never sent: there is nothing to cancel.
        if (!this.#pending.delete(id) || asked.method === METHODS.initialize) return;
        this.notify(METHODS.cancelled, { requestId: id });
      });
      const params = asked.progress === undefined ? asked.params : withToken(asked.params, id);
      this.#send(requestOf(id, asked.method, params), (error) => {
        this.#pending.delete(id);
        // Over HTTP `send` also fails after the server has had the message: what the error says is all that is known.
        subscriber.error(mcpThrown(error));
      });
    });
  }

  notify(method: string, params: Params | undefined): void {
    this.#send(notificationOf(method, params), quietly);
  }

  reply(response: Response): void {
    this.#send(response, quietly);
  }

  #send(message: Message, failed: (error: unknown) => void): void {
    try {
      this.transport.send(message).catch(failed);
    } catch (error) {
      failed(error);
    }
  }

  #hear(message: Message): void {
    if (isResponse(message)) return this.#settle(message);
    if (isNotification(message) && message.method === METHODS.progress) {
      const { params = {} } = message;
      const token = params['progressToken'] as Id;
      const asked = this.#pending.get(token)?.asked ?? this.#tasks.of(token);
      if (asked !== undefined) return asked.progress?.(params);
      // Of an attempt that is over: nobody else asked for it.
      if (String(token).startsWith(`${this.#prefix}:`)) return;
    }
    this.#said$.next(isNotification(message) ? renamed(message, this.#pending) : message);
  }

  #settle(response: Response): void {
    const open = this.#pending.get(response.id as Id);
    if (open === undefined) return;
    this.#pending.delete(response.id as Id);
    if ('error' in response)
      return open.subscriber.error(
        // The server did not say it, and so a client is told what a model should know.
        response.error === CLOSED_EARLY || isOfLongAnswer(response.error)
          ? mcpThrown(response.error)
          : rpcErrorOf(response),
      );
    if (open.asked.progress !== undefined) this.#tasks.answered(response.id, open.asked, response.result);
    open.subscriber.next(response.result);
    open.subscriber.complete();
  }
}

/** Speaks JSON-RPC over a transport of the SDK. Ids are unique over all wires of a process, and unlike any client's. */
export const createWire = (transport: ServerTransport, runtime: Runtime): Wire => new SdkWire(transport, runtime.id());
