import { createAnthropic } from '@ai-sdk/anthropic';
import type { LanguageModelV3StreamPart, LanguageModelV4StreamPart } from '@ai-sdk/provider';
import { MockLanguageModelV3, MockLanguageModelV4, convertArrayToReadableStream } from 'ai/test';
import { createSpillway, tool } from 'spillway';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { aiSdkModel, type AiSdkModelLike } from '../../src/agent/ai-sdk.ts';
import { runAgent, type AgentOptions, type ProviderPart } from '../../src/agent/index.ts';
import { asked, lived, resultOf, story, typed } from './kit.ts';
import { messagesServer, streamed, type Block, type MessagesServer } from './messages-server.ts';

const book = tool({
  name: 'trips.book',
  description: 'Books',
  input: z.object({ to: z.string() }),
  execute: ({ to }) => `booked ${to}`,
});
const free = tool({ name: 'trips.book', execute: () => 'booked' });
const quick = { initialDelayMs: 1, jitterPercent: 0 } as const;
const run = (model: AiSdkModelLike, options: Partial<AgentOptions> = {}): ReturnType<typeof lived> =>
  lived({
    model: aiSdkModel(model, { maxOutputTokens: 100 }),
    spillway: createSpillway({ tools: [book] }),
    tools: [book],
    messages: asked,
    system: 'Be brief',
    modelRetry: quick,
    ...options,
  });

const usage = {
  inputTokens: { total: 11, noCache: 7, cacheRead: 4, cacheWrite: undefined },
  outputTokens: { total: 7, text: 7, reasoning: undefined },
};
const finish = (unified: 'stop' | 'length' | 'tool-calls' | 'interrupted'): LanguageModelV4StreamPart => ({
  type: 'finish',
  finishReason: { unified, raw: unified },
  usage,
});
const said = (delta: string): LanguageModelV4StreamPart[] => [
  { type: 'text-start', id: 't' },
  { type: 'text-delta', id: 't', delta },
  { type: 'text-end', id: 't' },
];
const called = (toolCallId: string, input: string): LanguageModelV4StreamPart => ({
  type: 'tool-call',
  toolCallId,
  toolName: 'trips_book',
  input,
});
const scripted = (...answers: ReadonlyArray<readonly LanguageModelV4StreamPart[]>): MockLanguageModelV4 =>
  new MockLanguageModelV4({
    doStream: answers.map((parts) => ({
      stream: convertArrayToReadableStream([{ type: 'stream-start', warnings: [] }, ...parts]),
    })),
  });

