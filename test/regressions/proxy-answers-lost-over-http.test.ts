// Was: over HTTP whatever went wrong with an answer counted as never sent: paid five times, and told "did not run".
// Now: only what proves that nothing was sent says so, and the rest is uncertain.
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { ServerResponse } from 'node:http';
import { expect, it } from 'vitest';
import { proxied, textOf } from '../mcp-proxy/kit.ts';

const JSON_TYPE = { 'content-type': 'application/json' };

/** What the server answers to a payment that it has made. */
const FATES: Readonly<Record<string, (response: ServerResponse) => void>> = {
  'a reset': (response) => void response.socket?.destroy(),
  'a page': (response) => void response.writeHead(200, { 'content-type': 'text/html' }).end('<p>paid</p>'),
  'no type': (response) => void response.writeHead(200).end(),
  'half of a JSON text': (response) => void response.writeHead(200, JSON_TYPE).end('{"jsonrpc":'),
  'an error of its own': (response) =>
    void response
      .writeHead(400, JSON_TYPE)
      .end('{"jsonrpc":"2.0","error":{"code":-32000,"message":"card declined"},"id":null}'),
};

const answers: Readonly<Record<string, (params: Readonly<Record<string, unknown>>) => unknown>> = {
  initialize: ({ protocolVersion }) => ({
    protocolVersion,
    capabilities: { tools: {} },
    serverInfo: { name: 'bank', version: '1' },
  }),
  'tools/list': () => ({ tools: [{ name: 'pay', inputSchema: { type: 'object' } }] }),
};

interface Bank extends AsyncDisposable {
  readonly url: string;
  readonly paid: () => number;
}

const bankWith = async (fate: (response: ServerResponse) => void): Promise<Bank> => {
  let paid = 0;
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      if (request.method !== 'POST') return response.writeHead(405).end();
      const {
        id,
        method,
        params = {},
      } = JSON.parse(Buffer.concat(chunks).toString()) as {
        readonly id?: number;
        readonly method: string;
        readonly params?: Readonly<Record<string, unknown>>;
      };
      if (id === undefined) return response.writeHead(202).end();
      if (method === 'tools/call') {
        paid++;
        return fate(response);
      }
      const result = answers[method]?.(params) ?? {};
      return response
        .writeHead(200, { ...JSON_TYPE, 'mcp-session-id': 'one' })
        .end(JSON.stringify({ jsonrpc: '2.0', id, result }));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}/mcp`,
    paid: () => paid,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
};

it.for(Object.entries(FATES))('R-2.5 a payment that is answered by %s is made once', async ([name, fate]) => {
  await using bank = await bankWith(fate);
  await using it = await proxied({ bank: { place: { url: bank.url } } });
  const pay = () => it.call('pay', {}, { 'spillway/idempotencyKey': 'order-1' }).catch((error: unknown) => error);
  const [first, second] = [await pay(), await pay()];
  expect(bank.paid()).toBe(1);
  if (name === 'an error of its own') return;
  for (const told of [first, second]) expect(textOf(told as never)).toContain('may have');
});
