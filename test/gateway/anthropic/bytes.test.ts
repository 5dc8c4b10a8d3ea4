import { request as httpRequest } from 'node:http';
import fc from 'fast-check';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { edited, elementsOf, membersOf, nestsDeeper } from '../../../src/gateway/wire/json.ts';
import { SseSplitter } from '../../../src/gateway/wire/sse.ts';
import { add, asked, kit, mine, type Kit } from '../kit.ts';
import { said, streamOf, use, wholeOf } from '../upstream.ts';

const utf8 = new TextEncoder();

describe('R-13.1 bytes that pass', () => {
  it('R-13.1 events joined are the stream, however it is cut', () => {
    const piece = fc.constantFrom(
      'event: ping\n',
      'data: {"type":"ping"}\n',
      '\n',
      '\r\n',
      '\r',
      ': hi\n',
      'data:x',
      'ä',
      '\n\n',
      '\r\n\r\n',
      '\r\r',
    );
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 40 }), fc.array(fc.nat(60), { maxLength: 10 }), (pieces, cuts) => {
        const bytes = utf8.encode(pieces.join(''));
        const splitter = new SseSplitter();
        const places = [0, ...cuts.map((cut) => Math.min(cut, bytes.length)).toSorted((a, b) => a - b), bytes.length];
        const events = places.slice(1).flatMap((to, at) => splitter.push(bytes.subarray(places[at], to)));
        const rest = splitter.rest();
        const all = rest === undefined ? events : [...events, rest];
        expect(Buffer.concat(all.map(({ raw }) => raw))).toStrictEqual(Buffer.from(bytes));
        const whole = new SseSplitter();
        const once = whole.push(bytes);
        const end = whole.rest();
        expect(all.map(({ data }) => data)).toStrictEqual(
          [...once, ...(end === undefined ? [] : [end])].map(({ data }) => data),
        );
      }),
      { numRuns: 500, verbose: 1 },
    );
  });

  it('R-13.1 members and elements are found where a parser finds them', () => {
    fc.assert(
      fc.property(
        fc.dictionary(fc.string(), fc.jsonValue()),
        fc.array(fc.jsonValue()),
        fc.constantFrom(undefined, 1, '\t'),
        (object, list, space) => {
          const text = ` ${JSON.stringify(object, undefined, space)}`;
          const members = membersOf(text, 1);
          expect([...members.keys()].toSorted()).toStrictEqual(Object.keys(object).toSorted());
          for (const [name, { from, to }] of members)
            expect(JSON.parse(text.slice(from, to))).toStrictEqual(JSON.parse(JSON.stringify(object[name])));
          const listText = JSON.stringify(list, undefined, space);
          expect(
            elementsOf(listText, 0).map(({ from, to }) => JSON.parse(listText.slice(from, to)) as unknown),
          ).toStrictEqual(JSON.parse(JSON.stringify(list)));
          expect(edited(listText, [])).toBe(listText);
        },
      ),
      { numRuns: 300, verbose: 1 },
    );
  });

  it('R-13.3 depth is counted outside of strings', () => {
    expect(nestsDeeper('[[]]', 2)).toBe(false);
    expect(nestsDeeper('[[[]]]', 2)).toBe(true);
    expect(nestsDeeper('["[[[[\\"[[[", {"a\\\\":[]}]', 3)).toBe(false);
  });
});

