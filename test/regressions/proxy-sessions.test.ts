// Was: the end of a stream that was cut while it was read counted twice, a handshake under way had no place, an answer
// that cannot be written was none, and a server that says nothing held all others up.
// Now: each is counted once and answered.
import { setTimeout as sleep } from 'node:timers/promises';
import { request } from 'node:http';
import { expect, it } from 'vitest';
import { serveHttp } from '../../src/mcp-proxy/http/front.ts';
import { createMcpProxy } from '../../src/mcp-proxy/proxy.ts';
import { watched } from '../../src/providers/mcp/http-answer.ts';
import { liveRuntime } from '../../src/runtime.ts';
import { NODE, faults, ledger, proxied, textOf } from '../mcp-proxy/kit.ts';

it('R-16.3 a stream that is canceled while it is read ends once', async () => {
  let ended = 0;
  const open = new Response(new ReadableStream({ pull: () => new Promise(() => undefined) }));
  const reader = watched(open, () => ended++).body?.getReader();
  const reading = reader?.read();
  await reader?.cancel();
  await reading;
  expect(ended).toBe(1);
});

it('R-16.3 a handshake under way has its place: of 90 at once no more than 64 are served', async () => {
  using kept = ledger();
  const proxy = createMcpProxy({ servers: { bank: faults(kept) } });
  const front = await serveHttp(proxy, { host: '127.0.0.1', port: 0, modern: false, runtime: liveRuntime });
  const params = { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'x', version: '1' } };
  const body = JSON.stringify({ jsonrpc: '2.0', id: 0, method: 'initialize', params });
  const headers = {
    'content-type': 'application/json',
    accept: 'application/json, text/event-stream',
    'content-length': Buffer.byteLength(body),
  };
  const asked = Array.from({ length: 90 }, () => {
    const sent = request(front.url, { method: 'POST', headers, agent: false });
    const status = new Promise<number>((resolve, reject) => {
      sent.on('response', (response) => {
        response.resume();
        resolve(response.statusCode ?? 0);
      });
      sent.on('error', reject);
    });
    sent.write(body.slice(0, 10));
    return { sent, status };
  });
  // All of them are there before the first has said all that it has to say.
  await sleep(300);
  for (const { sent } of asked) sent.end(body.slice(10));
  const statuses = await Promise.all(asked.map(({ status }) => status));
  expect(statuses.filter((status) => status === 200)).toHaveLength(64);
  expect(statuses.filter((status) => status === 503)).toHaveLength(26);
  await front.close();
  await proxy.close();
});

it('R-16.7 a server that starts and says nothing is left out', async () => {
  using kept = ledger();
  const mute = { place: { command: NODE, args: ['-e', 'setInterval(() => {}, 1000)'] }, startTimeoutMs: 500 };
  await using it = await proxied({ mute, bank: faults(kept) });
  expect(textOf(await it.call('bank.pay', { amount: 4 }))).toBe('paid 4');
  expect(it.notes.some((line) => line.startsWith('mute: its tools are left out'))).toBe(true);
});

it('R-16.3 an answer that cannot be written is refused, and not lost', async () => {
  const deep = `
    require('node:readline').createInterface({ input: process.stdin }).on('line', (line) => {
      const { id, method, params } = JSON.parse(line);
      if (id === undefined) return;
      const serverInfo = { name: 'd', version: '1' };
      const result = method === 'initialize'
        ? { protocolVersion: params.protocolVersion, capabilities: { resources: {} }, serverInfo }
        : {};
      const text = method === 'resources/read' ? '['.repeat(100000) + ']'.repeat(100000) : JSON.stringify(result);
      const whole = method === 'resources/read' ? '{"contents":[],"deep":' + text + '}' : text;
      process.stdout.write('{"jsonrpc":"2.0","id":' + JSON.stringify(id) + ',"result":' + whole + '}\\n');
    });`;
  const proxy = createMcpProxy({ servers: { deep: { place: { command: NODE, args: ['-e', deep] } } } });
  const front = await serveHttp(proxy, { host: '127.0.0.1', port: 0, modern: false, runtime: liveRuntime });
  const post = async (message: object, session?: string): Promise<Response> =>
    fetch(front.url, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
        ...(session === undefined ? {} : { 'mcp-session-id': session }),
      },
      body: JSON.stringify({ jsonrpc: '2.0', ...message }),
    });
  const params = { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'x', version: '1' } };
  const begun = await post({ id: 0, method: 'initialize', params });
  await begun.text();
  const session = begun.headers.get('mcp-session-id') ?? '';
  await (await post({ method: 'notifications/initialized' }, session)).text();
  const read = await post({ id: 1, method: 'resources/read', params: { uri: 'a:b' } }, session);
  expect(await read.text()).toContain('"code":-32603');
  await front.close();
  await proxy.close();
});
