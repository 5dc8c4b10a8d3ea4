// Was: a drain, or a client that had gone, waited for an upload or a backoff that did not end. Now: both end the wait,
// and everyone who drains hears of the end.
import { anthropicGateway, type AnthropicGateway } from 'spillway/gateway/anthropic';
import { afterEach, describe, expect, it } from 'vitest';
import { asked, kit, until, type Kit } from '../gateway/kit.ts';
import { use } from '../gateway/upstream.ts';

let gate: Kit | undefined;
afterEach(async () => {
  await gate?.close();
  gate = undefined;
});

/** A request whose body never ends. */
const trickling = (signal?: AbortSignal): Request => {
  const body = new ReadableStream<Uint8Array>({
    start: (controller) => controller.enqueue(new TextEncoder().encode('{"model":')),
  });
  return new Request('http://gateway/v1/messages', {
    method: 'POST',
    body,
    duplex: 'half',
    ...(signal === undefined ? {} : { signal }),
  } as RequestInit);
};

/** A body that is not read yet takes no place: what is counted is that it was asked. */
const asks = ({ metrics }: AnthropicGateway): boolean => metrics.text().includes('spillway_gateway_requests_total 1');

const refused = {
  status: 429,
  headers: { 'retry-after': '20' },
  body: '{"type":"error","error":{"type":"rate_limit_error","message":"later"}}',
};

describe('what a drain, or a client that went away, waited for', () => {
  it('R-13.1 everyone who drains hears of the end', async () => {
    const gateway = anthropicGateway({
      upstream: 'http://upstream',
      fetch: (_, { signal }) =>
        new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(new Error('aborted')))),
    });
    const answer = gateway.fetch(
      new Request('http://gateway/v1/messages', { method: 'POST', body: JSON.stringify(asked) }),
    );
    await until(() => gateway.running === 1);
    await Promise.all([gateway.drain(20), gateway.drain(20)]);
    expect((await answer).status).toBe(503);
  });

  it('R-13.1 a body that does not end is harvested as well', async () => {
    const gateway = anthropicGateway({ upstream: 'http://upstream' });
    const answer = gateway.fetch(trickling());
    await until(() => asks(gateway));
    expect(gateway.running).toBe(0);
    await gateway.drain(20);
    expect((await answer).status).toBe(503);
    expect(gateway.running).toBe(0);
  });

  it('R-13.5 a client that goes away while it sends is no defect of the gateway', async () => {
    const client = new AbortController();
    const gateway = anthropicGateway({ upstream: 'http://upstream' });
    const answer = gateway.fetch(trickling(client.signal));
    await until(() => asks(gateway));
    expect(gateway.running).toBe(0);
    client.abort();
    await answer;
    expect(gateway.running).toBe(0);
    expect(gateway.metrics.text()).toContain('errors_total{kind="client_gone"} 1');
    expect(gateway.metrics.text()).toContain('errors_total{kind="internal_error"} 0');
  });

  it.each([true, false])('R-13.1 the wait for a retry ends with the client (stream: %s)', async (stream) => {
    gate = await kit();
    gate.upstream.answer((_, place) =>
      place === 0 ? { blocks: [use('toolu_1', 'math_add', { a: 1, b: 2 })], stop: 'tool_use' } : refused,
    );
    const client = new AbortController();
    const answer = fetch(`${gate.url}/v1/messages`, {
      method: 'POST',
      body: JSON.stringify({ ...asked, stream }),
      signal: client.signal,
    }).then((response) => response.text());
    const { upstream, gateway } = gate;
    await until(() => upstream.asked.length === 2);
    client.abort();
    await expect(answer).rejects.toThrow(/abort/i);
    await until(() => gateway.running === 0);
    expect(upstream.asked).toHaveLength(2);
  });

  it('R-13.1 the wait for a retry ends with the grace', async () => {
    gate = await kit();
    gate.upstream.answer((_, place) =>
      place === 0 ? { blocks: [use('toolu_1', 'math_add', { a: 1, b: 2 })], stop: 'tool_use' } : refused,
    );
    const answer = gate.post(asked);
    const { upstream, gateway } = gate;
    await until(() => upstream.asked.length === 2);
    await gateway.drain(20);
    expect((await answer).status).toBe(503);
  });
});