describe.each([
  ['no tools', { tools: [] }],
  ['tools that are not used', { tools: [add] }],
])('R-13.1 with %s', (_, options) => {
  let gate: Kit;
  beforeAll(async () => {
    gate = await kit(options);
  });
  afterAll(() => gate.close());

  it.each([
    ['text', { blocks: [said('Hello ✓'), { type: 'hologram', depth: 3 }] }],
    [
      'a call of the client’s own tool',
      { blocks: [said('Let me'), use('toolu_1', 'mine', { big: 1 })], stop: 'tool_use' },
    ],
    [
      'an answer that pauses',
      { blocks: [{ type: 'server_tool_use', id: 'srv_1', name: 'web_search', input: {} }], stop: 'pause_turn' },
    ],
    ['an answer that was cut off', { blocks: [said('Once')], stop: 'max_tokens' }],
  ])('R-13.1 what the upstream says is what the client gets, to the byte: %s', async (_what, reply) => {
    gate.upstream.answer(() => reply);
    const body = { ...asked, tools: [mine] };
    expect(await (await gate.post({ ...body, stream: true })).text()).toBe(streamOf(reply));
    expect(await (await gate.post(body)).text()).toBe(wholeOf(reply));
  });

  it('R-13.1 numbers, spaces, unknown fields and order are not touched', async () => {
    const odd =
      '{"id":"msg_1","x":12345678901234567890,  "content":[{"type":"text","text":"\\u0041","n":1.0}],"content_filter":{"a":[1e400]},"stop_reason":"end_turn"}\n';
    gate.upstream.answer(() => ({ status: 200, body: odd }));
    const rest =
      ' "messages" : [{"content":"go","role":"user"}] ,"beta_field":12345678901234567890, "model":"m","max_tokens":1e1 }';
    const response = await gate.post(`{${rest}`);
    expect(await response.text()).toBe(odd);
    const { text = '', body } = gate.upstream.asked[0] ?? {};
    expect(text).toBe(options.tools.length === 0 ? `{${rest}` : `{"tools":${JSON.stringify(body?.tools)},${rest}`);
  });

  it('R-13.1 headers and betas pass both ways, those of the connection do not', async () => {
    gate.upstream.answer(() => ({
      headers: { 'anthropic-ratelimit-requests-remaining': '7', 'keep-alive': 'timeout=9' },
    }));
    const response = await gate.post(asked, {
      'anthropic-beta': 'a-1,b-2',
      authorization: 'Bearer tok',
      'x-custom': 'y',
    });
    expect(gate.upstream.asked[0]?.headers).toMatchObject({
      'anthropic-beta': 'a-1,b-2',
      authorization: 'Bearer tok',
      'x-custom': 'y',
      'anthropic-version': '2023-06-01',
      'x-api-key': 'test-key',
      'accept-encoding': 'identity',
    });
    expect(response.headers.get('request-id')).toBe('req_upstream');
    expect(response.headers.get('anthropic-ratelimit-requests-remaining')).toBe('7');
    expect(response.headers.get('keep-alive')).not.toBe('timeout=9');
  });

  it('R-13.1 other paths pass, with their method, query and body', async () => {
    gate.upstream.answer(({ method }) => ({
      status: 201,
      body: Buffer.from([0, 255, 10]),
      headers: { 'content-type': 'application/octet-stream', 'x-method': method },
    }));
    const response = await fetch(`${gate.url}/v1/files?limit=2&a=%2F`, { method: 'POST', body: 'not json' });
    expect([response.status, response.headers.get('x-method')]).toStrictEqual([201, 'POST']);
    expect(Buffer.from(await response.arrayBuffer())).toStrictEqual(Buffer.from([0, 255, 10]));
    expect(gate.upstream.asked[0]).toMatchObject({ url: '/v1/files?limit=2&a=%2F', text: 'not json' });
    expect((await fetch(`${gate.url}/v1/models`)).status).toBe(201);
  });

  it('R-13.1 count_tokens counts the gateway’s tools too', async () => {
    gate.upstream.answer(() => ({ body: '{"input_tokens":7}' }));
    const { max_tokens: _max, ...body } = asked;
    expect(await gate.client.messages.countTokens(body)).toMatchObject({ input_tokens: 7 });
    expect(gate.upstream.asked[0]?.body.tools?.length ?? 0).toBe(options.tools.length);
    const refused = await fetch(`${gate.url}/v1/messages/count_tokens`, { method: 'POST', body: '{"model":"m"}' });
    expect(refused.status).toBe(400);
  });

  it('R-13.5 an upstream that cannot be reached: 502 api_error', async () => {
    const lost = await kit(options);
    await lost.upstream.close();
    const response = await lost.post(asked);
    expect(response.status).toBe(502);
    expect(await response.json()).toMatchObject({ type: 'error', error: { type: 'api_error' } });
    await lost.close().catch(() => undefined);
  });

  it('R-13.5 an upstream that does not begin: 504 timeout_error', async () => {
    const late = await kit({ ...options, upstreamTimeoutMs: 50 });
    late.upstream.answer(() => ({ delayMs: 400 }));
    const response = await late.post(asked);
    expect(response.status).toBe(504);
    expect(await response.json()).toMatchObject({ error: { type: 'timeout_error' } });
    await late.close();
  });
});

describe('R-13.1 a client that goes away', () => {
  let gate: Kit | undefined;
  afterEach(() => gate?.close());

  it('R-13.1 without reading its body leaves nothing behind', async () => {
    gate = await kit({ tools: [] });
    const { url, upstream, gateway } = gate;
    upstream.answer(() => ({ everyMs: 50 }));
    await new Promise<void>((resolve) => {
      const request = httpRequest(
        `${url}/v1/messages`,
        { method: 'POST', headers: { 'content-type': 'application/json' } },
        (response) => {
          response.once('data', () => {
            request.destroy();
            resolve();
          });
        },
      );
      request.on('error', () => undefined);
      request.end(JSON.stringify({ ...asked, stream: true }));
    });
    const endMs = performance.now() + 5_000;
    while ((gateway.running > 0 || upstream.dropped === 0) && performance.now() < endMs) {
      await new Promise((resolve) => {
        setTimeout(resolve, 10);
      });
    }
    expect([gateway.running, upstream.dropped]).toStrictEqual([0, 1]);
  });
});
