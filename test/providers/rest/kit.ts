import { createServer, type IncomingMessage, type RequestListener, type Server, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import type { RestManifest, RestProviderOptions, RestToolEntry } from '../../../src/providers/rest.ts';
import { restProvider } from '../../../src/providers/rest.ts';
import type { ToolProvider } from '../../../src/contract/provider.ts';
import type { ToolContext } from '../../../src/contract/tool.ts';
import { selfSigned } from '../../errors/self-signed.ts';
import { context } from '../support.ts';

/** A request as a server saw it. */
export interface Seen {
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingMessage['headers'];
  readonly body: string;
}

export interface RestServer extends AsyncDisposable {
  readonly url: string;
  readonly port: number;
  /** Its certificate, when it speaks TLS. */
  readonly ca: string;
  readonly seen: Seen[];
  /** Connections that were ever made, and those that are open. */
  readonly connections: { made: number; open: number };
  /** How the next requests are answered. */
  answer(listener: RequestListener): void;
}

export const json =
  (value: unknown, status = 200, headers: Readonly<Record<string, string>> = {}): RequestListener =>
  (_request, response) =>
    void response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(value));

export const redirect =
  (status: number, location: string): RequestListener =>
  (_request, response) =>
    void response.writeHead(status, { location }).end('elsewhere');

/** A real server on a free port of this machine. */
export async function restServer(listener: RequestListener = json({ ok: true }), tls = false): Promise<RestServer> {
  let current = listener;
  const seen: Seen[] = [];
  const connections = { made: 0, open: 0 };
  const serve = (request: IncomingMessage, response: ServerResponse): void => {
    const pieces: Buffer[] = [];
    request.on('data', (piece: Buffer) => pieces.push(piece));
    request.on('error', () => undefined);
    request.on('end', () => {
      seen.push({
        method: request.method ?? '',
        url: request.url ?? '',
        headers: request.headers,
        body: Buffer.concat(pieces).toString(),
      });
      current(request, response);
    });
  };
  const signed = selfSigned();
  const server: Server = tls ? createTlsServer(signed, serve) : createServer(serve);
  server.on('connection', (socket) => {
    connections.made++;
    connections.open++;
    socket.on('close', () => connections.open--);
  });
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  const { port } = server.address() as AddressInfo;
  return {
    url: `${tls ? 'https' : 'http'}://127.0.0.1:${port}`,
    port,
    ca: signed.cert,
    seen,
    connections,
    answer: (next) => {
      current = next;
    },
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => {
        server.close(resolve);
      });
    },
  };
}

export interface OneTool extends AsyncDisposable {
  readonly provider: ToolProvider;
  call(input?: unknown, more?: Partial<ToolContext>, signal?: AbortSignal): Promise<unknown>;
}

/** A provider with one tool, `api.t`, that may reach this machine. */
export function oneTool(
  baseUrl: string,
  tool: Partial<RestToolEntry> = {},
  options: RestProviderOptions = {},
  more: Partial<RestManifest> = {},
): OneTool {
  const provider = restProvider(
    { name: 'api', base_url: baseUrl, ...more, tools: [{ id: 't', url: '/x', ...tool }] },
    { allow: ['127.0.0.1'], ...options },
  );
  const [only] = provider.tools;
  return {
    provider,
    call: async (input, more, signal) => only?.execute(input as never, { ...context(signal), ...more }),
    [Symbol.asyncDispose]: () => provider.close(),
  };
}
