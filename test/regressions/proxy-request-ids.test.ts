// Was: two requests of one id both ran, a payment twice, and over HTTP the second took the first one's stream. Now: the
// second is refused while the first is open, and the first is answered.
import { expect, it } from 'vitest';
import { serveHttp } from '../../src/mcp-proxy/http/front.ts';
import { createMcpProxy } from '../../src/mcp-proxy/proxy.ts';
import { liveRuntime } from '../../src/runtime.ts';
import { faults, ledger, proxied } from '../mcp-proxy/kit.ts';

/** A machine may be busy. */

const PAY = { jsonrpc: '2.0', id: 'twice', method: 'tools/call', params: { name: 'pay', arguments: { amount: 4 } } };
const OPENING = { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'x', version: '1' } };

it('R-16.3 over stdio the second is refused, and the id is free again once it is answered', async () => {
  using kept = ledger();
  await using it = await proxied({ bank: faults(kept) });
  const answers = (): unknown[] =>
    it.seen.filter(({ from, message }) => from === 'server' && 'id' in message && message.id === PAY.id);
  Object.assign(it.client, { onerror: () => undefined });
  await it.raw(PAY as never);
  await it.raw(PAY as never);
  await expect.poll(answers).toHaveLength(2);
  expect(JSON.stringify(answers()[0])).toContain('"code":-32600');
  expect(JSON.stringify(answers()[1])).toContain('paid 4');
  expect(kept.count('pay 4')).toBe(1);
  await it.raw(PAY as never);
  await expect.poll(answers).toHaveLength(3);
  expect(kept.count('pay 4')).toBe(2);
});

it('R-16.3 over HTTP, too, alone and in one batch', async () => {
  using kept = ledger();
  const proxy = createMcpProxy({ servers: { bank: faults(kept) } });
  const front = await serveHttp(proxy, { host: '127.0.0.1', port: 0, modern: false, runtime: liveRuntime });
  const post = async (body: object, session?: string): Promise<Response> =>
    fetch(front.url, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
        ...(session === undefined ? {} : { 'mcp-session-id': session }),
      },
      body: JSON.stringify(body),
    });
  const begun = await post({ jsonrpc: '2.0', id: 0, method: 'initialize', params: OPENING });
  await begun.text();
  const session = begun.headers.get('mcp-session-id') ?? '';
  await (await post({ jsonrpc: '2.0', method: 'notifications/initialized' }, session)).text();
  const hanging = { ...PAY, params: { name: 'pay', arguments: { amount: 5, then: 'hang' } } };
  await post(hanging, session);
  await expect.poll(() => kept.count('pay 5')).toBe(1);
  const second = await post(PAY, session);
  expect([second.status, await second.text()]).toEqual([400, expect.stringContaining('-32600')]);
  const cancel = { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: PAY.id } };
  await (await post(cancel, session)).text();
  expect((await post([PAY, PAY], session)).status).toBe(400);
  expect(kept.count('pay 4')).toBe(0);
  expect(await (await post(PAY, session)).text()).toContain('paid 4');
  expect([kept.count('pay 4'), kept.count('pay 5')]).toEqual([1, 1]);
  await front.close();
  await proxy.close();
});
