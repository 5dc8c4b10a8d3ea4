import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { Server as NetServer, type AddressInfo } from 'node:net';
import { getRequestListener } from '@hono/node-server';
import { expireAfter } from '../operators/timing/expiry.ts';
import { checkKeys, checkNumber, integer } from '../policy/check.ts';
import { liveRuntime } from '../runtime.ts';
import { inners } from './anthropic/gateway.ts';
import { answerOnNode, nodeTransport } from './wire/node.ts';
import type { AnthropicGateway } from './anthropic.ts';

/** Where a gateway listens. */
export interface GatewayServerOptions {
  /**
   * The address to listen at. Default `127.0.0.1`. The gateway asks for no key of its own: at another address everyone
   * who reaches it can use its tools.
   */
  readonly host?: string;
  /** The port to listen at, 0 to 65,535. Default 0: any free one. */
  readonly port?: number;
}

/** A gateway that listens. */
export interface GatewayServer {
  /** The base URL for clients. */
  readonly url: string;
  /** The port that the server listens at. */
  readonly port: number;
  /**
   * Stops listening, drains the gateway and closes all connections. What runs longer than `graceMs` is harvested; the
   * default is that of `drain`, 30,000. Idempotent.
   */
  close(graceMs?: number): Promise<void>;
}

/** How long clients may take to read their last answers when the server closes, unless its turns may take less. */
const READ_MS = 5_000;

/** Longer than clients and balancers keep a connection: they close it, and no request meets a closed one. */
const KEEP_ALIVE_MS = 75_000;

const REASONS: Readonly<Record<string, string>> = {
  EADDRINUSE: 'another program listens there; choose another port, or 0 for any free one',
  EACCES: 'this user may not listen there; choose a port above 1023',
  EADDRNOTAVAIL: 'this machine does not have that address; choose another host',
  ENOTFOUND: 'the host name is not known; correct it',
};

const listening = (server: Server, host: string, port: number): Promise<AddressInfo> =>
  new Promise((resolve, reject) => {
    server.once('error', ({ code = '' }: NodeJS.ErrnoException) =>
      reject(new Error(`cannot listen on ${host}:${port}: ${REASONS[code] ?? code}`)),
    );
    server.listen(port, host, () => resolve(server.address() as AddressInfo));
  });

/** Answers that are on their way. */
class Answers {
  readonly #open = new Set<ServerResponse>();
  #last: (() => void) | undefined;

  add(answer: ServerResponse): void {
    this.#open.add(answer);
    answer.once('close', () => {
      this.#open.delete(answer);
      if (this.#open.size === 0) this.#last?.();
    });
  }

  /**
   * Resolves when all have been handed to the system, or nobody waits for them any more; after `withinMs` in any case.
   */
  async ended(withinMs: number): Promise<void> {
    if (this.#open.size === 0) return;
    await new Promise<void>((resolve) => {
      const deadline = expireAfter(withinMs, liveRuntime, resolve);
      this.#last = () => {
        deadline.unsubscribe();
        resolve();
      };
    });
  }
}

/** Our own gateways answer without a detour; for what stands in front of one, its `fetch` is what it can do. */
const listenerOf = (gateway: AnthropicGateway): ((incoming: IncomingMessage, outgoing: ServerResponse) => unknown) => {
  const inner = inners.get(gateway);
  if (inner === undefined)
    return getRequestListener((request) => gateway.fetch(request), { overrideGlobalObjects: false });
  inner.offerTransport(nodeTransport);
  return (incoming, outgoing) => answerOnNode((request) => inner.answer(request), incoming, outgoing);
};

/**
 * Serves a gateway on Node. The upstream is asked by Node's own HTTP client, over its global agents, unless the gateway
 * was given a `fetch`.
 *
 * @param gateway the gateway, from `anthropicGateway`
 * @param options where to listen
 * @throws RangeError for an option out of its range; Error when it cannot listen, with the reason and the remedy
 *
 * @example
 * const server = await serveAnthropicGateway(anthropicGateway({ upstream: 'https://api.anthropic.com' }));
 * await server.close();
 */
export async function serveAnthropicGateway(
  gateway: AnthropicGateway,
  options: GatewayServerOptions = {},
): Promise<GatewayServer> {
  checkKeys('serveAnthropicGateway', options, ['host', 'port']);
  const { host = '127.0.0.1', port = 0 } = options;
  checkNumber('port', port, integer(0, 65_535));
  if (typeof host !== 'string' || !/^[\w.:-]{1,253}$/.test(host))
    throw new RangeError(
      `host must be a name or an address without a port, not ${JSON.stringify(String(host).slice(0, 64))}`,
    );
  const listener = listenerOf(gateway);
  const answers = new Answers();
  const server = createServer({ keepAliveTimeout: KEEP_ALIVE_MS }, (incoming, outgoing) => {
    answers.add(outgoing);
    void listener(incoming, outgoing);
  });
  const { port: bound } = await listening(server, host, port);
  let closing: Promise<void> | undefined;
  const close = async (graceMs?: number): Promise<void> => {
    const closed = new Promise<void>((resolve) => {
      // That of HTTP would cut answers that are not read yet: to it, their connections are idle.
      NetServer.prototype.close.call(server, () => resolve());
    });
    await gateway.drain(graceMs);
    // What was answered last may not have been read yet.
    await answers.ended(Math.min(graceMs ?? READ_MS, READ_MS));
    server.close();
    server.closeAllConnections();
    await closed;
  };
  return {
    url: `http://${host.includes(':') ? `[${host}]` : host}:${bound}`,
    port: bound,
    close: (graceMs) => (closing ??= close(graceMs)),
  };
}
