// Was: a gateway server that closed cut off answers that clients were still reading. Now: clients read their answers to
// the end.
import { get } from 'node:http';
import { expect, it } from 'vitest';
import { anthropicGateway } from 'spillway/gateway/anthropic';
import { serveAnthropicGateway } from 'spillway/gateway/anthropic-server';

it('R-13.1 a server that closes lets clients read their answers to the end', async () => {
  const size = 20_000_000;
  const server = await serveAnthropicGateway(
    anthropicGateway({ upstream: 'http://upstream', fetch: () => Promise.resolve(new Response('x'.repeat(size))) }),
  );
  const got = await new Promise<number>((resolve, reject) => {
    get(`${server.url}/v1/models`, (response) => {
      let read = 0;
      response.once('data', (first: Buffer) => {
        read += first.length;
        response.pause();
        void server.close();
        setTimeout(() => {
          response.on('data', (piece: Buffer) => (read += piece.length));
          response.on('end', () => resolve(read));
          response.on('error', reject);
          response.resume();
        }, 200);
      });
    }).on('error', reject);
  });
  expect(got).toBe(size);
  await server.close();
});