describe('R-12.3 aiSdkModel, with the real ai package', () => {
  it('R-12.3 runs the tools of a v4 model, and gives what it must have back with its metadata', async () => {
    const model = scripted(
      [
        { type: 'reasoning-start', id: 'r' },
        { type: 'reasoning-delta', id: 'r', delta: 'They want Tokyo' },
        { type: 'reasoning-end', id: 'r', providerMetadata: { acme: { signature: 'sig-1' } } },
        { type: 'file', mediaType: 'image/png', data: { type: 'data', data: new Uint8Array([1, 2, 3]) } },
        { type: 'tool-call', toolCallId: 's1', toolName: 'web_search', input: '{"q":"x"}', providerExecuted: true },
        { type: 'tool-result', toolCallId: 's1', toolName: 'web_search', result: [1] },
        ...said('Let me book. '),
        {
          ...called('c1', '{"to":"NRT"}'),
          providerMetadata: { acme: { thought: 'abc' } },
        } as LanguageModelV4StreamPart,
        called('c2', '{"to":1}'),
        called('c3', '{"to":'),
        finish('tool-calls'),
      ],
      [...said('Done.'), finish('stop')],
    );
    const events = await run(model);
    expect(resultOf(events)).toMatchObject({
      status: 'completed',
      text: 'Done.',
      executedToolCallIds: ['c1'],
      usage: { inputTokens: 22, outputTokens: 14, cacheReadTokens: 8 },
    });
    expect(typed(events, 'thinking').map(({ text }) => text)).toStrictEqual(['They want Tokyo']);
    expect(model.doStreamCalls[0]).toMatchObject({
      maxOutputTokens: 100,
      tools: [{ type: 'function', name: 'trips_book', description: 'Books' }, { name: 'tool_output' }],
    });
    expect(model.doStreamCalls[1]?.prompt).toStrictEqual([
      { role: 'system', content: 'Be brief' },
      { role: 'user', content: [{ type: 'text', text: 'Book me a trip' }] },
      {
        role: 'assistant',
        content: [
          { type: 'reasoning', text: 'They want Tokyo', providerOptions: { acme: { signature: 'sig-1' } } },
          { type: 'file', mediaType: 'image/png', data: { type: 'data', data: 'AQID' } },
          { type: 'tool-call', toolCallId: 's1', toolName: 'web_search', input: { q: 'x' }, providerExecuted: true },
          { type: 'tool-result', toolCallId: 's1', toolName: 'web_search', output: { type: 'json', value: [1] } },
          { type: 'text', text: 'Let me book. ' },
          {
            type: 'tool-call',
            toolCallId: 'c1',
            toolName: 'trips_book',
            input: { to: 'NRT' },
            providerOptions: { acme: { thought: 'abc' } },
          },
          { type: 'tool-call', toolCallId: 'c2', toolName: 'trips_book', input: { to: 1 } },
          { type: 'tool-call', toolCallId: 'c3', toolName: 'trips_book', input: { $unparsed: '{"to":' } },
        ],
      },
      {
        role: 'tool',
        content: [
          {
            type: 'tool-result',
            toolCallId: 'c1',
            toolName: 'trips_book',
            output: { type: 'text', value: 'booked NRT' },
          },
          {
            type: 'tool-result',
            toolCallId: 'c2',
            toolName: 'trips_book',
            output: { type: 'error-text', value: expect.stringContaining('to: Invalid input') as string },
          },
          {
            type: 'tool-result',
            toolCallId: 'c3',
            toolName: 'trips_book',
            output: { type: 'error-text', value: expect.stringContaining('not JSON') as string },
          },
        ],
      },
    ]);
    // What is stored is JSON: bytes and addresses have become text.
    expect(JSON.parse(JSON.stringify(resultOf(events).messages))).toStrictEqual(resultOf(events).messages);
  });

  it('R-12.3 addresses in stored parts become addresses again', async () => {
    const file: ProviderPart = {
      type: 'provider',
      provider: 'ai-sdk',
      value: { type: 'file', mediaType: 'image/png', data: { type: 'url', url: 'https://example.com/a.png' } },
    };
    const model = scripted([...said('Nice'), finish('stop')]);
    await run(model, {
      messages: [
        {
          role: 'user',
          content: [
            { type: 'text', text: 'What is it?' },
            file,
            { type: 'provider', provider: 'other', value: { type: 'file' } },
          ],
        },
      ],
    });
    expect(model.doStreamCalls[0]?.prompt[1]).toStrictEqual({
      role: 'user',
      content: [
        { type: 'text', text: 'What is it?' },
        { type: 'file', mediaType: 'image/png', data: { type: 'url', url: new URL('https://example.com/a.png') } },
      ],
    });
  });

  it('R-12.3 a call that was cut off before its input is not taken for one without', async () => {
    const end = [...said('Done.'), finish('stop')];
    const cut = await run(scripted([called('c1', '{}'), called('c2', ''), finish('length')], end), { tools: [free] });
    expect(typed(cut, 'tool_result').map(({ result, kind }) => [result.callId, kind])).toStrictEqual([
      ['c1', undefined],
      ['c2', 'invalid_parameters'],
    ]);
    const whole = await run(scripted([called('c1', '{}'), called('c2', ''), finish('tool-calls')], end), {
      tools: [free],
    });
    expect(resultOf(whole).executedToolCallIds).toStrictEqual(['c1', 'c2']);
  });

  it('R-12.3 a v3 model as well', async () => {
    const parts: LanguageModelV3StreamPart[] = [
      { type: 'tool-call', toolCallId: 'c1', toolName: 'trips_book', input: '{"to":"NRT"}' },
      { type: 'finish', finishReason: { unified: 'tool-calls', raw: undefined }, usage },
    ];
    const end: LanguageModelV3StreamPart[] = [
      { type: 'text-start', id: 't' },
      { type: 'text-delta', id: 't', delta: 'Done.' },
      { type: 'text-end', id: 't' },
      { type: 'finish', finishReason: { unified: 'stop', raw: undefined }, usage },
    ];
    const model = new MockLanguageModelV3({
      doStream: [{ stream: convertArrayToReadableStream(parts) }, { stream: convertArrayToReadableStream(end) }],
    });
    expect(resultOf(await run(model))).toMatchObject({
      status: 'completed',
      text: 'Done.',
      executedToolCallIds: ['c1'],
    });
  });

  it.each([
    [
      'an error in the stream',
      [...said('Half'), { type: 'error', error: Object.assign(new Error('Overloaded'), { statusCode: 529 }) }],
    ],
    ['a stream that was interrupted', [...said('Half'), finish('interrupted')]],
    ['a stream that just ends', said('Half')],
  ] as ReadonlyArray<readonly [string, LanguageModelV4StreamPart[]]>)(
    'R-12.3 %s: dropped, and asked once more',
    async (_, half) => {
      const events = await run(scripted(half, [...said('Whole.'), finish('stop')]));
      expect(story(events)).toStrictEqual([
        'turn_started',
        'text',
        'model_failed',
        'discarded',
        'text',
        'message',
        'turn_settled',
        'settled',
      ]);
      expect(resultOf(events).text).toBe('Whole.');
    },
  );

  it('R-2.7 unsubscribing aborts the call and cancels the stream', async () => {
    let cancelled = false;
    const stream = new ReadableStream<LanguageModelV4StreamPart>({
      start: (controller) => controller.enqueue({ type: 'text-delta', id: 't', delta: 'x' }),
      cancel: () => void (cancelled = true),
    });
    const model = new MockLanguageModelV4({ doStream: { stream } });
    await new Promise<void>((resolve) => {
      const subscription = runAgent({
        model: aiSdkModel(model),
        spillway: createSpillway(),
        messages: asked,
      }).subscribe(({ type }) => {
        if (type !== 'text') return;
        subscription.unsubscribe();
        resolve();
      });
    });
    await new Promise((resolve) => setImmediate(resolve));
    expect([cancelled, model.doStreamCalls[0]?.abortSignal?.aborted]).toStrictEqual([true, true]);
  });

  it('R-2.9 what cannot be is refused when the model is made', () => {
    expect(() => aiSdkModel('claude' as never)).toThrow('a name alone is none');
    expect(() => aiSdkModel({ specificationVersion: 'v1', doStream: () => Promise.reject(new Error('x')) })).toThrow(
      'must be of specification v3 or v4, not v1',
    );
    expect(() => aiSdkModel(new MockLanguageModelV4(), { maxTokens: 1 } as never)).toThrow('has no option "maxTokens"');
  });
});

