import Anthropic from '@anthropic-ai/sdk';
import { betaZodTool } from '@anthropic-ai/sdk/helpers/beta/zod';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { asked, calls, kit, mine, until, type Kit } from '../kit.ts';
import { said, streamOf, thought, use } from '../upstream.ts';

/** Ways in which the unchanged SDK asks. */
const WAYS: ReadonlyArray<
  readonly [string, (client: Anthropic, body: Anthropic.MessageCreateParamsNonStreaming) => Promise<Anthropic.Message>]
> = [
  ['whole', (client, body) => client.messages.create(body)],
  ['streaming', (client, body) => client.messages.stream(body).finalMessage()],
];

describe.each(WAYS)('R-13.1 the real @anthropic-ai/sdk, %s', (_, ask) => {
  let gate: Kit;
  beforeAll(async () => {
    gate = await kit();
  });
  afterAll(() => gate.close());

  it('R-13.1 gets an answer of text alone', async () => {
    gate.upstream.answer(() => ({ blocks: [thought('hm'), said('Hello')] }));
    const message = await ask(gate.client, asked);
    expect(message).toMatchObject({
      id: 'msg_1',
      stop_reason: 'end_turn',
      content: [thought('hm'), said('Hello')],
      usage: { output_tokens: 7 },
    });
    expect(gate.upstream.asked[0]?.body.tools?.map(({ name }) => name)).toStrictEqual([
      'math_add',
      'fails',
      'hangs',
      'slow',
    ]);
    expect(gate.upstream.faults).toStrictEqual([]);
  });

  it('R-13.1 does not see a tool of the gateway, only what comes of it', async () => {
    gate.upstream.answer((_asked, place) =>
      place === 0
        ? {
            blocks: [thought('add'), said('Let me add. '), use('toolu_1', 'math_add', { a: 1, b: 2 })],
            stop: 'tool_use',
          }
        : { blocks: [said('It is 3.')] },
    );
    const message = await ask(gate.client, asked);
    expect(message).toMatchObject({
      id: 'msg_1',
      stop_reason: 'end_turn',
      content: [thought('add'), said('Let me add. '), said('It is 3.')],
      usage: { input_tokens: 22, output_tokens: 14 },
    });
    expect(gate.upstream.asked[1]?.body.messages.slice(1)).toStrictEqual([
      {
        role: 'assistant',
        content: [thought('add'), said('Let me add. '), use('toolu_1', 'math_add', { a: 1, b: 2 })],
      },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'toolu_1', content: 'sum 3' }] },
    ]);
    expect(gate.upstream.faults).toStrictEqual([]);
  });

  it('R-13.1 has eight calls of a step run in parallel, answered in their order', async () => {
    calls.inputs.length = 0;
    const eight = Array.from({ length: 8 }, (_unused, n) => use(`toolu_${n}`, 'math_add', { a: n, b: 1 }));
    gate.upstream.answer((_asked, place) =>
      place === 0 ? { blocks: eight, stop: 'tool_use' } : { blocks: [said('Done')] },
    );
    expect(await ask(gate.client, asked)).toMatchObject({ content: [said('Done')] });
    expect(calls.inputs).toHaveLength(8);
    const results = gate.upstream.asked[1]?.body.messages.at(-1)?.content;
    expect(results).toStrictEqual(
      eight.map(({ id }, n) => ({ type: 'tool_result', tool_use_id: id, content: `sum ${n + 1}` })),
    );
  });

  it('R-13.2 goes on when tools fail, hang, or are called with what they do not take', async () => {
    gate.upstream.answer((_asked, place) =>
      place === 0
        ? {
            blocks: [
              use('toolu_1', 'fails'),
              use('toolu_2', 'hangs'),
              use('toolu_3', 'math_add', { a: 'x' }),
              use('toolu_4', 'math_add', { a: 2, b: 2 }),
            ],
            stop: 'tool_use',
          }
        : { blocks: [said('Some failed')] },
    );
    expect(await ask(gate.client, asked)).toMatchObject({ content: [said('Some failed')], stop_reason: 'end_turn' });
    const results = gate.upstream.asked[1]?.body.messages.at(-1)?.content as ReadonlyArray<Record<string, unknown>>;
    expect(results.map(({ is_error: isError }) => isError)).toStrictEqual([true, true, true, undefined]);
    expect(results[0]?.['content']).toBe('The tool ran and failed. You can try again.');
    expect(results[1]?.['content']).toMatch(/did not answer in time/);
    expect(results[2]?.['content']).toMatch(/a: Invalid input/);
    expect(JSON.stringify(gate.upstream.asked)).not.toContain('10.0.0.5');
    expect(calls.aborted).toContain('hangs');
  });

  it('R-13.1 answers its own calls while those of the gateway are answered there', async () => {
    const own = { ...asked, tools: [mine] };
    gate.upstream.answer((_asked, place) => {
      if (place === 0) return { blocks: [said('First'), use('toolu_a', 'math_add', { a: 1, b: 1 })], stop: 'tool_use' };
      if (place === 1)
        return {
          blocks: [
            use('toolu_b', 'mine', { q: 1 }),
            use('toolu_c', 'math_add', { a: 2, b: 2 }),
            use('toolu_d', 'mine', { q: 2 }),
          ],
          stop: 'tool_use',
        };
      return { blocks: [said('All done')] };
    });
    const message = await ask(gate.client, own);
    expect(message).toMatchObject({
      stop_reason: 'tool_use',
      content: [said('First'), use('toolu_b', 'mine', { q: 1 }), use('toolu_d', 'mine', { q: 2 })],
    });
    const results = ['toolu_b', 'toolu_d'].map((id) => ({
      type: 'tool_result' as const,
      tool_use_id: id,
      content: `mine ${id}`,
    }));
    const done = await ask(gate.client, {
      ...own,
      messages: [
        ...asked.messages,
        { role: 'assistant', content: message.content },
        { role: 'user', content: [...results, { type: 'text', text: 'and?' }] },
      ],
    });
    expect(done).toMatchObject({ content: [said('All done')] });
    expect(gate.upstream.asked[2]?.body.messages.slice(1)).toStrictEqual([
      { role: 'assistant', content: [said('First'), use('toolu_a', 'math_add', { a: 1, b: 1 })] },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'toolu_a', content: 'sum 2' }] },
      {
        role: 'assistant',
        content: [
          use('toolu_b', 'mine', { q: 1 }),
          use('toolu_c', 'math_add', { a: 2, b: 2 }),
          use('toolu_d', 'mine', { q: 2 }),
        ],
      },
      {
        role: 'user',
        content: [
          results[0],
          { type: 'tool_result', tool_use_id: 'toolu_c', content: 'sum 4' },
          results[1],
          said('and?'),
        ],
      },
    ]);
    expect(gate.upstream.faults).toStrictEqual([]);
  });

  it.each([
    [429, 'rate_limit_error', Anthropic.RateLimitError],
    [500, 'api_error', Anthropic.InternalServerError],
    [529, 'overloaded_error', Anthropic.InternalServerError],
  ])('R-13.1 gets the upstream’s own %i, its headers and its request id', async (status, type, kind) => {
    const body = JSON.stringify({ type: 'error', error: { type, message: 'not now' }, request_id: 'req_upstream' });
    gate.upstream.answer(() => ({ status, body, headers: { 'retry-after': '7' } }));
    const error: unknown = await ask(gate.client, asked).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(kind);
    expect(error).toMatchObject({ status, requestID: 'req_upstream', error: JSON.parse(body) as unknown });
    expect((error as { readonly headers: Headers }).headers.get('retry-after')).toBe('7');
  });

  it('R-13.1 gets an error of a later step, once the gateway has retried it', async () => {
    gate.upstream.answer((_asked, place) =>
      place === 0
        ? { blocks: [use('toolu_1', 'math_add', { a: 1, b: 2 })], stop: 'tool_use' }
        : { status: 529, body: '{"type":"error","error":{"type":"overloaded_error","message":"busy"}}' },
    );
    const error: unknown = await ask(gate.client, asked).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ error: { type: 'error', error: { type: 'overloaded_error', message: 'busy' } } });
    expect(gate.upstream.asked).toHaveLength(4);
  });
});

