import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { mcpConnection, mcpProvider, type McpProvider } from '../../../src/providers/mcp.ts';
import { createSpillway } from '../../../src/spillway.ts';
import { httpServer, type HttpServer } from './http-server.ts';
import { context, failure, run, until } from '../support.ts';

describe('the client of SDK 2 over HTTP', () => {
  let server: HttpServer;
  let provider: McpProvider;
  beforeEach(async () => {
    server = await httpServer();
    provider = await mcpProvider({
      name: 'box',
      connect: async () => {
        const client = new Client({ name: 'test', version: '0' });
        await client.connect(new StreamableHTTPClientTransport(new URL(server.url)));
        return mcpConnection(client);
      },
    });
  });
  afterEach(async () => {
    await provider.close();
    await server[Symbol.asyncDispose]();
  });

  it('R-12.2 answers, tells progress, carries the key of its call', async () => {
    const ctx = context(undefined, { callKey: 'k-1' });
    expect(await run(provider, 'box.steps', { count: 2, everyMs: 20 }, ctx)).toBe('done');
    expect(ctx.reports).toEqual([
      { progress: 1, total: 2 },
      { progress: 2, total: 2 },
    ]);
    expect(server.calls[0]?.meta).toMatchObject({ 'spillway/callKey': 'k-1' });
  });

  it('an abort reaches the server and leaves siblings alone', async () => {
    const controller = new AbortController();
    const sibling = run(provider, 'box.echo', { text: 'sibling', delayMs: 300 });
    const work = failure(run(provider, 'box.hang', {}, context(controller.signal)));
    await until(() => server.calls.length === 2);
    controller.abort();
    expect(await work).toMatchObject({ kind: 'canceled', executed: true, uncertain: true });
    await until(() => server.calls.some(({ state }) => state === 'aborted'));
    expect(await sibling).toBe('sibling');
  });

  it.each([401, 429, 503])('a %i in answer to a call has its status', async (status) => {
    server.intercept = (_request, response, body) => {
      if (!body.includes('tools/call')) return false;
      response.writeHead(status, { 'retry-after': '7' }).end();
      return true;
    };
    expect(await failure(run(provider, 'box.echo', { text: 'x' }))).toMatchObject({ kind: 'execution_error', status });
  });

  it('a session that the server has forgotten: not executed; the next call starts a new one', async () => {
    server.sessions.clear();
    expect(await failure(run(provider, 'box.echo', { text: 'x' }))).toMatchObject({
      kind: 'transport_error',
      executed: false,
      uncertain: false,
    });
    expect(server.calls).toEqual([]);
    await until(() => server.answering.size === 0);
    expect(await run(provider, 'box.echo', { text: 'new' })).toBe('new');
  });

  it('a server that goes away in mid-call: this client does not tell, so the layer’s timeout ends the call', async () => {
    const spillway = createSpillway({ providers: [provider], defaults: { timeoutMs: 500, retry: { maxAttempts: 1 } } });
    const work = spillway.execute({ toolName: 'box.hang', input: {} });
    await until(() => server.calls.length === 1);
    await server.stop();
    expect(await work).toMatchObject({ status: 'timeout', error: { code: 'timeout' } });
  });
});
