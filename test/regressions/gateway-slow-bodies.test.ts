// Was: as many connections as the gateway has places, each with one byte of a body, kept everybody out. Now: a body has
// a deadline and takes no place.
import { connect, type Socket } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { asked, kit, until, type Kit } from '../gateway/kit.ts';

let gate: Kit | undefined;
const sockets: Socket[] = [];
afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy();
  await gate?.close();
});

interface Slow {
  readonly heard: () => string;
  readonly closed: Promise<void>;
}

/** A connection that says it will send a body, and sends one byte of it. */
const slowly = async (url: string, path = '/v1/messages'): Promise<Slow> => {
  let heard = '';
  const { port } = new URL(url);
  const socket = connect(Number(port), '127.0.0.1');
  sockets.push(socket);
  const closed = new Promise<void>((resolve) => {
    socket.on('close', () => resolve()).on('error', () => undefined);
  });
  socket.setEncoding('latin1').on('data', (text: string) => (heard += text));
  await new Promise<void>((resolve) => {
    socket.write(`POST ${path} HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\n{`, () => resolve());
  });
  return { heard: () => heard, closed };
};

/** Requests that the gateway has begun to answer. */
const requests = (of: Kit): number =>
  Number(/^spillway_gateway_requests_total (\d+)$/m.exec(of.gateway.metrics.text())?.[1] ?? 0);

describe('R-13.6 bodies that come slowly', () => {
  it.each(['/v1/messages', '/v1/messages/count_tokens'])('R-13.6 keep nobody out: %s', async (path) => {
    gate = await kit({ limits: { maxTurns: 5 } });
    gate.upstream.answer(() => ({}));
    const { url } = gate;
    await Promise.all(Array.from({ length: 5 }, () => slowly(url, path)));
    await until(() => gate !== undefined && requests(gate) === 5);
    expect(gate.gateway.running).toBe(0);
    expect((await gate.post(asked)).status).toBe(200);
  });

  it('R-13.6 are told when their time is over, and their connection ends', async () => {
    gate = await kit({ limits: { bodyTimeoutMs: 100 } });
    const slow = await slowly(gate.url);
    await slow.closed;
    expect(slow.heard()).toMatch(/^HTTP\/1\.1 408 /);
    expect(slow.heard()).toContain('"type":"timeout_error","message":"The body did not come whole within 0.1s');
    expect(gate.log).toMatchObject([{ level: 'warn', fields: { kind: 'body_timeout' } }]);
  });

  it('R-13.6 are not waited for when the gateway is shut down', async () => {
    gate = await kit();
    const slow = await slowly(gate.url);
    await until(() => gate !== undefined && requests(gate) === 1);
    await gate.drain(60_000);
    await slow.closed;
    expect(slow.heard()).toMatch(/^HTTP\/1\.1 503 /);
  });

  it('R-2.9 bodyTimeoutMs is checked', async () => {
    await expect(kit({ limits: { bodyTimeoutMs: 0 } })).rejects.toThrow(
      /limits.bodyTimeoutMs must be a duration above 0/,
    );
  });
});
