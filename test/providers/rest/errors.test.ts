import { gzipSync } from 'node:zlib';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { RestProviderOptions, RestToolEntry } from '../../../src/providers/rest.ts';
import { classify } from '../../../src/policy/recovery/classify.ts';
import { createSpillway } from '../../../src/spillway.ts';
import { closedUrl } from '../../errors/scripted-server.ts';
import { json, oneTool, restServer, type OneTool, type RestServer } from './kit.ts';
import { failure } from '../support.ts';

let server: RestServer;
const open: OneTool[] = [];
beforeAll(async () => {
  server = await restServer();
});
afterAll(() => server[Symbol.asyncDispose]());
afterEach(() => Promise.all(open.splice(0).map(({ provider }) => provider.close())));
const make = (tool: Partial<RestToolEntry> = {}, options?: RestProviderOptions, url = server.url): OneTool => {
  const made = oneTool(url, tool, options);
  open.push(made);
  return made;
};

describe('R-1.3 an answered status', () => {
  it.each([
    [400, 'execution_error', 'permanent', false],
    [401, 'execution_error', 'permanent', false],
    [404, 'execution_error', 'permanent', false],
    [408, 'timeout', 'transient', true],
    [422, 'execution_error', 'permanent', false],
    [429, 'execution_error', 'transient', false],
    [500, 'execution_error', 'transient', false],
    [503, 'execution_error', 'transient', false],
    [504, 'timeout', 'transient', true],
  ])('%i is %s, %s', async (status, kind, classification, uncertain) => {
    server.answer(json({ error: { message: 'no' } }, status));
    const error = await failure(make().call());
    expect(error).toMatchObject({ kind, status, executed: true, uncertain });
    expect(classify(error).classification).toBe(classification);
    expect(error.message).toMatch(new RegExp(`^HTTP ${status} \\w`));
  });

  it('with a code that says more: an exhausted quota is not waited for', async () => {
    server.answer(json({ error: { code: 'insufficient_quota', message: 'You exceeded your current quota' } }, 429));
    const error = await failure(make().call());
    expect(error).toMatchObject({ status: 429, code: 'insufficient_quota' });
    expect(classify(error).classification).toBe('permanent');
  });

  it('R-12.4 has a text for the model only where the manifest says which', async () => {
    const secret = 'sk-very-secret-1234';
    server.answer(json({ error: { message: `limit must be below 100, ${secret}` } }, 422));
    expect((await failure(make().call())).safeMessage).toBeUndefined();
    const told = await failure(
      make(
        { response: { error_at: '/error/message' }, headers: { 'x-key': '${env:KEY}' } },
        { env: { KEY: secret } },
      ).call(),
    );
    expect(told).toMatchObject({
      kind: 'execution_error',
      status: 422,
      message: 'HTTP 422 Unprocessable Entity',
      safeMessage: 'limit must be below 100, [redacted]',
    });
    expect((await failure(make({ response: { error_at: 'error.code' } }).call())).safeMessage).toBeUndefined();
  });

  it('R-12.4 R-11.4 shows a model the answer where the manifest or the provider says so, without secrets', async () => {
    const secret = 'sk-very-secret-1234';
    server.answer(json({ errors: [{ field: 'email', message: `is not valid, ${secret}` }] }, 422));
    const shown = async (tool: Partial<RestToolEntry>, options: RestProviderOptions): Promise<string> => {
      const { provider } = make({ headers: { 'x-key': '${env:KEY}' }, ...tool }, { env: { KEY: secret }, ...options });
      const [{ name } = { name: '' }] = provider.tools;
      const { error } = await createSpillway({ providers: [provider] }).execute({ toolName: name, input: {} });
      return error?.modelText ?? '';
    };
    const words = 'HTTP 422 Unprocessable Entity: {"errors":[{"field":"email","message":"is not valid, [redacted]"}]}';
    for (const text of [await shown({ show: 'errors' }, {}), await shown({}, { show: 'errors' })])
      expect(text.endsWith(JSON.stringify(words))).toBe(true);
    expect(await shown({}, {})).toMatch(
      /answered 422: the input was read and not accepted\. Do not try again with the same input: correct it first\.$/,
    );
    expect(() => make({}, { show: 'all' as never })).toThrow(/show must be one of errors/);
  });

  it('that is neither an answer nor a redirect', async () => {
    server.answer((_request, response) => void response.writeHead(304).end());
    expect(await failure(make().call())).toMatchObject({
      kind: 'execution_error',
      classification: 'permanent',
      uncertain: true,
    });
  });

  it('keeps the beginning of its body for the host’s logs, and a megabyte of it costs nothing', async () => {
    server.answer((_request, response) => void response.writeHead(500).end('x'.repeat(1_000_000)));
    expect(await failure(make().call())).toMatchObject({ status: 500 });
    server.answer((_request, response) => void response.writeHead(500).end('what happened'));
    expect((await failure(make().call())).cause).toMatchObject({ body: 'what happened' });
  });
});

