import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StreamableHTTPServerTransport, type EventStore } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import type { JSONRPCMessage } from '@modelcontextprotocol/sdk/types.js';
import { randomUUID } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { registerTools, type SeenCall } from './tools.ts';

export interface HttpServerOptions {
  /** Numbers its events, so that streams can be taken up again. */
  readonly resumable?: boolean;
  /** Answers in JSON, without streams. */
  readonly json?: boolean;
  /** Adds tools of its own. */
  readonly tools?: (server: McpServer) => void;
}

/** Handles a request before the server sees it; `true` when it did. */
export type Intercept = (request: IncomingMessage, response: ServerResponse, body: string) => boolean;

/** A real MCP server over HTTP, in this process, that can be made to misbehave. */
export interface HttpServer extends AsyncDisposable {
  readonly url: string;
  readonly calls: SeenCall[];
  /** Method and session of each request. */
  readonly requests: string[];
  readonly sessions: Map<string, StreamableHTTPServerTransport>;
  intercept: Intercept | undefined;
  /** Requests that are being answered. */
  readonly answering: Map<ServerResponse, IncomingMessage>;
  /** Breaks every connection. */
  cut(): void;
  /** Stops listening, and breaks every connection. */
  stop(): Promise<void>;
  /** Listens again at the same port. */
  restart(): Promise<void>;
  readonly openSockets: number;
}

const eventStore = (): EventStore => {
  const events: { id: string; streamId: string; message: JSONRPCMessage }[] = [];
  return {
    storeEvent: (streamId, message) => {
      const id = `${streamId}/${events.length}`;
      events.push({ id, streamId, message });
      return Promise.resolve(id);
    },
    replayEventsAfter: async (lastEventId, { send }) => {
      const start = events.findIndex(({ id }) => id === lastEventId);
      const streamId = events[start]?.streamId ?? '';
      for (const event of events.slice(start + 1))
        if (event.streamId === streamId && 'jsonrpc' in event.message) await send(event.id, event.message);
      return streamId;
    },
  };
};

const bodyOf = async (request: IncomingMessage): Promise<string> => {
  const pieces: Buffer[] = [];
  for await (const piece of request) pieces.push(piece as Buffer);
  return Buffer.concat(pieces).toString();
};

export async function httpServer({
  resumable = false,
  json = false,
  tools,
}: HttpServerOptions = {}): Promise<HttpServer> {
  const calls: SeenCall[] = [];
  const requests: string[] = [];
  const sessions = new Map<string, StreamableHTTPServerTransport>();
  const answering = new Map<ServerResponse, IncomingMessage>();
  const sockets = new Set<Socket>();
  const store = eventStore();

  const transportFor = async (id: string | undefined): Promise<StreamableHTTPServerTransport | undefined> => {
    if (id !== undefined) return sessions.get(id);
    const server = new McpServer({ name: 'http', version: '0' });
    registerTools(server, (tool, meta) => {
      const call: SeenCall = { tool, meta, state: 'running' };
      calls.push(call);
      return (state) => (call.state = state);
    });
    tools?.(server);
    const transport = new StreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      enableJsonResponse: json,
      ...(resumable ? { eventStore: store } : {}),
      onsessioninitialized: (session) => void sessions.set(session, transport),
      onsessionclosed: (session) => void sessions.delete(session),
    });
    await server.connect(transport);
    return transport;
  };

  const handle = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const body = await bodyOf(request);
    const session = request.headers['mcp-session-id'];
    requests.push(`${request.method} ${session === undefined ? 'without session' : 'in session'}`);
    answering.set(response, request);
    response.on('close', () => answering.delete(response));
    if (api.intercept?.(request, response, body) === true) return;
    const transport = await transportFor(session as string | undefined);
    if (transport === undefined) {
      response
        .writeHead(404, { 'content-type': 'application/json' })
        .end(JSON.stringify({ jsonrpc: '2.0', error: { code: -32001, message: 'Session not found' }, id: null }));
      return;
    }
    await transport.handleRequest(request, response, body === '' ? undefined : (JSON.parse(body) as unknown));
  };

  // A client that was slow to send must not find that its connection was idle for too long.
  const server = createServer(
    { keepAliveTimeout: 60_000 },
    (request, response) => void handle(request, response).catch(() => response.destroy()),
  );
  server.on('connection', (socket) => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
  });
  const listen = (port: number): Promise<void> =>
    new Promise((resolve) => void server.listen(port, '127.0.0.1', resolve));
  await listen(0);
  const { port } = server.address() as AddressInfo;
  const cut = (): void => {
    for (const socket of sockets) socket.destroy();
  };
  const stop = (): Promise<void> =>
    new Promise((resolve) => {
      server.close(() => resolve());
      cut();
    });
  const api: HttpServer = {
    url: `http://127.0.0.1:${port}/mcp`,
    calls,
    requests,
    sessions,
    answering,
    intercept: undefined,
    cut,
    stop,
    restart: () => listen(port),
    get openSockets() {
      return sockets.size;
    },
    [Symbol.asyncDispose]: async () => {
      await Promise.all([...sessions.values()].map((transport) => transport.close()));
      if (server.listening) await stop();
    },
  };
  return api;
}
