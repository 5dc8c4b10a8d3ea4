import Anthropic from '@anthropic-ai/sdk';
import { createSpillway, tool } from 'spillway';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { anthropicModel } from '../../src/agent/anthropic.ts';
import type { AgentMessage, AgentModel, AgentOptions } from '../../src/agent/index.ts';
import { asked, lived, resultOf, story, typed } from './kit.ts';
import { messagesServer, streamed, violations, type Block, type MessagesServer } from './messages-server.ts';

let server: MessagesServer;
let model: AgentModel;
beforeAll(async () => {
  server = await messagesServer();
  model = anthropicModel(new Anthropic({ apiKey: 'none', baseURL: server.url }), {
    model: 'claude-test',
    max_tokens: 100,
    temperature: 0,
    system: 'You are brief',
  });
});
afterAll(() => server.close());

const book = tool({
  name: 'trips.book',
  description: 'Books',
  input: z.object({ to: z.string() }),
  execute: ({ to }) => `booked ${to}`,
});
const quick = { initialDelayMs: 1, jitterPercent: 0 } as const;
const run = (options: Partial<AgentOptions> = {}): ReturnType<typeof lived> =>
  lived({
    model,
    spillway: createSpillway({ tools: [book] }),
    tools: [book],
    messages: asked,
    modelRetry: quick,
    ...options,
  });

const thinking: Block = { type: 'thinking', thinking: 'They want Tokyo', signature: 'sig-1' };
const unheardOf: Block = { type: 'dream_block', content: { deep: [1] }, note: 'kept' };
const use = (id: string, input: unknown, more: Record<string, unknown> = {}): Block => ({
  type: 'tool_use',
  id,
  name: 'trips_book',
  input,
  ...more,
});
const text = (words: string): Block => ({ type: 'text', text: words });

