// Was: an MCP server that did what it was asked was asked again, since its answer could not be read. Now: such a call
// is uncertain, and is made once.
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createSpillway, type FailureNotification } from 'spillway';
import { mcpHttpProvider } from 'spillway/providers/mcp-http';
import { afterEach, describe, expect, it } from 'vitest';
import { mcpThrown } from '../../src/errors/mcp.ts';

let server: Server;
afterEach(() => {
  server.closeAllConnections();
  server.close();
});

/** A server with one tool that pays; how often it was asked to. */
async function paying(
  contentType: string,
  answer: string,
): Promise<{ readonly url: string; readonly asked: () => number }> {
  let asked = 0;
  const results: Readonly<Record<string, unknown>> = {
    initialize: {
      protocolVersion: '2025-06-18',
      capabilities: { tools: {} },
      serverInfo: { name: 'bank', version: '1' },
    },
    'tools/list': { tools: [{ name: 'pay', inputSchema: { type: 'object' }, annotations: { destructiveHint: true } }] },
  };
  server = createServer((request, response) => {
    let body = '';
    request.on('data', (piece: Buffer) => (body += piece.toString()));
    request.on('end', () => {
      if (request.method !== 'POST') return void response.writeHead(405).end();
      const { id, method } = JSON.parse(body) as { readonly id?: number; readonly method: string };
      if (id === undefined) return void response.writeHead(202).end();
      if (method in results)
        return void response
          .writeHead(200, { 'content-type': 'application/json' })
          .end(JSON.stringify({ jsonrpc: '2.0', id, result: results[method] }));
      asked++;
      response.writeHead(200, { 'content-type': contentType }).end(answer);
    });
  });
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`, asked: () => asked };
}

describe('R-2.5 an MCP server that did what it was asked, and whose answer cannot be read', () => {
  it.each([
    ['application/json', '{"jsonrpc":'],
    ['text/html', '<h1>Thank you</h1>'],
  ])('is not asked to do it again: %s', async (contentType, answer) => {
    const bank = await paying(contentType, answer);
    const spillway = createSpillway({ providers: [await mcpHttpProvider({ name: 'bank', url: bank.url })] });
    const failures: FailureNotification[] = [];
    spillway.failures$.subscribe((failure) => failures.push(failure));
    const { status } = await spillway.execute({ toolName: 'bank.pay', input: {} });
    await spillway.close();
    expect(bank.asked()).toBe(1);
    expect(status).toBe('retriable_error');
    expect(failures[0]?.error).toMatchObject({ kind: 'execution_error', executed: true, uncertain: true });
  });

  it('SDK 2 has a code for it', () => {
    const thrown = Object.assign(new Error('Unexpected content type: text/html'), {
      code: 'CLIENT_HTTP_UNEXPECTED_CONTENT',
    });
    expect(mcpThrown(thrown)).toMatchObject({ kind: 'execution_error', executed: true, uncertain: true });
  });
});