describe('R-13.1 the real @anthropic-ai/sdk', () => {
  let gate: Kit;
  beforeAll(async () => {
    gate = await kit();
  });
  afterAll(() => gate.close());

  it('R-13.1 runs its tool runner over the gateway', async () => {
    gate.upstream.answer((_asked, place) => {
      if (place === 0)
        return {
          blocks: [use('toolu_1', 'weather', { city: 'Helsinki' }), use('toolu_2', 'math_add', { a: 1, b: 2 })],
          stop: 'tool_use',
        };
      return { blocks: [said('Sunny, and 3')] };
    });
    const weather = betaZodTool({
      name: 'weather',
      description: 'Weather',
      inputSchema: z.object({ city: z.string() }),
      run: ({ city }) => `sunny in ${city}`,
    });
    const runner = gate.client.beta.messages.toolRunner({ ...asked, messages: [...asked.messages], tools: [weather] });
    expect(await runner.runUntilDone()).toMatchObject({ content: [said('Sunny, and 3')] });
    expect(gate.upstream.asked[1]?.body.messages.at(-1)?.content).toStrictEqual([
      { type: 'tool_result', tool_use_id: 'toolu_1', content: 'sunny in Helsinki' },
      { type: 'tool_result', tool_use_id: 'toolu_2', content: 'sum 3' },
    ]);
    expect(gate.upstream.faults).toStrictEqual([]);
  });

  it.each([
    ['at first', 0],
    ['after a step of tools', 1],
  ])('R-13.1 gets an error in the middle of a stream, %s', async (_when, failing) => {
    const error = { type: 'overloaded_error', message: 'Overloaded' };
    gate.upstream.answer((_asked, place) =>
      place === failing
        ? { breaksAfter: 4, error }
        : { blocks: [use('toolu_1', 'math_add', { a: 1, b: 2 })], stop: 'tool_use' },
    );
    const thrown: unknown = await gate.client.messages
      .stream(asked)
      .finalMessage()
      .catch((caught: unknown) => caught);
    expect(thrown).toBeInstanceOf(Anthropic.APIError);
    expect(thrown).toMatchObject({ error: { type: 'error', error } });
  });

  it('R-13.5 gets an error event when the upstream breaks off, and no half of an event', async () => {
    gate.upstream.answer(() => ({ breaksAfter: 4 }));
    const thrown: unknown = await gate.client.messages
      .stream(asked)
      .finalMessage()
      .catch((caught: unknown) => caught);
    expect(thrown).toMatchObject({ error: { type: 'error', error: { type: 'api_error' } } });
    expect(gate.log.at(-1)).toMatchObject({ level: 'error', fields: { kind: 'upstream_broken' } });
  });

  it('R-13.1 that goes away ends the upstream’s answer', async () => {
    gate.upstream.answer(() => ({ everyMs: 100 }));
    const stream = gate.client.messages.stream(asked);
    stream.on('streamEvent', () => stream.abort());
    await stream.finalMessage().catch(() => undefined);
    await until(() => gate.upstream.dropped === 1 && gate.gateway.running === 0);
  });

  it('R-13.1 that goes away cancels the gateway’s tools', async () => {
    calls.aborted.length = 0;
    gate.upstream.answer(() => ({ blocks: [said('wait'), use('toolu_1', 'slow')], stop: 'tool_use' }));
    const stream = gate.client.messages.stream(asked);
    stream.on('text', () => setTimeout(() => stream.abort(), 100));
    await stream.finalMessage().catch(() => undefined);
    await until(() => calls.aborted.length > 0 && gate.gateway.running === 0);
    expect(calls.aborted).toStrictEqual(['slow']);
    expect(gate.upstream.asked).toHaveLength(1);
  });

  it('R-13.1 hears pings while tools run', async () => {
    gate.upstream.answer((_asked, place) =>
      place === 0 ? { blocks: [use('toolu_1', 'hangs')], stop: 'tool_use' } : { blocks: [said('Done')] },
    );
    const text = await (await gate.post({ ...asked, stream: true })).text();
    const own = streamOf({ blocks: [said('Done')] });
    expect(text.split('event: ping').length - 1).toBeGreaterThanOrEqual(3);
    expect(text).toContain(own.slice(own.indexOf('event: content_block_start'), own.indexOf('event: message_delta')));
  });
});