describe('R-12.3 anthropicModel, with the real SDK', () => {
  it('R-12.3 streams text and thinking, runs tools, and gives every block back untouched', async () => {
    const blocks = [
      thinking,
      { type: 'redacted_thinking', data: 'xyz' },
      unheardOf,
      text('Let me book. '),
      use('toolu_1', { to: 'NRT' }, { caller: { type: 'direct' } }),
    ];
    server.answer((_, place) => (place === 0 ? streamed(blocks, 'tool_use') : streamed([text('Done.')], 'end_turn')));
    const events = await run();
    expect(resultOf(events)).toMatchObject({
      status: 'completed',
      text: 'Done.',
      executedToolCallIds: ['toolu_1'],
      usage: { inputTokens: 22, outputTokens: 14, cacheReadTokens: 8 },
      stopReason: 'end',
    });
    expect(
      typed(events, 'text')
        .map((event) => event.text)
        .join(''),
    ).toBe('Let me book. Done.');
    expect(
      typed(events, 'thinking')
        .map((event) => event.text)
        .join(''),
    ).toBe('They want Tokyo');
    expect(server.requests[1]?.messages).toStrictEqual([
      { role: 'user', content: [text('Book me a trip')] },
      { role: 'assistant', content: blocks },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'toolu_1', content: 'booked NRT' }] },
    ]);
    expect(server.requests[0]).toMatchObject({
      model: 'claude-test',
      max_tokens: 100,
      temperature: 0,
      stream: true,
      system: 'You are brief',
      tools: [{ name: 'trips_book', description: 'Books', input_schema: { type: 'object' } }, { name: 'tool_output' }],
    });
    expect(server.faults).toStrictEqual([]);
  });

  it('R-12.3 a stored transcript is sent again to the byte', async () => {
    server.answer((_, place) =>
      place === 0
        ? streamed([thinking, use('toolu_1', { to: 1 }), use('toolu_2', { to: 'HEL' })], 'tool_use')
        : streamed([text('Done.')], 'end_turn'),
    );
    const first = resultOf(await run()).messages;
    const sent = JSON.stringify(server.requests[1]?.messages);
    const stored = JSON.parse(JSON.stringify(first)) as AgentMessage[];
    server.answer(() => streamed([text('Yes?')], 'end_turn'));
    await run({ messages: [...stored, { role: 'user', content: 'And now?' }] });
    expect(JSON.stringify(server.requests[0]?.messages).startsWith(sent.slice(0, -1))).toBe(true);
    expect(server.faults).toStrictEqual([]);
  });

  it('R-12.3 failures are is_error results, in one user message, results first', async () => {
    server.answer((_, place) =>
      place === 0
        ? streamed([use('a', { to: 1 }), use('b', { to: 'NRT' }), { ...use('c', {}), name: 'nope' }], 'tool_use')
        : streamed([text('Done.')], 'end_turn'),
    );
    await run();
    expect(server.requests[1]?.messages.at(-1)?.content).toMatchObject([
      {
        type: 'tool_result',
        tool_use_id: 'a',
        is_error: true,
        content: expect.stringContaining('to: Invalid input') as string,
      },
      { type: 'tool_result', tool_use_id: 'b', content: 'booked NRT' },
      {
        type: 'tool_result',
        tool_use_id: 'c',
        is_error: true,
        content: expect.stringContaining('trips.book') as string,
      },
    ]);
    expect(server.faults).toStrictEqual([]);
  });

  it('R-12.3 input that is no JSON, or was cut off at its very beginning, is not taken for an empty one', async () => {
    server.answer((_, place) => {
      if (place === 0)
        return streamed(
          [
            { ...use('a', {}), json: '{"to": "NR' },
            { ...use('b', {}), json: '' },
          ],
          'max_tokens',
        );
      return place === 1
        ? streamed([{ ...use('c', {}), name: 'nothing', json: '' }], 'tool_use')
        : streamed([text('Done.')], 'end_turn');
    });
    const nothing = tool({ name: 'nothing', input: z.object({}), execute: () => 'fine' });
    const events = await run({ tools: [book, nothing] });
    expect(typed(events, 'tool_result').map(({ kind }) => kind)).toStrictEqual([
      'invalid_parameters',
      'invalid_parameters',
      undefined,
    ]);
    expect(server.requests[1]?.messages[1]?.content).toMatchObject([
      { input: { $unparsed: '{"to": "NR' } },
      { input: { $unparsed: '' } },
    ]);
    expect(server.faults).toStrictEqual([]);
  });

  it('R-12.3 a lone surrogate, which the API takes from nobody, does not stay in an input', async () => {
    server.answer((_, place) =>
      place === 0
        ? streamed([{ ...use('a', {}), json: '{"to":"\\ud800N\\ud83d\\ude00"}' }], 'tool_use')
        : streamed([text('Done.')], 'end_turn'),
    );
    const events = await run();
    expect(typed(events, 'tool_result')).toMatchObject([{ result: { text: 'booked \ufffdN\u{1f600}' } }]);
    expect(server.requests[1]?.messages[1]?.content).toMatchObject([{ input: { to: '\ufffdN\u{1f600}' } }]);
  });

  it('R-12.3 an answer that was cut off in its thoughts, or is empty, leaves nothing that the API refuses', async () => {
    server.answer((_, place) =>
      place === 0
        ? streamed([thinking], 'pause_turn')
        : place === 1
          ? streamed([text('\n\n')], 'pause_turn')
          : streamed([text('Done.')], 'end_turn'),
    );
    const result = resultOf(await run());
    expect(result.status).toBe('completed');
    server.answer(() => streamed([text('Yes')], 'end_turn'));
    await run({ messages: [...result.messages, { role: 'user', content: ' ' }, { role: 'user', content: 'Really?' }] });
    expect(server.faults).toStrictEqual([]);
  });

  it.each([
    [
      'overloaded',
      { status: 529, body: { type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } } },
      2,
      'completed',
    ],
    [
      'rate limited',
      {
        status: 429,
        headers: { 'retry-after-ms': '5' },
        body: { type: 'error', error: { type: 'rate_limit_error', message: 'slow' } },
      },
      2,
      'completed',
    ],
    [
      'refused',
      { status: 400, body: { type: 'error', error: { type: 'invalid_request_error', message: 'bad' } } },
      1,
      'failed',
    ],
  ] as const)('R-12.3 %s: the run decides about retries, not the SDK', async (_, answer, requests, status) => {
    server.answer((_request, place) => (place === 0 ? answer : streamed([text('Done.')], 'end_turn')));
    expect(resultOf(await run()).status).toBe(status);
    expect(server.requests).toHaveLength(requests);
  });

  it.each([
    ['an error event', { type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } }],
    ['a broken connection', undefined],
  ])('R-12.3 %s in mid-stream: what was shown is dropped, and it is asked once more', async (_, end) => {
    const half = streamed([text('Half of it'), use('toolu_1', { to: 'X' })], 'tool_use').slice(0, -2);
    server.answer((_request, place) => (place === 0 ? [...half, end] : streamed([text('Whole.')], 'end_turn')));
    const events = await run();
    expect(story(events).filter((type) => type !== 'text')).toStrictEqual([
      'turn_started',
      'model_failed',
      'discarded',
      'message',
      'turn_settled',
      'settled',
    ]);
    expect(resultOf(events)).toMatchObject({ status: 'completed', text: 'Whole.', executedToolCallIds: [] });
    expect(server.requests).toHaveLength(2);
  });

  it('R-12.3 ids and names that the API refuses are changed on the wire, the same each time', async () => {
    server.answer(() => streamed([text('Done.')], 'end_turn'));
    const made = (id: string, name: string): AgentMessage[] => [
      { role: 'assistant', content: [{ type: 'tool_call', id, name, input: [1] }] },
      { role: 'tool', results: [{ callId: id, toolName: name, text: 'ok' }] },
    ];
    await run({ messages: [...asked, ...made('a.b', 'x.y'), ...made('a_b', 'x_y'), ...made('a.b', 'x.y')] });
    expect(server.faults).toStrictEqual([]);
    const uses = server.requests[0]?.messages
      .flatMap(({ content }) => (typeof content === 'string' ? [] : content))
      .filter(({ type }) => type === 'tool_use');
    expect(uses).toMatchObject([
      { id: 'a_b', name: 'x_y', input: { $unparsed: '[1]' } },
      { name: 'x_y_2' },
      { name: 'x_y' },
    ]);
  });

  it('R-12.3 the server of these tests knows a bad request when it sees one', () => {
    const bad = [
      [],
      [{ role: 'assistant', content: 'x' }],
      [{ role: 'user', content: '' }],
      [
        { role: 'user', content: 'x' },
        { role: 'assistant', content: [use('a', {})] },
        { role: 'user', content: 'y' },
      ],
      [
        { role: 'user', content: 'x' },
        { role: 'assistant', content: [use('a', {})] },
        { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'a', content: '', is_error: true }] },
      ],
      [
        { role: 'user', content: 'x' },
        { role: 'assistant', content: [use('a', {})] },
        { role: 'user', content: [text('y'), { type: 'tool_result', tool_use_id: 'a', content: 'z' }] },
      ],
      [
        { role: 'user', content: 'x' },
        { role: 'user', content: 'y' },
      ],
    ];
    for (const messages of bad) expect(violations({ messages })).not.toStrictEqual([]);
  });

  it('R-2.9 what cannot be is refused when the model is made', () => {
    const client = new Anthropic({ apiKey: 'none' });
    expect(() => anthropicModel({} as never, { model: 'x', max_tokens: 1 })).toThrow('messages.create');
    expect(() => anthropicModel(client, { model: '', max_tokens: 1 })).toThrow('model must be the name');
    expect(() => anthropicModel(client, { model: 'x', max_tokens: 0 })).toThrow('max_tokens must be');
    expect(() => anthropicModel(client, { model: 'x', max_tokens: 1, stream: false })).toThrow(
      'stream cannot be given',
    );
  });
});
