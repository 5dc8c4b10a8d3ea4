import type { IncomingMessage, ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { providerConformance, type BackendCall, type ConformanceCall } from 'spillway/testing';
import { describe, it } from 'vitest';
import { readRestManifest, restProvider } from '../../../src/providers/rest.ts';
import { createSpillway } from '../../../src/spillway.ts';
import { json, restServer } from './kit.ts';

const SECRET = 'secret-of-the-harness';
const PIECE = 'x'.repeat(300_000);

const manifest = (url: string): string => `
name: box
base_url: ${url}/v1
headers: { authorization: "Bearer \${env:TOKEN}" }
tools:
  - id: echo
    method: POST
    url: /echo{?delayMs}
    idempotency_header: Idempotency-Key
    input: { type: object, properties: { text: { type: string }, delayMs: { type: number } }, required: [text], additionalProperties: false }
    response: { at: text }
  - { id: hang, method: POST, url: /hang }
  - { id: fail, url: /fail }
  - { id: busy, url: /busy }
  - { id: steps, url: /steps }
`;

interface Seen extends BackendCall {
  state: BackendCall['state'];
}

const answer = async (request: IncomingMessage, response: ServerResponse, body: string): Promise<void> => {
  const { pathname, searchParams } = new URL(request.url ?? '', 'http://box');
  if (pathname === '/v1/echo') {
    await sleep(Number(searchParams.get('delayMs')));
    json(JSON.parse(body))(request, response);
  } else if (pathname === '/v1/steps') {
    response.writeHead(200, { 'content-length': String(3 * PIECE.length) });
    for (let piece = 0; piece < 3; piece++) {
      response.write(PIECE);
      await sleep(20);
    }
    response.end();
  } else if (pathname === '/v1/busy') {
    json({}, 429, { 'retry-after': '7' })(request, response);
  } else if (pathname === '/v1/fail') {
    json({ error: { message: `it broke with ${SECRET}` } }, 500)(request, response);
  }
};

const call = (name: string, input = {}): ConformanceCall => ({ toolName: `box.${name}`, input });

const cases = providerConformance({
  createSpillway,
  // A 404 may be the tool's or its argument's: nobody can say.
  lacks: ['gone'],
  make: async () => {
    const seen: Seen[] = [];
    const server = await restServer((request, response) => {
      const { 'idempotency-key': callKey, traceparent, baggage } = request.headers;
      const one: Seen = {
        state: 'running',
        callKey: callKey as string | undefined,
        traceparent: traceparent as string | undefined,
        baggage: baggage as string | undefined,
      };
      seen.push(one);
      response.on('close', () => (one.state = response.writableFinished ? 'answered' : 'aborted'));
      void answer(request, response, server.seen.at(-1)?.body ?? '');
    });
    const close = async (): Promise<void> => {
      await server[Symbol.asyncDispose]();
    };
    return {
      provider: restProvider(readRestManifest(manifest(server.url)), {
        env: { TOKEN: SECRET },
        allow: [`127.0.0.1:${server.port}`],
      }),
      backend: { calls: () => seen, kill: close, held: () => server.connections.open, close },
      calls: {
        echo: (text, delayMs) => call('echo', { text, delayMs }),
        hang: () => call('hang'),
        fail: () => call('fail'),
        busy: () => call('busy'),
        steps: () => call('steps'),
        invalid: [call('echo', { text: 1 }), call('echo'), call('echo', { text: 'x', more: true })],
      },
      secrets: [SECRET],
    };
  },
});

describe('R-12.2 REST conforms:', () => {
  it.each(cases)('$name', ({ run }) => run());
});
