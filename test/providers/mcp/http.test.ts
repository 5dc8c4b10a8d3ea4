import { describe, expect, it } from 'vitest';
import { mcpHttpProvider, type McpHttpOptions } from '../../../src/providers/mcp-http.ts';
import { createSpillway } from '../../../src/spillway.ts';
import { httpKit, isCall } from './http-kit.ts';
import type { HttpServerOptions } from './http-server.ts';
import { context, failure, run, until } from '../support.ts';

const kit = httpKit();
const { provide, serve } = kit;

describe('a call over HTTP', () => {
  it.each<[string, HttpServerOptions]>([
    ['streams', {}],
    ['streams that can be taken up again', { resumable: true }],
    ['JSON', { json: true }],
  ])('R-12.2 is answered in %s, many at a time', async (_name, options) => {
    await serve(options);
    const provider = await provide();
    expect(provider.tools.map(({ name }) => name)).toEqual(['box.echo', 'box.hang', 'box.steps', 'box.fail']);
    const texts = Array.from({ length: 50 }, (_, index) => `text ${index}`);
    expect(
      await Promise.all(texts.map((text, index) => run(provider, 'box.echo', { text, delayMs: (index * 7) % 40 }))),
    ).toEqual(texts);
  });

  it('R-8.3 carries the key and the trace context of its call, and the headers of its server', async () => {
    const seen: unknown[] = [];
    kit.server.intercept = ({ headers }) => {
      seen.push(headers['authorization']);
      return false;
    };
    const provider = await provide({ headers: { authorization: 'Bearer secret-1' } });
    const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
    await run(
      provider,
      'box.echo',
      { text: 'x' },
      context(undefined, { callKey: 'k-1', fence: 7, traceparent, baggage: { user: 'a b' } }),
    );
    expect(kit.server.calls[0]?.meta).toMatchObject({
      'spillway/callKey': 'k-1',
      'spillway/fence': 7,
      traceparent,
      baggage: 'user=a%20b',
    });
    expect(new Set(seen)).toEqual(new Set(['Bearer secret-1']));
  });

  it('tells its progress', async () => {
    const provider = await provide();
    const ctx = context();
    expect(await run(provider, 'box.steps', { count: 3, everyMs: 20 }, ctx)).toBe('done');
    expect(ctx.reports).toEqual([1, 2, 3].map((progress) => ({ progress, total: 3 })));
  });

  it('aborted: canceled at once and at the server, its stream let go, its siblings left alone', async () => {
    const provider = await provide();
    const controller = new AbortController();
    const sibling = run(provider, 'box.echo', { text: 'sibling', delayMs: 1_500 });
    const work = failure(run(provider, 'box.hang', {}, context(controller.signal)));
    await until(() => kit.server.calls.length === 2);
    const startedAtMs = performance.now();
    controller.abort();
    expect(await work).toMatchObject({ kind: 'canceled', executed: true, uncertain: true });
    expect(performance.now() - startedAtMs).toBeLessThan(10_000);
    await until(() => kit.server.calls.some(({ tool, state }) => tool === 'hang' && state === 'aborted'));
    expect(await sibling).toBe('sibling');
    // What is left is the stream that belongs to no request.
    await until(() => [...kit.server.answering.values()].every(({ method }) => method === 'GET'));
  });

  it('R-4.1 a tool that hangs: a timeout of the layer, and the server hears of it', async () => {
    const provider = await provide();
    const spillway = createSpillway({ providers: [provider], defaults: { timeoutMs: 100, retry: { maxAttempts: 1 } } });
    expect(await spillway.execute({ toolName: 'box.hang', input: {} })).toMatchObject({
      status: 'timeout',
      error: { code: 'timeout' },
    });
    await until(() => kit.server.calls[0]?.state === 'aborted');
    await spillway.close();
  });

  it('invalid input is not sent; a tool that throws is an execution_error', async () => {
    const provider = await provide();
    const before = kit.server.requests.length;
    expect(await failure(run(provider, 'box.echo', { text: 1 }))).toMatchObject({
      kind: 'invalid_parameters',
      executed: false,
      message: expect.stringContaining('text: must be string') as string,
    });
    expect(kit.server.requests.length).toBe(before);
    expect(await failure(run(provider, 'box.fail', {}))).toMatchObject({ kind: 'execution_error', executed: true });
  });
});

