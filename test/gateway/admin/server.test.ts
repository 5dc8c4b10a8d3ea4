import { once } from 'node:events';
import { Agent, createServer, request } from 'node:http';
import { connect, type AddressInfo } from 'node:net';
import { networkInterfaces } from 'node:os';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { Spillway } from 'spillway';
import type { AdminRefusal } from 'spillway/gateway/admin';
import { serveAdmin, type AdminServer, type AdminServerOptions } from 'spillway/gateway/admin-server';
import { PATH, TOKEN, layerOf, raw, read, statusOf, withToken } from './kit.ts';

let spillway: Spillway;
let admin: AdminServer;
const refusals: AdminRefusal[] = [];
const onRefused = (refusal: AdminRefusal): void => void refusals.push(refusal);
const BODY = '{"action":"force_open","all":true}';

/** A request as it goes over the wire; a header given as `undefined` is left out. */
const bytes = (
  target: string,
  headers: Record<string, string | undefined> = {},
  method = 'POST',
  body = BODY,
): string => {
  const all = {
    Host: new URL(admin.url).host,
    Authorization: `Bearer ${TOKEN}`,
    'Content-Type': 'application/json',
    'Content-Length': String(body.length),
    Connection: 'close',
    ...headers,
  };
  const lines = Object.entries(all).flatMap(([name, value]) => (value === undefined ? [] : [`${name}: ${value}`]));
  return `${method} ${target} HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n${body}`;
};
const untouched = (): void => expect(spillway.breakers.list()).toEqual([]);

beforeEach(async () => {
  spillway = layerOf();
  refusals.length = 0;
  admin = await serveAdmin(spillway, { token: TOKEN, onRefused });
});
afterEach(async () => {
  await admin.close();
  await spillway.close();
});

