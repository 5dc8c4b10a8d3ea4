import {
  createServer,
  request as httpRequest,
  type IncomingMessage,
  type RequestListener,
  type Server,
  type ServerResponse,
} from 'node:http';
import { connect, type AddressInfo } from 'node:net';
import { brotliCompressSync, gzipSync } from 'node:zlib';
import { createSpillway } from 'spillway';
import { anthropicGateway, type AnthropicGatewayOptions } from 'spillway/gateway/anthropic';
import { serveAnthropicGateway, type GatewayServer } from 'spillway/gateway/anthropic-server';
import { afterEach, describe, expect, it } from 'vitest';
import { add, asked } from '../kit.ts';
import { streamOf, wholeOf } from '../upstream.ts';

const servers: Server[] = [];
const gateways: GatewayServer[] = [];
afterEach(async () => {
  await Promise.all(gateways.splice(0).map((gateway) => gateway.close(0)));
  for (const server of servers.splice(0)) server.close().closeAllConnections();
});

const listen = async (answer: RequestListener): Promise<string> => {
  const server = createServer(answer);
  servers.push(server);
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
};

/** A gateway with a tool on a port, in front of a server. */
const front = async (answer: RequestListener, options: Partial<AnthropicGatewayOptions> = {}): Promise<string> => {
  const gateway = anthropicGateway({
    upstream: await listen(answer),
    tools: [add],
    spillway: createSpillway({ tools: [add] }),
    ...options,
  });
  const server = await serveAnthropicGateway(gateway);
  gateways.push(server);
  return server.url;
};

const post = (url: string, body: unknown = asked): Promise<Response> =>
  fetch(`${url}/v1/messages`, { method: 'POST', body: JSON.stringify(body) });

const bodyOf = async (incoming: IncomingMessage): Promise<string> => {
  let text = '';
  for await (const piece of incoming) text += String(piece);
  return text;
};

/** What comes over a plain connection. */
const spoken = (url: string, text: string): Promise<string> =>
  new Promise((resolve, reject) => {
    let heard = '';
    const socket = connect(Number(new URL(url).port), '127.0.0.1', () => socket.write(text));
    socket
      .setEncoding('latin1')
      .on('data', (piece: string) => (heard += piece))
      .on('close', () => resolve(heard))
      .on('error', reject);
  });

