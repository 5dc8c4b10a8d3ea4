// Was: over HTTP whatever a server wrote was kept in memory for a client that does not read. Now: the server waits, as
// it does over stdio, and a stream that nobody reads for long is cut.
import { once } from 'node:events';
import { request, type IncomingMessage } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { virtualRuntime } from 'spillway/testing';
import { expect, it } from 'vitest';
import { serveHttp } from '../../src/mcp-proxy/http/front.ts';
import { watchedStream } from '../../src/mcp-proxy/http/stream.ts';
import { createMcpProxy } from '../../src/mcp-proxy/proxy.ts';
import { liveRuntime } from '../../src/runtime.ts';
import type { Runtime } from '../../src/contract/runtime.ts';
import { NODE, ledger } from '../mcp-proxy/kit.ts';

/** A machine may be busy. */

/** Half a minute without a read can pass beside busy loops while this very test would read. */
const patient: Runtime = { ...liveRuntime, after: (ms) => liveRuntime.after(10 * ms) };

const COUNT = 20_000;

/** Says a lot during a call, as fast as it is read, and notes how much it has said. */
const TALKS = `
  const { writeFileSync } = require('node:fs');
  const { once } = require('node:events');
  const write = async (message) => {
    const flows = process.stdout.write(JSON.stringify({ jsonrpc: '2.0', ...message }) + '\\n');
    if (!flows) await once(process.stdout, 'drain');
  };
  const talk = async (id) => {
    for (let n = 0; n < ${COUNT}; n++) {
      if (n % 500 === 0) writeFileSync(process.argv[1], String(n));
      await write({ method: 'notifications/message', params: { level: 'info', data: n + ' ' + 'y'.repeat(1000) } });
    }
    writeFileSync(process.argv[1], '${COUNT}');
    await write({ id, result: { content: [] } });
  };
  require('node:readline').createInterface({ input: process.stdin }).on('line', (line) => {
    const { id, method, params } = JSON.parse(line);
    if (method === 'tools/call') return void talk(id);
    const server = { capabilities: { tools: {}, logging: {} }, serverInfo: { name: 'talks', version: '1' } };
    if (method === 'initialize')
      write({ id, result: { protocolVersion: params.protocolVersion, ...server } });
    else if (id !== undefined) write({ id, result: { tools: [{ name: 'talk', inputSchema: { type: 'object' } }] } });
  });`;

const posted = async (url: string, message: object, session?: string): Promise<IncomingMessage> => {
  const sent = request(url, {
    method: 'POST',
    agent: false,
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      ...(session === undefined ? {} : { 'mcp-session-id': session }),
    },
  });
  sent.end(JSON.stringify({ jsonrpc: '2.0', ...message }));
  const [response] = (await once(sent, 'response')) as [IncomingMessage];
  return response;
};

const textOf = async (response: IncomingMessage): Promise<string> => {
  let text = '';
  for await (const chunk of response.setEncoding('utf8')) text += String(chunk);
  return text;
};

it(
  'R-16.3 a server waits for a client that does not read, and then says all the rest',
  { timeout: 180_000 },
  async () => {
    using kept = ledger();
    const proxy = createMcpProxy({ servers: { talks: { place: { command: NODE, args: ['-e', TALKS, kept.path] } } } });
    const front = await serveHttp(proxy, { host: '127.0.0.1', port: 0, modern: false, runtime: patient });
    const params = { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'x', version: '1' } };
    const begun = await posted(front.url, { id: 0, method: 'initialize', params });
    const session = String(begun.headers['mcp-session-id']);
    await textOf(begun);
    await textOf(await posted(front.url, { method: 'notifications/initialized' }, session));
    const call = await posted(front.url, { id: 1, method: 'tools/call', params: { name: 'talk' } }, session);
    const said = (): number => Number(kept.lines()[0] ?? 0);
    for (let before = -1; before !== said() || before === 0; await sleep(500)) before = said();
    expect(said()).toBeLessThan(COUNT / 2);
    const told = [...(await textOf(call)).matchAll(/"data":"(\d+) y/g)].map(([, n]) => Number(n));
    expect(told).toEqual(Array.from({ length: COUNT }, (_, n) => n));
    await front.close();
    await proxy.close();
  },
);

it('R-16.3 a stream that is left unread is cut after half a minute, and what waits for it goes on', async () => {
  const runtime = virtualRuntime();
  const told: (boolean | 'ended')[] = [];
  let canceled = 0;
  const chunks = new ReadableStream<Uint8Array>({
    start: (controller) => {
      for (let n = 0; n < 3; n++) controller.enqueue(new Uint8Array(2 ** 19));
    },
    cancel: () => void canceled++,
  });
  const watched = watchedStream(new Response(chunks), {
    runtime,
    full: (isFull) => told.push(isFull),
    ended: () => told.push('ended'),
  });
  await expect.poll(() => told).toEqual([true]);
  await runtime.advance(29_999);
  expect(told).toEqual([true]);
  await runtime.advance(1);
  expect(told).toEqual([true, false, 'ended']);
  await expect(watched.text()).rejects.toThrow('the client does not read');
  await expect.poll(() => canceled).toBe(1);
});
