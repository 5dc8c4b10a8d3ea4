// Was: a page of any port of this machine could ask a proxy that has no token. Now: only a page of its own port can,
// and a body that never ends is not read to its end.
import { request } from 'node:http';
import { expect, it } from 'vitest';
import { serveHttp, type HttpFront } from '../../src/mcp-proxy/http/front.ts';
import { createMcpProxy } from '../../src/mcp-proxy/proxy.ts';
import { liveRuntime } from '../../src/runtime.ts';
import { faults, ledger } from '../mcp-proxy/kit.ts';

const served = async (token?: string): Promise<HttpFront & { readonly port: string; end(): Promise<void> }> => {
  const kept = ledger();
  const proxy = createMcpProxy({ servers: { bank: faults(kept) } });
  const options = { host: '127.0.0.1', port: 0, modern: false, runtime: liveRuntime };
  const front = await serveHttp(proxy, { ...options, ...(token === undefined ? {} : { token }) });
  const end = async (): Promise<void> => {
    await front.close();
    await proxy.close();
    kept[Symbol.dispose]();
  };
  return { ...front, port: new URL(front.url).port, end };
};

const INITIALIZE = JSON.stringify({
  jsonrpc: '2.0',
  id: 0,
  method: 'initialize',
  params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'x', version: '1' } },
});

const statusOf = (url: string, headers: Record<string, string>, body: string = INITIALIZE): Promise<number> =>
  new Promise((resolve, reject) => {
    const type = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' };
    const sent = request(url, { method: 'POST', headers: { ...type, ...headers }, agent: false });
    sent.on('response', (response) => {
      response.resume();
      resolve(response.statusCode ?? 0);
    });
    sent.on('error', reject);
    sent.end(body);
  });

it('R-16.3 who asks without an Origin is no page, and a page of its own is let in', async () => {
  await using front = Object.assign(await served(), { [Symbol.asyncDispose]: () => front.end() });
  const { url, port } = front;
  expect(await statusOf(url, {})).toBe(200);
  expect(await statusOf(url, { origin: `http://localhost:${port}` })).toBe(200);
  expect(await statusOf(url, { origin: `http://127.0.0.1:${port}` })).toBe(200);
});

it.each(['http://localhost:3000', 'http://127.0.0.1', 'https://evil.example', 'null', 'file://'])(
  'R-16.3 a page of %s is not',
  async (origin) => {
    await using front = Object.assign(await served(), { [Symbol.asyncDispose]: () => front.end() });
    expect(await statusOf(front.url, { origin })).toBe(403);
  },
);

it('R-16.3 a token does not let a strange page in, either, and a name that points here is none of ours', async () => {
  await using front = Object.assign(await served('a-token-of-sixteen'), { [Symbol.asyncDispose]: () => front.end() });
  const { url } = front;
  const authorization = 'Bearer a-token-of-sixteen';
  expect(await statusOf(url, { authorization })).toBe(200);
  expect(await statusOf(url, { authorization, origin: 'http://localhost:3000' })).toBe(403);
  expect(await statusOf(url, {})).toBe(401);
});

it('R-16.3 a body that is too large is refused, also one that does not say how large it is', async () => {
  await using front = Object.assign(await served(), { [Symbol.asyncDispose]: () => front.end() });
  const large = 'x'.repeat(5 * 1024 * 1024);
  expect(await statusOf(front.url, { 'transfer-encoding': 'chunked' }, large).catch(() => 413)).toBe(413);
  expect(await statusOf(front.url, {}, '{')).toBe(400);
});
