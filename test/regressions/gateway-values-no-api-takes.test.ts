// Was: the gateway sent on values that no API takes, such as infinite numbers or text before the results. Now: each is
// answered with 400, and the upstream is not asked.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { kit, type Kit } from '../gateway/kit.ts';
import { said, use } from '../gateway/upstream.ts';

type Fields = Readonly<Record<string, unknown>>;

const base = { model: 'm', max_tokens: 10, messages: [{ role: 'user', content: 'go' }] };
const raw = (members: string): string => `${JSON.stringify(base).slice(0, -1)},${members}}`;
const fields = (given: Fields): string => JSON.stringify({ ...base, ...given });
const talk = (...messages: unknown[]): string => fields({ messages: [...base.messages, ...messages] });
const user = (...content: unknown[]): Fields => ({ role: 'user', content });
const result = (id: string, more: Fields = {}): Fields => ({
  type: 'tool_result',
  tool_use_id: id,
  content: 'ok',
  ...more,
});
const called: Fields = { role: 'assistant', content: [use('toolu_1', 'mine'), use('toolu_2', 'mine')] };
const many = (count: number): unknown[] => Array.from({ length: count }, () => said('x'));

describe('values that the validation let through', () => {
  let gate: Kit;
  beforeAll(async () => {
    gate = await kit({ tools: [] });
  });
  afterAll(() => gate.close());

  it.each([
    ['max_tokens beyond all integers', fields({ max_tokens: 1e30 }), 'max_tokens'],
    ['a temperature that is read as infinite', raw('"temperature":1e999'), 'temperature'],
    ['a top_p that is read as infinite', raw('"top_p":-1e999'), 'top_p'],
    ['a text block of system without text', fields({ system: [{ type: 'text' }] }), 'system.0.text'],
    ['10,000 blocks of system', fields({ system: many(10_000) }), 'system:'],
    [
      '10,000 blocks in one result',
      talk(called, user(result('toolu_1', { content: many(10_000) }), result('toolu_2'))),
      'messages.2.content.0.content:',
    ],
    ['an input_schema that is a text', fields({ tools: [{ name: 'a', input_schema: '{}' }] }), 'tools.0.input_schema'],
    ['a tool whose type is a number', fields({ tools: [{ name: 'a', type: 7 }] }), 'tools.0.type'],
    ['a description that is a number', fields({ tools: [{ name: 'a', description: 7 }] }), 'tools.0.description'],
    ['tool_choice of a tool without a name', fields({ tool_choice: { type: 'tool' } }), 'tool_choice.name'],
    [
      'a call in a result',
      talk(called, user(result('toolu_1', { content: [use('toolu_3', 'mine')] }), result('toolu_2'))),
      'messages.2.content.0.content.0',
    ],
    [
      'text before the results',
      talk(called, user(said('Here:'), result('toolu_1'), result('toolu_2'))),
      'messages.2.content.1',
    ],
    [
      'text between the results',
      talk(called, user(result('toolu_1'), said('and'), result('toolu_2'))),
      'messages.2.content.2',
    ],
    [
      'a message of text before the results',
      talk(called, { role: 'user', content: 'wait' }, user(result('toolu_1'), result('toolu_2'))),
      'messages.3.content.0',
    ],
    [
      'a system message before the results',
      talk(called, { role: 'system', content: 'be brief' }, user(result('toolu_1'), result('toolu_2'))),
      'toolu_1',
    ],
  ])('R-13.3 %s: 400, and the upstream is not asked', async (_, body, says) => {
    gate.upstream.answer(() => ({}));
    const response = await gate.post(body);
    expect(response.status).toBe(400);
    const { error } = (await response.json()) as {
      readonly error: { readonly type: string; readonly message: string };
    };
    expect(error.type).toBe('invalid_request_error');
    expect(error.message).toContain(says);
    expect(gate.upstream.asked).toHaveLength(0);
  });

  it('R-13.3 texts and files after the results, and provider tools without a schema, still pass', async () => {
    gate.upstream.answer(() => ({}));
    const good = [
      talk(called, user(result('toolu_1'), result('toolu_2'), said('go on'), { type: 'image', source: {} })),
      talk(called, user(result('toolu_1')), user(result('toolu_2')), { role: 'user', content: 'go on' }),
      talk(called, user(result('toolu_1'), result('toolu_2')), { role: 'system', content: 'be brief' }),
      fields({
        tools: [{ type: 'web_search_20250305', name: 'web_search' }],
        tool_choice: { type: 'tool', name: 'web_search' },
      }),
    ];
    for (const body of good) expect((await gate.post(body)).status, body).toBe(200);
    expect(gate.upstream.asked.map(({ text }) => text)).toStrictEqual(good);
  });

  it('R-13.3 an identity encoding is one in any case of its letters', async () => {
    gate.upstream.answer(() => ({}));
    expect((await gate.post(base, { 'content-encoding': 'Identity' })).status).toBe(200);
  });
});