describe('a status in answer to a call', () => {
  it.each<[number, Record<string, string>, object]>([
    [401, {}, { kind: 'execution_error', status: 401, executed: false, uncertain: false, classification: 'permanent' }],
    [403, {}, { kind: 'execution_error', status: 403, executed: false, uncertain: false, classification: 'permanent' }],
    [400, {}, { kind: 'execution_error', status: 400, executed: false, uncertain: false, classification: 'permanent' }],
    [413, {}, { kind: 'execution_error', status: 413, executed: false, uncertain: false, classification: 'permanent' }],
    [
      429,
      { 'retry-after': '7' },
      {
        kind: 'execution_error',
        status: 429,
        executed: false,
        uncertain: false,
        classification: 'transient',
        retryAfterMs: 7_000,
      },
    ],
    [429, { 'retry-after-ms': '250' }, { kind: 'execution_error', status: 429, executed: false, retryAfterMs: 250 }],
    [408, {}, { kind: 'timeout', status: 408, executed: true, uncertain: true }],
    [500, {}, { kind: 'execution_error', status: 500, executed: true, uncertain: true, classification: 'transient' }],
    [502, {}, { kind: 'execution_error', status: 502, executed: true, uncertain: true, classification: 'transient' }],
    [
      503,
      { 'retry-after': '2' },
      {
        kind: 'execution_error',
        status: 503,
        executed: true,
        uncertain: true,
        classification: 'transient',
        retryAfterMs: 2_000,
      },
    ],
    [504, {}, { kind: 'timeout', status: 504, executed: true, uncertain: true }],
    [
      307,
      { location: 'http://127.0.0.2:9/elsewhere?secret=1' },
      { kind: 'execution_error', executed: false, uncertain: false, classification: 'permanent' },
    ],
  ])('R-12.1 %i %j', async (status, headers, expected) => {
    const provider = await provide();
    kit.server.intercept = (_request, response, body) => {
      if (!isCall(body, 'echo')) return false;
      response.writeHead(status, headers).end('the body with secret-1');
      return true;
    };
    const error = await failure(run(provider, 'box.echo', { text: 'x' }));
    expect(error).toMatchObject(expected);
    expect(`${error.message} ${String(error.cause)}`).not.toContain('secret');
    kit.server.intercept = undefined;
    expect(await run(provider, 'box.echo', { text: 'again' })).toBe('again');
    expect(kit.server.sessions.size).toBe(1);
  });

  it.each<[number, object]>([
    [401, { kind: 'transport_error', status: 401, executed: false }],
    [404, { kind: 'transport_error', status: 404, executed: false }],
    [503, { kind: 'transport_error', status: 503, executed: false }],
  ])('%i while connecting: not connected, nothing ran', async (status, expected) => {
    kit.server.intercept = (_request, response) => {
      response.writeHead(status).end();
      return true;
    };
    expect(await failure(provide())).toMatchObject(expected);
  });
});

describe('a session that the server has forgotten', () => {
  it.each<[string, number, string]>([
    ['404', 404, ''],
    [
      '400 with the code of the SDK’s examples',
      400,
      '{"jsonrpc":"2.0","error":{"code":-32000,"message":"Bad Request: No valid session ID provided"},"id":null}',
    ],
  ])('%s: not executed, transient; the next call starts a new one', async (_name, status, body) => {
    const provider = await provide();
    const [first] = kit.server.sessions.keys();
    kit.server.sessions.clear();
    kit.server.intercept = ({ headers }, response) => {
      if (headers['mcp-session-id'] !== first) return false;
      response.writeHead(status, { 'content-type': 'application/json' }).end(body);
      return true;
    };
    const error = await failure(run(provider, 'box.echo', { text: 'x' }));
    expect(error).toMatchObject({ kind: 'transport_error', executed: false, uncertain: false });
    expect(error.classification).not.toBe('permanent');
    await until(() => kit.server.answering.size === 0);
    expect(await run(provider, 'box.echo', { text: 'new' })).toBe('new');
    expect(kit.server.sessions.size).toBe(1);
    // A session that is gone is not ended.
    expect(kit.server.requests.filter((request) => request.startsWith('DELETE'))).toEqual([]);
  });

  it('under the layer: the caller sees one successful call', async () => {
    const provider = await provide();
    kit.server.sessions.clear();
    const spillway = createSpillway({ providers: [provider], defaults: { effects: 'mutating' } });
    expect(await spillway.execute({ toolName: 'box.echo', input: { text: 'x' } })).toMatchObject({
      status: 'success',
      attempts: 2,
      output: { content: 'x' },
    });
    expect(kit.server.calls).toHaveLength(1);
    await spillway.close();
  });
});

describe('options', () => {
  it.each<[string, Partial<McpHttpOptions>, RegExp]>([
    ['no URL', { url: 'localhost' }, /^url must be an absolute http: or https: URL$/],
    ['another scheme', { url: 'file:///etc/passwd' }, /^url must be an absolute http: or https: URL$/],
    ['a password', { url: 'http://me:secret-1@localhost' }, /^url must not hold a user name or a password/],
    [
      'a header that is none',
      { headers: { 'x-a': 'secret-1\nx' } },
      /^headers must be names and texts that HTTP allows; "x-a" is not$/,
    ],
    ['a misspelt one', { timeout: 1 } as never, /^mcpHttpProvider has no option "timeout"/],
    ['a wrong timeout', { connectTimeoutMs: 0 }, /^connectTimeoutMs must be/],
    ['no name', { name: '' }, /^name must be/],
  ])('%s: a RangeError without secrets', async (_name, options, says) => {
    const refused = mcpHttpProvider({ name: 'x', url: 'http://127.0.0.1:9', ...options });
    await expect(refused).rejects.toThrow(RangeError);
    await expect(refused).rejects.toThrow(says);
  });
});
