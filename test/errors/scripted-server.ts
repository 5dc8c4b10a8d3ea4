import { createServer, type IncomingMessage, type RequestListener, type Server } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { createServer as createTcpServer, type AddressInfo } from 'node:net';
import { selfSigned } from './self-signed.ts';

/** A server on this machine that answers as it is told. */
export interface ScriptedServer {
  readonly url: string;
  /** How the next requests are answered. */
  script(listener: RequestListener): void;
  close(): Promise<void>;
}

const bodies = new WeakMap<IncomingMessage, string>();

/** The body of a request that the script is asked about. */
export function bodyOf(request: IncomingMessage): string {
  return bodies.get(request) ?? '';
}

const listen = async (server: Server, scheme: string): Promise<string> => {
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  return `${scheme}://127.0.0.1:${(server.address() as AddressInfo).port}`;
};

export async function scriptedServer(tls = false): Promise<ScriptedServer> {
  let current: RequestListener = (_request, response) => response.end();
  const listener: RequestListener = (request, response) => {
    // A body left unread can reset the connection before the answer is read.
    const pieces: Buffer[] = [];
    request.on('data', (piece: Buffer) => pieces.push(piece));
    request.on('end', () => {
      bodies.set(request, Buffer.concat(pieces).toString());
      current(request, response);
    });
  };
  const server = tls ? createTlsServer(selfSigned(), listener) : createServer(listener);
  const url = await listen(server, tls ? 'https' : 'http');
  return {
    url,
    script: (next) => {
      current = next;
    },
    close: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => {
        server.close(resolve);
      });
    },
  };
}

/** The address of a port where nobody listens any more. */
export async function closedUrl(): Promise<string> {
  const server = createTcpServer();
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => {
    server.close(resolve);
  });
  return `http://127.0.0.1:${port}`;
}

export const answering =
  (status: number, body: unknown, headers: Record<string, string> = {}): RequestListener =>
  (_request, response) => {
    response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body));
  };

/** Server-sent events, then the end of the answer; `undefined` breaks the connection instead. */
export const streaming =
  (...events: ReadonlyArray<string | undefined>): RequestListener =>
  (_request, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    for (const event of events) if (event !== undefined) response.write(`${event}\n\n`);
    if (!events.includes(undefined)) response.end();
    // What was written has to leave first.
    else setTimeout(() => response.destroy(), 50);
  };

export const hanging: RequestListener = () => undefined;

export const resetting: RequestListener = (request) => request.socket.resetAndDestroy();