describe('R-11.3 the server', () => {
  it('R-11.3 answers at a loopback address, takes orders, and leaves the process its own Request and Response', async () => {
    const globals = [Request, Response];
    expect(new URL(admin.url).hostname).toBe('127.0.0.1');
    const got = await read(await fetch(admin.url + PATH, { headers: withToken }));
    expect([got.status, got.body['mode']]).toEqual([200, 'on']);
    const answer = await raw(admin.url, bytes(PATH));
    expect(statusOf(answer)).toBe(200);
    expect(spillway.breakers.get('search').state.type).toBe('forced_open');
    expect(refusals).toEqual([]);
    expect([Request, Response]).toEqual(globals);
  });

  it.each<[why: string, reason: string, status: number, sent: () => string]>([
    ['no token', 'token', 401, () => bytes(PATH, { Authorization: undefined })],
    ['a wrong token', 'token', 401, () => bytes(PATH, { Authorization: `Bearer ${TOKEN}.` })],
    ['another Host', 'host', 403, () => bytes(PATH, { Host: 'rebound.example' })],
    ['another Host of a port below 1000', 'host', 403, () => bytes(PATH, { Host: 'rebound.example:80' })],
    ['no Host', 'malformed', 400, () => bytes(PATH, { Host: undefined })],
    ['a strange expectation', 'malformed', 417, () => bytes(PATH, { Expect: 'miracles' })],
    ['a tunnel', 'malformed', 0, () => bytes('127.0.0.1:22', {}, 'CONNECT', '')],
    [
      'an upgrade',
      'token',
      401,
      () => bytes(PATH, { Authorization: undefined, Connection: 'upgrade', Upgrade: 'h2c' }),
    ],
    ['another Origin', 'origin', 403, () => bytes(PATH, { Origin: 'https://evil.example' })],
    ['another method', 'method', 405, () => bytes(PATH, {}, 'PUT')],
    ['TRACE', 'method', 405, () => bytes(PATH, {}, 'TRACE')],
    ['the whole address of another host', 'malformed', 400, () => bytes(`http://rebound.example${PATH}`)],
    ['a path by way of another', 'malformed', 400, () => bytes(`/metrics/..${PATH}`)],
    ['the same, encoded', 'malformed', 400, () => bytes(`/metrics/%2e%2e${PATH}`)],
    ['a path with a backslash', 'malformed', 400, () => bytes(PATH.replaceAll('/', '\\'))],
    ['a path with two slashes', 'path', 404, () => bytes(`/${PATH}`)],
    ['a path with an encoded slash', 'path', 404, () => bytes('/debug%2ftool-reliability')],
    ['a path with a null byte', 'path', 404, () => bytes(`${PATH}%00`)],
    ['an unknown tool', 'unknown_tool', 404, () => bytes(PATH, {}, 'POST', '{"action":"force_open","tool":"nothing"}')],
    ['an unknown action', 'unknown_action', 400, () => bytes(PATH, {}, 'POST', '{"action":"open","all":true}')],
    ['what is no HTTP', 'malformed', 400, () => 'hello\r\n\r\n'],
    ['headers without end', 'malformed', 431, () => `GET ${PATH} HTTP/1.1\r\nX: ${'x'.repeat(40_000)}`],
    ['a body of two lengths', 'malformed', 400, () => bytes(PATH, { 'Transfer-Encoding': 'chunked' })],
  ])('R-11.3 refuses %s: %s, logs it, changes nothing', async (_why, reason, status, sent) => {
    const answer = await raw(admin.url, sent());
    expect(statusOf(answer)).toBe(status);
    expect(answer.toLowerCase()).not.toContain('access-control');
    await vi.waitFor(() => expect(refusals).toMatchObject([{ reason }]), { timeout: 60_000 });
    expect(refusals[0]?.remoteAddress).toBe('127.0.0.1');
    expect(JSON.stringify(refusals) + answer).not.toContain(TOKEN);
    untouched();
  });

  it('R-11.3 of two Hosts the second does not count for the first', async () => {
    const { host } = new URL(admin.url);
    expect(statusOf(await raw(admin.url, bytes(PATH, { Host: `rebound.example\r\nHost: ${host}` })))).toBe(403);
    untouched();
  });

  it.each([
    ['told', { 'Content-Length': '100000000' }],
    ['in chunks', { 'Content-Length': undefined, 'Transfer-Encoding': 'chunked' }],
  ])('R-11.3 a body of 100 MB, %s, is refused at once and not kept', async (_how, headers) => {
    const before = process.memoryUsage().rss;
    const { hostname, port } = new URL(admin.url);
    const socket = connect({ host: hostname, port: Number(port) });
    socket.on('error', () => undefined);
    const received: string[] = [];
    socket.setEncoding('latin1').on('data', (text: string) => received.push(text));
    socket.write(bytes(PATH, { Connection: 'keep-alive', ...headers }, 'POST', ''));
    const piece = `10000\r\n${' '.repeat(65_536)}\r\n`;
    let sent = 0;
    const startedAtMs = performance.now();
    while (sent < 100_000_000 && !socket.destroyed && received.length === 0) {
      sent += piece.length;
      if (!socket.write(piece))
        await Promise.race([once(socket, 'drain').catch(() => undefined), once(socket, 'close'), once(socket, 'data')]);
    }
    await vi.waitFor(() => expect(statusOf(received.join(''))).toBe(413), { timeout: 60_000 });
    expect(sent).toBeLessThan(50_000_000);
    expect(performance.now() - startedAtMs).toBeLessThan(10_000);
    expect(process.memoryUsage().rss - before).toBeLessThan(100_000_000);
    expect(refusals).toMatchObject([{ reason: 'body_too_large', status: 413 }]);
    untouched();
    // The connection is ended, whatever is sent on.
    if (!socket.closed)
      await Promise.race([
        once(socket, 'close'),
        (async () => {
          while (!socket.destroyed) await new Promise((resolve) => socket.write(piece, resolve));
        })(),
      ]);
    socket.destroy();
  });

  it('R-11.3 a caller who leaves in the middle changes nothing, and prints nothing', async () => {
    const printed = (['log', 'info', 'warn', 'error'] as const).map((name) =>
      vi.spyOn(console, name).mockImplementation(() => undefined),
    );
    const { hostname, port } = new URL(admin.url);
    for (const part of [bytes(PATH).slice(0, 40), bytes(PATH).slice(0, -5), bytes(PATH, {}, 'GET', '')]) {
      const socket = connect({ host: hostname, port: Number(port) });
      await once(socket, 'connect');
      socket.write(part);
      await new Promise((resolve) => setTimeout(resolve, 30));
      socket.resetAndDestroy();
    }
    await new Promise((resolve) => setTimeout(resolve, 100));
    expect(statusOf(await raw(admin.url, bytes(PATH, {}, 'GET', '')))).toBe(200);
    for (const spy of printed) {
      expect(spy).not.toHaveBeenCalled();
      spy.mockRestore();
    }
    untouched();
  });

  it('R-11.3 headers that do not come are waited for a few seconds only', async () => {
    const startedAtMs = performance.now();
    expect(statusOf(await raw(admin.url, `GET ${PATH} HTTP/1.1\r\nHost: 127.0.0.1\r\n`))).toBe(408);
    expect(performance.now() - startedAtMs).toBeLessThan(20_000);
    expect(refusals).toMatchObject([{ reason: 'malformed' }]);
  });
});

