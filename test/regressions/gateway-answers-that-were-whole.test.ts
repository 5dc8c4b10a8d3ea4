// Was: a connection that broke behind message_stop cost the end of an answer, and an upstream's own error was told
// twice. Now: a whole answer stays whole, and an error is told once.
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createSpillway, tool } from 'spillway';
import { anthropicGateway } from 'spillway/gateway/anthropic';
import { serveAnthropicGateway, type GatewayServer } from 'spillway/gateway/anthropic-server';
import { afterEach, expect, it } from 'vitest';

let upstream: Server | undefined;
let gateway: GatewayServer | undefined;
afterEach(async () => {
  await gateway?.close(0);
  upstream?.close();
});

const events = (...list: ReadonlyArray<Readonly<Record<string, unknown>>>): string =>
  list.map((data) => `event: ${String(data['type'])}\ndata: ${JSON.stringify(data)}\n\n`).join('');
const START = {
  type: 'message_start',
  message: {
    id: 'msg_1',
    type: 'message',
    role: 'assistant',
    content: [],
    usage: { input_tokens: 1, output_tokens: 1 },
  },
};
const DELTA = {
  type: 'message_delta',
  delta: { stop_reason: 'end_turn', stop_sequence: null },
  usage: { output_tokens: 2 },
};

/** What a client reads when the upstream says this, and its connection breaks once the gateway has it. */
const broken = async (said: string): Promise<string> => {
  const server = createServer((request, response) => {
    request.resume();
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    response.write(said);
    setTimeout(() => response.socket?.resetAndDestroy(), 100);
  });
  upstream = server;
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  const echo = tool({ name: 'echo', execute: (input: unknown) => input });
  gateway = await serveAnthropicGateway(
    anthropicGateway({
      upstream: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
      tools: [echo],
      spillway: createSpillway({ tools: [echo] }),
    }),
  );
  const body = JSON.stringify({
    model: 'm',
    max_tokens: 9,
    stream: true,
    messages: [{ role: 'user', content: 'Hello' }],
  });
  return (
    await fetch(`${gateway.url}/v1/messages`, {
      method: 'POST',
      body,
      headers: { 'content-type': 'application/json' },
      signal: AbortSignal.timeout(10_000),
    })
  ).text();
};
const typesOf = (text: string): string[] => [...text.matchAll(/^event: (.+)$/gm)].map(([, type]) => type ?? '');

it('R-13.2 an answer that was whole when its connection broke is whole', async () => {
  expect(typesOf(await broken(events(START, DELTA, { type: 'message_stop' })))).toEqual([
    'message_start',
    'message_delta',
    'message_stop',
  ]);
});

it('R-13.2 an upstream that said itself that it failed is told once', async () => {
  expect(
    typesOf(await broken(events(START, { type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } }))),
  ).toEqual(['message_start', 'error']);
});

it('R-13.2 an answer that was not whole ends with an error', async () => {
  expect(typesOf(await broken(events(START, DELTA)))).toEqual(['message_start', 'error']);
});