describe('R-12.3 aiSdkModel with @ai-sdk/anthropic, against the server of the Messages API', () => {
  let server: MessagesServer;
  beforeAll(async () => {
    server = await messagesServer();
  });
  afterAll(() => server.close());

  it('R-12.3 thinking, parallel calls, a failure, an unknown tool and an overload: every request is valid', async () => {
    const use = (id: string, input: unknown, name = 'trips_book'): Block => ({ type: 'tool_use', id, name, input });
    const thinking: Block = { type: 'thinking', thinking: 'They want Tokyo', signature: 'sig-1' };
    server.answer((_, place) => {
      if (place === 0)
        return { status: 529, body: { type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } } };
      if (place === 1)
        return streamed(
          [
            thinking,
            { type: 'text', text: 'Let me.' },
            use('a', { to: 'NRT' }),
            use('b', { to: 1 }),
            use('c', {}, 'nope'),
          ],
          'tool_use',
        );
      return streamed([{ type: 'text', text: 'Done.' }], 'end_turn');
    });
    const anthropic = createAnthropic({ apiKey: 'none', baseURL: `${server.url}/v1` });
    const events = await run(anthropic('claude-sonnet-4-5'));
    expect(resultOf(events)).toMatchObject({
      status: 'completed',
      text: 'Done.',
      executedToolCallIds: ['a'],
      toolFailureKinds: { b: 'invalid_parameters', c: 'unknown_tool' },
    });
    expect(server.faults).toStrictEqual([]);
    expect(server.requests).toHaveLength(3);
    expect(server.requests[2]?.messages[1]?.content).toMatchObject([
      thinking,
      { type: 'text' },
      { type: 'tool_use', id: 'a' },
      { id: 'b' },
      { id: 'c' },
    ]);
    expect(server.requests[2]?.messages[2]?.content).toMatchObject([
      { type: 'tool_result', tool_use_id: 'a' },
      { tool_use_id: 'b', is_error: true },
      { tool_use_id: 'c', is_error: true },
    ]);
  });
});
