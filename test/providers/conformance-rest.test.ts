import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { providerConformance, type BackendCall, type ConformanceCall } from 'spillway/testing';
import { describe, it } from 'vitest';
import { restProvider } from '../../src/providers/rest.ts';
import { createSpillway } from '../../src/spillway.ts';

const SECRET = 'secret-of-the-harness';
const nothing = { type: 'object', additionalProperties: false };
const call = (name: string, input = {}): ConformanceCall => ({ toolName: `api.${name}`, input });
const textOf = (header: string | string[] | undefined): string | undefined =>
  Array.isArray(header) ? header.join(',') : header;

const ANSWERS: Readonly<Record<string, (query: URLSearchParams, response: ServerResponse) => Promise<unknown>>> = {
  '/echo': async (query, response) => {
    await sleep(Number(query.get('delayMs')));
    response.setHeader('content-type', 'application/json').end(JSON.stringify({ text: query.get('text') }));
  },
  '/hang': () => new Promise(() => undefined),
  '/fail': async (_query, response) => response.writeHead(500).end('it broke'),
  '/steps': async (_query, response) => {
    // REST tells of progress by the 64 KB.
    for (const piece of ['a', 'b', 'c'].map((letter) => letter.repeat(100_000))) {
      response.write(piece);
      await sleep(30);
    }
    response.end();
  },
};

const cases = providerConformance({
  createSpillway,
  // An address that is gone is answered with a status, as any refusal is.
  lacks: ['gone'],
  make: async () => {
    const seen: { state: BackendCall['state']; headers: IncomingMessage['headers'] }[] = [];
    const sockets = new Set<Socket>();
    const server = createServer((request, response) => {
      const url = new URL(request.url ?? '/', 'http://localhost');
      if (url.pathname === '/busy') {
        response.writeHead(429, { 'retry-after': '7' }).end();
        return;
      }
      const entry: (typeof seen)[number] = { state: 'running', headers: request.headers };
      seen.push(entry);
      response.on('close', () => (entry.state = response.writableFinished ? 'answered' : 'aborted'));
      void ANSWERS[url.pathname]?.(url.searchParams, response);
    });
    server.on('connection', (socket) => {
      sockets.add(socket);
      socket.on('close', () => sockets.delete(socket));
    });
    await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
    const stop = (): Promise<void> =>
      new Promise((resolve) => {
        server.close(() => resolve());
        for (const socket of sockets) socket.destroy();
      });
    const idempotency_header = 'idempotency-key';
    const provider = restProvider(
      {
        name: 'api',
        base_url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
        headers: { authorization: 'Bearer ${env:TOKEN}' },
        tools: [
          {
            id: 'echo',
            url: '/echo{?text,delayMs}',
            idempotency_header,
            input: {
              type: 'object',
              properties: { text: { type: 'string' }, delayMs: { type: 'number' } },
              required: ['text'],
              additionalProperties: false,
            },
          },
          ...['hang', 'fail', 'steps', 'busy'].map((id) => ({ id, url: `/${id}`, idempotency_header, input: nothing })),
        ],
      },
      { env: { TOKEN: SECRET }, allow: ['127.0.0.1'] },
    );
    return {
      provider,
      backend: {
        calls: () =>
          seen.map(({ state, headers }) => ({
            state,
            callKey: textOf(headers['idempotency-key']),
            traceparent: textOf(headers['traceparent']),
            baggage: textOf(headers['baggage']),
          })),
        kill: stop,
        held: () => sockets.size,
        close: async () => {
          if (server.listening) await stop();
        },
      },
      calls: {
        echo: (text, delayMs) => call('echo', { text, delayMs }),
        hang: () => call('hang'),
        fail: () => call('fail'),
        steps: () => call('steps'),
        busy: () => call('busy'),
        invalid: [call('echo', { text: 1 }), call('echo'), call('fail', { more: 1 })],
      },
      secrets: [SECRET],
    };
  },
});

describe('R-12.2 REST conforms:', () => {
  it.each(cases)('$name', ({ run }) => run());
});