describe('R-2.4 Retry-After', () => {
  const now = Date.UTC(2026, 0, 1);
  it.each<[Record<string, string>, number]>([
    [{ 'retry-after': '7' }, 7_000],
    [{ 'retry-after-ms': '30' }, 30],
    [{ 'retry-after': 'Thu, 01 Jan 2026 00:00:09 GMT' }, 9_000],
    [{ 'retry-after': 'soon' }, Number.NaN],
  ])('%o', async (headers, ms) => {
    server.answer(json({}, 503, headers));
    const { liveRuntime } = await import('../../../src/runtime.ts');
    const error = await failure(make({}, { runtime: { ...liveRuntime, wallNow: () => now } }).call());
    expect(error.retryAfterMs).toEqual(ms);
  });
});

describe('R-1.1 executed and uncertain are true to what happened', () => {
  it('connection refused: not executed', async () => {
    expect(await failure(make({ method: 'POST' }, {}, await closedUrl()).call())).toMatchObject({
      kind: 'transport_error',
      code: 'ECONNREFUSED',
      executed: false,
      uncertain: false,
    });
  });

  it('a host that does not exist: not executed', async () => {
    const lookup = (): Promise<never> =>
      Promise.reject(Object.assign(new Error('getaddrinfo ENOTFOUND nowhere.example'), { code: 'ENOTFOUND' }));
    const error = await failure(make({ method: 'POST' }, { lookup }, 'http://nowhere.example').call());
    expect(error).toMatchObject({ kind: 'transport_error', code: 'ENOTFOUND', executed: false, uncertain: false });
    expect(classify(error).classification).toBe('transient');
    expect(
      await failure(make({}, { lookup: () => Promise.resolve([]) }, 'http://nowhere.example').call()),
    ).toMatchObject({ code: 'ENOTFOUND', executed: false });
  });

  it('reset after the request was sent: uncertain', async () => {
    server.answer((request) => request.socket.resetAndDestroy());
    expect(await failure(make({ method: 'POST' }).call())).toMatchObject({
      kind: 'transport_error',
      code: 'ECONNRESET',
      executed: true,
      uncertain: true,
    });
  });

  it('reset in the middle of the answer: uncertain', async () => {
    server.answer((request, response) => {
      response.writeHead(200, { 'content-type': 'application/json', 'content-length': '100' }).write('{"a":');
      setTimeout(() => request.socket.resetAndDestroy(), 30);
    });
    expect(await failure(make({ method: 'POST' }).call())).toMatchObject({
      kind: 'transport_error',
      executed: true,
      uncertain: true,
    });
  });

  it('an answer that is no HTTP: uncertain', async () => {
    server.answer((request) => request.socket.end('what?\r\n\r\n'));
    expect(await failure(make({ method: 'POST' }).call())).toMatchObject({
      kind: 'transport_error',
      executed: true,
      uncertain: true,
    });
  });

  it('a protocol that was not asked for: uncertain, and the process lives', async () => {
    server.answer((request) =>
      request.socket.write('HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n'),
    );
    expect(await failure(make({ method: 'POST' }).call())).toMatchObject({
      kind: 'transport_error',
      executed: true,
      uncertain: true,
    });
  });
});

describe('R-12.2 TLS', () => {
  it('a certificate that is trusted is used, one that is not means that nothing was sent', async () => {
    await using secure = await restServer(json({ secure: true }), true);
    expect(await make({}, { ca: secure.ca }, secure.url).call()).toEqual({ secure: true });
    const error = await failure(make({ method: 'POST' }, {}, secure.url).call());
    expect(error).toMatchObject({
      kind: 'transport_error',
      executed: false,
      uncertain: false,
      classification: 'permanent',
    });
    expect(secure.seen).toHaveLength(1);
  });

  it('plain HTTP spoken to a TLS port, and TLS to a plain one: an error', async () => {
    await using secure = await restServer(json({}), true);
    expect((await failure(make({}, {}, secure.url.replace('https', 'http')).call())).kind).toMatch(
      /transport_error|execution_error/,
    );
    expect(await failure(make({}, {}, server.url.replace('http', 'https')).call())).toMatchObject({
      kind: 'transport_error',
      executed: false,
    });
  });
});

it('R-11.4 no secret is in an error, though the server repeats it', async () => {
  const secret = 'sk-very-secret-1234';
  server.answer((_request, response) => {
    response
      .writeHead(403, `No ${secret}`, { 'content-type': 'application/json', 'content-encoding': 'gzip' })
      .end(gzipSync(JSON.stringify({ error: { code: secret, message: `bad key ${secret}` } })));
  });
  const error = await failure(
    make({ headers: { authorization: 'Bearer ${env:KEY}' } }, { env: { KEY: secret } }).call(),
  );
  expect(error.message).toBe('HTTP 403 No [redacted]');
  expect(JSON.stringify([error, error.stack, error.cause])).not.toContain(secret);
  expect(server.seen.at(-1)?.headers.authorization).toContain(secret);
});
