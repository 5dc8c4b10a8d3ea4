// Was: a REST error whose body stopped or trickled lost its status and its Retry-After. Now: both are told, whatever
// the body does.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { oneTool, restServer, type RestServer } from '../providers/rest/kit.ts';
import { failure } from '../providers/support.ts';

let server: RestServer;
beforeAll(async () => {
  server = await restServer();
});
afterAll(() => server[Symbol.asyncDispose]());

describe('an answer that is no success', () => {
  it.each([
    ['stops in its body', (write: (text: string) => unknown) => void write('{"er')],
    [
      'trickles for ever',
      (write: (text: string) => unknown) => {
        const timer = setInterval(() => void write('x'), 20);
        return () => clearInterval(timer);
      },
    ],
  ])('R-2.4 its status and Retry-After are told, though it %s', async (_how, send) => {
    server.answer((_request, response) => {
      response.writeHead(429, { 'retry-after': '7', 'content-type': 'application/json' });
      const stop = send((text) => response.write(text));
      response.on('close', () => stop?.());
    });
    await using api = oneTool(server.url, { method: 'POST' });
    const begunMs = performance.now();
    const error = await failure(api.call({}));
    expect(error).toMatchObject({ kind: 'execution_error', status: 429, retryAfterMs: 7_000, uncertain: false });
    expect(performance.now() - begunMs).toBeLessThan(10_000);
  });

  it.each([600, 999])('R-1.3 HTTP %s is named for what it is', async (status) => {
    server.answer((_request, response) => void response.writeHead(status, 'Denied').end());
    await using api = oneTool(server.url);
    expect(await failure(api.call({}))).toMatchObject({
      kind: 'execution_error',
      classification: 'permanent',
      message: `HTTP ${status} Denied: neither an answer nor a redirect`,
    });
  });
});
