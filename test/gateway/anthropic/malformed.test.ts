import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { gatewayErrorTable, malformedTable } from 'spillway/gateway/anthropic';
import { asked, kit, mine, type Kit } from '../kit.ts';
import { MALFORMED } from '../malformed.ts';
import { said, use } from '../upstream.ts';

describe.each([
  ['with tools', {}],
  ['without tools', { tools: [] }],
])('R-13.3 malformed requests, %s', (_, options) => {
  let gate: Kit;
  beforeAll(async () => {
    gate = await kit({ ...options, limits: { maxBodyBytes: 2_000_000 } });
  });
  afterAll(() => gate.close());

  it.each(MALFORMED)(
    'R-13.3 $what: $status, naming $says, and the upstream is not asked',
    async ({ body, status, type, says }) => {
      gate.upstream.answer(() => ({}));
      const response = await gate.post(body);
      expect(response.status).toBe(status);
      const answer = (await response.json()) as {
        readonly type: string;
        readonly error: { readonly type: string; readonly message: string };
        readonly request_id: string;
      };
      expect(answer).toMatchObject({ type: 'error', error: { type } });
      expect(answer.error.message).toContain(says);
      expect(answer.request_id).toBe(response.headers.get('request-id'));
      expect(gate.upstream.asked).toHaveLength(0);
      expect(gate.gateway.running).toBe(0);
    },
  );

  it('R-13.3 a body over the limit: 413, whether or not it says its length', async () => {
    gate.upstream.answer(() => ({}));
    const large = JSON.stringify({ ...asked, system: 'x'.repeat(2_000_000) });
    const init = { method: 'POST', headers: { 'content-type': 'application/json' } };
    const pieces = new ReadableStream({
      start: (controller) => {
        controller.enqueue(new TextEncoder().encode(large));
        controller.close();
      },
    });
    for (const sent of [
      fetch(`${gate.url}/v1/messages`, { ...init, body: large }),
      fetch(`${gate.url}/v1/messages`, { ...init, body: pieces, duplex: 'half' } as RequestInit),
    ]) {
      const response = await sent;
      expect(response.status).toBe(413);
      expect(await response.json()).toMatchObject({ error: { type: 'request_too_large' } });
    }
    expect(gate.upstream.asked).toHaveLength(0);
  });

  it('R-13.3 a compressed body: 400 that says how to send it', async () => {
    const response = await gate.post(asked, { 'content-encoding': 'gzip' });
    expect(response.status).toBe(400);
    expect(await response.text()).toContain('content-encoding');
  });

  it('R-13.3 what is only unusual passes', async () => {
    gate.upstream.answer(() => ({}));
    const result = { type: 'tool_result', tool_use_id: 'toolu_1' };
    const unusual = [
      { messages: [{ role: 'user', content: [{ type: 'hologram', depth: 3 }] }] },
      {
        messages: [
          { role: 'user', content: 'a' },
          { role: 'user', content: 'b' },
        ],
      },
      {
        messages: [
          { role: 'user', content: 'a' },
          { role: 'system', content: 'b' },
          { role: 'assistant', content: 'c' },
        ],
      },
      { stream: null, system: null, temperature: null, tool_choice: null, unknown: { deep: [1] } },
      {
        tools: [
          { type: 'web_search_20250305', name: 'web_search' },
          { type: 'mcp_toolset', mcp_server_name: 'x' },
        ],
      },
      { max_tokens: 0 },
      {
        messages: [
          { role: 'user', content: 'a' },
          {
            role: 'assistant',
            content: [
              { type: 'server_tool_use', id: 'srvtoolu_1', name: 'web_search', input: {} },
              { type: 'web_search_tool_result', tool_use_id: 'srvtoolu_1', content: [] },
            ],
          },
          { role: 'user', content: 'b' },
        ],
      },
    ];
    for (const fields of unusual)
      expect((await gate.post({ ...asked, ...fields })).status, JSON.stringify(fields)).toBe(200);
    if (gate.upstream.asked[0]?.body.tools !== undefined) return;
    // Split over two messages of one role, as the API joins them.
    const split = [
      { role: 'user', content: 'a' },
      { role: 'assistant', content: [use('toolu_1', 'mine')] },
      { role: 'assistant', content: [use('toolu_2', 'mine')] },
      { role: 'user', content: [result] },
      { role: 'user', content: [{ ...result, tool_use_id: 'toolu_2', content: [{ type: 'image', source: {} }] }] },
    ];
    expect((await gate.post({ ...asked, tools: [mine], messages: split })).status).toBe(200);
  });
});

it('R-13.3 whatever is sent gets an answer, and what is refused gets an error of the API', async () => {
  const gate = await kit({ tools: [] });
  gate.upstream.answer(() => ({}));
  const block = fc.oneof(
    fc.constant(said('x')),
    fc.constant(use('toolu_1', 'mine')),
    fc.record(
      {
        type: fc.constantFrom('tool_result', 'tool_use', 'text', 'image'),
        tool_use_id: fc.constantFrom('toolu_1', 'toolu_2', 7),
      },
      { requiredKeys: [] },
    ),
    fc.jsonValue(),
  );
  const message = fc.oneof(
    fc.jsonValue(),
    fc.record({
      role: fc.constantFrom('user', 'assistant', 'x'),
      content: fc.oneof(fc.string(), fc.array(block, { maxLength: 4 }), fc.jsonValue()),
    }),
  );
  try {
    await fc.assert(
      fc.asyncProperty(
        fc.record({
          model: fc.oneof(fc.constant('m'), fc.jsonValue()),
          max_tokens: fc.constant(1),
          messages: fc.oneof(fc.array(message, { maxLength: 4 }), fc.jsonValue()),
        }),
        async (body) => {
          const response = await gate.gateway.fetch(
            new Request('http://gateway/v1/messages', { method: 'POST', body: JSON.stringify(body) }),
          );
          if (response.status !== 200)
            expect(await response.json()).toMatchObject({ type: 'error', error: { type: 'invalid_request_error' } });
          else await response.arrayBuffer();
        },
      ),
      { numRuns: 300, verbose: 1 },
    );
    expect(gate.log.filter(({ fields }) => fields['kind'] === 'internal_error')).toStrictEqual([]);
  } finally {
    await gate.close();
  }
});

it('R-13.5 the tables are made of the code', () => {
  expect(gatewayErrorTable()).toContain('| `state_unknown` | 500 | `api_error` |  | error |');
  expect(gatewayErrorTable()).toContain('| `request_too_large` | 413 | `request_too_large` |');
  expect(malformedTable().split('\n').length).toBeGreaterThan(25);
});