describe('R-11.3 where it listens', () => {
  it.each(['0.0.0.0', '::', '0', '192.0.2.1', '::ffff:10.0.0.1', 'ops.internal'])(
    'R-11.3 at %s without a token of your own it does not start',
    async (host) => {
      await expect(serveAdmin(spillway, { host })).rejects.toThrow(RangeError);
      await expect(serveAdmin(spillway, { host })).rejects.toThrow(
        'can be reached by others, and so needs a token of your own; give token, or listen at 127.0.0.1',
      );
    },
  );

  it('R-11.3 at every address with a token it starts, and still asks for a Host that was allowed', async () => {
    const wide = await serveAdmin(spillway, {
      host: '0.0.0.0',
      token: TOKEN,
      allowedHosts: ['ops.internal'],
      onRefused,
    });
    try {
      const url = `http://127.0.0.1:${new URL(wide.url).port}`;
      expect(statusOf(await raw(url, bytes(PATH, { Host: 'ops.internal' }, 'GET', '')))).toBe(200);
      expect(statusOf(await raw(url, bytes(PATH, { Host: '203.0.113.7' }, 'GET', '')))).toBe(403);
    } finally {
      await wide.close();
    }
  });

  const loopbacks = Object.values(networkInterfaces()).flatMap((addresses = []) =>
    addresses.filter(({ internal }) => internal).map(({ address }) => address),
  );
  it.each(['localhost', ...loopbacks])('R-11.3 at %s it needs none', async (host) => {
    const server = await serveAdmin(spillway, { host });
    const got = await fetch(server.url + PATH, { headers: { authorization: `Bearer ${server.token}` } });
    expect([got.status, server.token.length]).toEqual([200, 64]);
    await got.text();
    await server.close();
  });

  it.each<[options: AdminServerOptions, message: RegExp]>([
    [{ host: '' }, /^host must be a name or an address without a port, not ""/],
    [{ host: '127.0.0.1/8' }, /^host must be a name/],
    [{ port: 65_536 }, /^port must be an integer from 0 to 65535, not 65536/],
    [{ token: '' }, /^token must be 16 to 512/],
    [{ closeGraceMs: -1 }, /^closeGraceMs must be/],
    [{ hots: 'x' } as never, /^serveAdmin has no option "hots"/],
  ])('R-11.3 refuses the options %j', async (options, message) => {
    await expect(serveAdmin(spillway, options)).rejects.toThrow(message);
  });

  it('R-11.3 a port that is taken is told, with the remedy', async () => {
    const other = createServer().listen(0, '127.0.0.1');
    await once(other, 'listening');
    const { port } = other.address() as AddressInfo;
    await expect(serveAdmin(spillway, { port })).rejects.toThrow(
      `the admin server cannot start: port ${port} of 127.0.0.1 is in use; give another one, or 0 for a free one`,
    );
    await new Promise((resolve) => other.close(resolve));
  });

  it('R-11.3 close is prompt: idle and half-sent connections do not hold it, and it can be asked for twice', async () => {
    const server = await serveAdmin(spillway, { token: TOKEN });
    const { hostname, port } = new URL(server.url);
    const agent = new Agent({ keepAlive: true });
    for (let i = 0; i < 2; i++) {
      const sent = request({ agent, hostname, port, path: PATH, headers: withToken }).end();
      const [answer] = (await once(sent, 'response')) as [NodeJS.ReadableStream];
      await once(answer.resume(), 'end');
    }
    const half = connect({ host: hostname, port: Number(port) });
    half.on('error', () => undefined).write(`GET ${PATH} HTTP/1.1\r\nHost: lo`);
    await new Promise((resolve) => setTimeout(resolve, 50));
    const startedAtMs = performance.now();
    await Promise.all([server.close(), server.close()]);
    expect(performance.now() - startedAtMs).toBeLessThan(15_000);
    await expect(fetch(server.url + PATH)).rejects.toThrow('fetch failed');
    agent.destroy();
    half.destroy();
  });
});
