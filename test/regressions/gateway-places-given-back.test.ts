// Was: an upstream fetch or body that ignored its signal kept its turn's place in the gateway. Now: the place comes
// back when the client, a cancel, a drain or the time limit ends the turn.
import { createSpillway } from 'spillway';
import { anthropicGateway, type AnthropicGateway } from 'spillway/gateway/anthropic';
import { serveAnthropicGateway } from 'spillway/gateway/anthropic-server';
import { describe, expect, it } from 'vitest';
import { add, asked, until } from '../gateway/kit.ts';

/** A body that begins, never ends, and heeds nobody: neither its signal nor that it is canceled. */
const deaf = (type: string): Response => {
  let begun = false;
  const body = new ReadableStream<Uint8Array>({
    pull: (controller) => {
      if (begun) return new Promise(() => undefined);
      begun = true;
      return controller.enqueue(new TextEncoder().encode('event: ping\ndata: {"type":"ping"}\n\n'));
    },
    cancel: () => new Promise(() => undefined),
  });
  return new Response(body, { headers: { 'content-type': type } });
};

const streamed = 'text/event-stream';
const WAYS: ReadonlyArray<readonly [string, () => Promise<Response>, boolean]> = [
  ['an answer that does not begin', () => new Promise(() => undefined), true],
  ['a stream that does not end', () => Promise.resolve(deaf(streamed)), true],
  ['an answer that does not end', () => Promise.resolve(deaf('application/json')), false],
];

const gatewayOf = (fetch: () => Promise<Response>, hasTools: boolean, upstreamTimeoutMs = 60_000): AnthropicGateway =>
  anthropicGateway({
    upstream: 'http://upstream',
    fetch,
    upstreamTimeoutMs,
    ...(hasTools ? { tools: [add], spillway: createSpillway({ tools: [add] }) } : {}),
  });

describe.each([
  ['without tools', false],
  ['with tools', true],
])('a fetch that does not heed its signal, %s', (_, hasTools) => {
  const post = (stream: boolean, signal?: AbortSignal): Request =>
    new Request('http://gateway/v1/messages', {
      method: 'POST',
      body: JSON.stringify({ ...asked, stream }),
      ...(signal === undefined ? {} : { signal }),
    });

  it.each(WAYS)('R-13.5 %s: the place is given back when the client goes away', async (_what, fetch, stream) => {
    const gateway = gatewayOf(fetch, hasTools);
    const client = new AbortController();
    const read = gateway.fetch(post(stream, client.signal)).then((response) => response.text());
    read.catch(() => undefined);
    await until(() => gateway.running === 1);
    await new Promise((resolve) => {
      setTimeout(resolve, 20);
    });
    client.abort();
    await until(() => gateway.running === 0);
  });

  it('R-13.5 it is given back when the body is canceled, read or not', async () => {
    const gateway = gatewayOf(() => Promise.resolve(deaf(streamed)), hasTools);
    const unread = await gateway.fetch(post(true));
    const begun = await gateway.fetch(post(true));
    await begun.body?.getReader().read();
    expect(gateway.running).toBe(2);
    await unread.body?.cancel();
    await until(() => gateway.running === 1);
    const { body } = await gateway.fetch(post(true));
    expect(gateway.running).toBe(2);
    await body?.cancel();
    await until(() => gateway.running === 1);
  });

  it.each(WAYS)('R-13.5 %s: it is given back when the gateway is drained', async (_what, fetch, stream) => {
    const gateway = gatewayOf(fetch, hasTools);
    const read = gateway.fetch(post(stream)).then((response) => response.text());
    await until(() => gateway.running === 1);
    await gateway.drain(20);
    expect(gateway.running).toBe(0);
    await read.catch(() => undefined);
  });

  it('R-13.5 it is given back when the upstream does not begin in time', async () => {
    const gateway = gatewayOf(() => new Promise(() => undefined), hasTools, 30);
    expect((await gateway.fetch(post(true))).status).toBe(504);
    expect(gateway.running).toBe(0);
  });

  it.each(WAYS)('R-13.5 %s: the same over the wire', async (_what, fetch, stream) => {
    const gateway = gatewayOf(fetch, hasTools);
    const server = await serveAnthropicGateway(gateway);
    const client = new AbortController();
    const read = globalThis
      .fetch(`${server.url}/v1/messages`, {
        method: 'POST',
        body: JSON.stringify({ ...asked, stream }),
        signal: client.signal,
      })
      .then((response) => response.text());
    read.catch(() => undefined);
    await until(() => gateway.running === 1);
    client.abort();
    await until(() => gateway.running === 0);
    await server.close(0);
  });
});