describe('R-13.1 served on Node', () => {
  it.each([
    ['gzip', gzipSync],
    ['br', brotliCompressSync],
  ])('R-13.1 an upstream that compresses by %s unasked is understood', async (encoding, compress) => {
    const url = await front(
      (_, response) =>
        void response
          .writeHead(200, { 'content-type': 'application/json', 'content-encoding': encoding })
          .end(compress(wholeOf({}))),
    );
    const response = await post(url);
    expect([await response.text(), response.headers.get('content-encoding')]).toStrictEqual([wholeOf({}), null]);
  });

  it('R-13.1 bytes that are not what their encoding says break the answer off', async () => {
    const url = await front(
      (_, response) =>
        void response.writeHead(200, { 'content-type': 'application/json', 'content-encoding': 'gzip' }).end('no gzip'),
    );
    expect((await post(url)).status).toBe(502);
  });

  it('R-13.1 an encoding that is not known passes', async () => {
    const url = await front(
      (_, response) =>
        void response.writeHead(200, { 'content-type': 'text/plain', 'content-encoding': 'x-own' }).end('as it is'),
    );
    const response = await fetch(`${url}/v1/models`);
    expect([await response.text(), response.headers.get('content-encoding')]).toStrictEqual(['as it is', 'x-own']);
  });

  it('R-13.1 headers that are there twice stay so, both ways', async () => {
    let raw: readonly string[] = [];
    const url = await front((incoming, response) => {
      raw = incoming.rawHeaders;
      response
        .writeHead(200, ['set-cookie', 'a=1', 'set-cookie', 'b=2', 'content-type', 'application/json'])
        .end(wholeOf({}));
    });
    const cookies = await new Promise((resolve, reject) => {
      const sent = httpRequest(
        `${url}/v1/messages`,
        { method: 'POST', headers: { 'anthropic-beta': ['a', 'b'], connection: 'x-hop', 'x-hop': '1' } },
        (response) => {
          response.resume();
          resolve(response.headers['set-cookie']);
        },
      );
      sent.on('error', reject).end(JSON.stringify(asked));
    });
    expect(cookies).toStrictEqual(['a=1', 'b=2']);
    expect(raw.flatMap((name, at) => (name === 'anthropic-beta' ? [raw[at + 1]] : []))).toStrictEqual(['a', 'b']);
    expect(raw).not.toContain('x-hop');
  });

  it('R-13.1 methods, answers without a body, redirects and bodies of any length pass', async () => {
    const url = await front((incoming, response) => {
      void bodyOf(incoming).then((text) => {
        const { method, url: target } = incoming;
        if (method === 'HEAD') response.writeHead(200, { 'content-length': '7' }).end();
        else if (method === 'DELETE') response.writeHead(204).end();
        else if (target === '/v1/moved') response.writeHead(302, { location: '/elsewhere' }).end();
        else response.end(`${String(incoming.headers['content-length'])} ${text.length}`);
      });
    });
    const head = await fetch(`${url}/v1/files`, { method: 'HEAD' });
    expect([head.status, head.headers.get('content-length')]).toStrictEqual([200, '7']);
    expect((await fetch(`${url}/v1/files/1`, { method: 'DELETE' })).status).toBe(204);
    expect((await fetch(`${url}/v1/moved`, { redirect: 'manual' })).headers.get('location')).toBe('/elsewhere');
    expect(await (await fetch(`${url}/v1/files`, { method: 'POST', body: 'x'.repeat(3_000_000) })).text()).toBe(
      'undefined 3000000',
    );
    expect(await (await fetch(`${url}/v1/files`, { method: 'POST' })).text()).toBe('0 0');
  });

  it('R-13.1 the head does not wait for the first event', async () => {
    const open: ServerResponse[] = [];
    const url = await front((_, response) => {
      open.push(response);
      response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders();
    });
    const response = await post(url, { ...asked, stream: true });
    expect(response.status).toBe(200);
    open[0]?.end(streamOf({}));
    expect(await response.text()).toBe(streamOf({}));
  });

  it.each([
    ['with a tool', {}],
    ['without', { tools: [] }],
  ])('R-13.1 a client that reads slowly is not read for: %s', async (_, options) => {
    const total = 64_000_000;
    const piece = `event: content_block_delta\ndata: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"${'x'.repeat(100_000)}"}}\n\n`;
    let sent = 0;
    const url = await front((_incoming, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.write(
        'event: content_block_start\ndata: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}\n\n',
      );
      const more = (): void => {
        while (sent < total) {
          sent += piece.length;
          if (!response.write(piece)) return;
        }
        response.end('event: message_stop\ndata: {"type":"message_stop"}\n\n');
      };
      response.on('drain', more);
      more();
    }, options);
    const read = await new Promise<number>((resolve, reject) => {
      const request = httpRequest(`${url}/v1/messages`, { method: 'POST' }, (response) => {
        response.pause();
        setTimeout(() => {
          // What the system's buffers take, and no more.
          const waiting = sent;
          let length = 0;
          response
            .on('data', (bytes: Buffer) => (length += bytes.length))
            .on('end', () => (waiting < total / 2 ? resolve(length) : reject(new Error(`${waiting} were read`))))
            .on('error', reject)
            .resume();
        }, 300);
      });
      request.on('error', reject).end(JSON.stringify({ ...asked, stream: true }));
    });
    expect(read).toBeGreaterThan(total);
  });

  it('R-13.3 who sends more than is read hears why, and is not read on for ever', async () => {
    const url = await front(() => undefined, { limits: { maxBodyBytes: 1_000 } });
    const heard = await spoken(
      url,
      `POST /v1/messages HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n7d0\r\n${'x'.repeat(2_000)}\r\n`,
    );
    expect(heard).toMatch(/^HTTP\/1\.1 413 /);
    expect(heard).toContain('request_too_large');
    expect(await spoken(url, 'GET http:// HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n')).toMatch(
      /^HTTP\/1\.1 400 /,
    );
  });

  it('R-13.1 an upstream that closes in the middle leaves a whole event, then an error', async () => {
    const [first = ''] = streamOf({}).split('event: content_block_start');
    const url = await front((_, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.write(`${first}event: content_bl`, () => setTimeout(() => response.destroy(), 20));
    });
    const text = await (await post(url, { ...asked, stream: true })).text();
    expect(text.slice(0, first.length)).toBe(first);
    expect(text.slice(first.length)).toMatch(/^event: error\ndata: .*\n\n$/);
  });

  it('R-13.1 a fetch of the host’s own is asked, and so is what stands in front of a gateway', async () => {
    let asks = 0;
    const own = anthropicGateway({
      upstream: 'http://upstream',
      fetch: () => {
        asks++;
        return Promise.resolve(new Response('own', { headers: { 'content-type': 'text/plain' } }));
      },
    });
    const before: string[] = [];
    const fronted = {
      ...own,
      fetch: (request: Request): Promise<Response> => {
        before.push(request.method);
        return own.fetch(request);
      },
    };
    for (const gateway of [own, fronted]) {
      const server = await serveAnthropicGateway(gateway);
      gateways.push(server);
      expect(await (await fetch(`${server.url}/v1/models`)).text()).toBe('own');
    }
    expect([asks, before]).toStrictEqual([2, ['GET']]);
  });

  it('R-13.1 a connection is used again', async () => {
    const ports = new Set<number | undefined>();
    const url = await front((incoming, response) => {
      ports.add(incoming.socket.remotePort);
      response.writeHead(200, { 'content-type': 'text/event-stream' }).end(streamOf({}));
    });
    for (let n = 0; n < 5; n++) expect(await (await post(url, { ...asked, stream: true })).text()).toBe(streamOf({}));
    expect(ports.size).toBe(1);
  });
});
