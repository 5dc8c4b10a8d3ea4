// Was: an upstream that went on in another protocol kept its client waiting, and a 205 lost its body. Now: the one is a
// 502 at once, and the other keeps it.
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { anthropicGateway } from 'spillway/gateway/anthropic';
import { serveAnthropicGateway, type GatewayServer } from 'spillway/gateway/anthropic-server';
import { afterEach, expect, it } from 'vitest';

let upstream: Server | undefined;
let gateway: GatewayServer | undefined;
afterEach(async () => {
  await gateway?.close(0);
  upstream?.close();
});

/** What a client of the gateway gets when the upstream says this. */
const through = async (said: string): Promise<Response> => {
  const server = createServer((socket: Socket) =>
    socket.on('error', () => undefined).once('data', () => socket.write(said)),
  );
  upstream = server;
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  gateway = await serveAnthropicGateway(
    anthropicGateway({ upstream: `http://127.0.0.1:${(server.address() as AddressInfo).port}` }),
  );
  return fetch(`${gateway.url}/v1/models`, { signal: AbortSignal.timeout(10_000) });
};

it('R-13.5 an upstream that goes on in another protocol could not be reached', async () => {
  expect((await through('HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n')).status).toBe(
    502,
  );
});

it('R-13.1 a 205 that has a body keeps it', async () => {
  const response = await through('HTTP/1.1 205 Reset Content\r\ncontent-length: 5\r\n\r\nhello');
  expect([response.status, response.headers.get('content-length')]).toStrictEqual([205, '5']);
  await response.arrayBuffer();
});
