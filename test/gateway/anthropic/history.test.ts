import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { tool } from 'spillway';
import { asked, calls, kit, mine, until, type Kit } from '../kit.ts';
import { said, thought, use, type Reply } from '../upstream.ts';

const sum = use('toolu_1', 'math_add', { a: 1, b: 2 });
const sumResult = { type: 'tool_result', tool_use_id: 'toolu_1', content: 'sum 3' };
const overloaded: Reply = {
  status: 529,
  body: '{"type":"error","error":{"type":"overloaded_error","message":"busy"}}',
};
const script =
  (...replies: readonly Reply[]): ((asked: unknown, place: number) => Reply) =>
  (_, place) =>
    replies[Math.min(place, replies.length - 1)] ?? {};

describe('R-13.4 what the client does not see', () => {
  let gate: Kit;
  beforeEach(async () => {
    gate = await kit();
  });
  afterEach(() => gate.close());
  const messagesOf = (place: number): readonly unknown[] => gate.upstream.asked[place]?.body.messages ?? [];

  it('R-13.4 is put back into its history, whichever way the client stores it', async () => {
    gate.upstream.answer(
      script({ blocks: [thought('hm'), said('Let me add. '), sum], stop: 'tool_use' }, { blocks: [said('It is 3.')] }),
    );
    const first = await gate.client.messages.create(asked);
    const ways: ReadonlyArray<readonly unknown[] | string> = [
      first.content,
      'Let me add. It is 3.',
      [said('Let me add.'), { ...said('It is 3.'), cache_control: { type: 'ephemeral' } }],
    ];
    for (const content of ways) {
      await gate.post({
        ...asked,
        messages: [...asked.messages, { role: 'assistant', content }, { role: 'user', content: 'and?' }],
      });
      expect(gate.upstream.asked.at(-1)?.body.messages, JSON.stringify(content)).toStrictEqual([
        ...asked.messages,
        { role: 'assistant', content: [thought('hm'), said('Let me add. '), sum] },
        { role: 'user', content: [sumResult] },
        { role: 'assistant', content: [said('It is 3.')] },
        { role: 'user', content: 'and?' },
      ]);
    }
    // Another conversation that happens to say the same.
    await gate.post({
      ...asked,
      messages: [
        { role: 'user', content: 'else' },
        { role: 'assistant', content: first.content },
        { role: 'user', content: 'and?' },
      ],
    });
    expect(gate.upstream.asked.at(-1)?.body.messages).toHaveLength(3);
    expect(gate.upstream.faults).toStrictEqual([]);
  });

  it('R-13.4 stays in place turn after turn', async () => {
    gate.upstream.answer((_asked, place) =>
      place % 3 === 0
        ? { blocks: [use(`toolu_g${place}`, 'math_add', { a: place, b: 0 })], stop: 'tool_use' }
        : place % 3 === 1
          ? {
              blocks: [use(`toolu_m${place}`, 'mine'), use(`toolu_h${place}`, 'math_add', { a: 0, b: 0 })],
              stop: 'tool_use',
            }
          : { blocks: [said('ok')] },
    );
    const messages: Array<{ role: 'user' | 'assistant'; content: unknown }> = [{ role: 'user', content: 'go' }];
    for (let turn = 0; turn < 4; turn++) {
      const called = (await (await gate.post({ ...asked, tools: [mine], messages })).json()) as {
        content: ReadonlyArray<{ id: string }>;
      };
      messages.push(
        { role: 'assistant', content: called.content },
        {
          role: 'user',
          content: called.content.map(({ id }) => ({ type: 'tool_result', tool_use_id: id, content: 'mine' })),
        },
      );
      const done = (await (await gate.post({ ...asked, tools: [mine], messages })).json()) as { content: unknown };
      messages.push({ role: 'assistant', content: done.content }, { role: 'user', content: 'more' });
    }
    expect(gate.upstream.faults).toStrictEqual([]);
    // Each upstream request begins with all of the one before it: nothing that is cached is lost.
    gate.upstream.asked
      .slice(1)
      .forEach(({ body }, at) =>
        expect(
          JSON.stringify(body.messages).startsWith(JSON.stringify(gate.upstream.asked[at]?.body.messages).slice(0, -1)),
        ).toBe(true),
      );
    expect(messagesOf(11)).toHaveLength(4 * 6 - 1);
  });

  it('R-13.4 is not lost when a later step fails: the same request goes on from there', async () => {
    gate.upstream.answer(
      script({ blocks: [sum], stop: 'tool_use' }, overloaded, overloaded, overloaded, { blocks: [said('It is 3.')] }),
    );
    expect((await gate.post(asked)).status).toBe(529);
    expect(calls.inputs).toHaveLength(1);
    expect(await (await gate.post(asked)).json()).toMatchObject({ content: [said('It is 3.')] });
    expect(calls.inputs).toHaveLength(1);
    expect(messagesOf(4)).toStrictEqual([
      ...asked.messages,
      { role: 'assistant', content: [sum] },
      { role: 'user', content: [sumResult] },
    ]);
    // Asked anew once it has succeeded, it is done anew.
    gate.upstream.answer(script({ blocks: [said('Again')] }));
    await gate.post(asked);
    expect(messagesOf(0)).toHaveLength(1);
    expect(gate.upstream.faults).toStrictEqual([]);
  });

  it('R-13.4 a stream that failed goes on when the SDK retries it', async () => {
    gate.upstream.answer(
      script({ blocks: [sum], stop: 'tool_use' }, { breaksAfter: 3 }, { blocks: [said('It is 3.')] }),
    );
    await gate.client.messages
      .stream(asked)
      .finalMessage()
      .catch(() => undefined);
    expect(await gate.client.messages.stream(asked).finalMessage()).toMatchObject({ content: [said('It is 3.')] });
    expect(messagesOf(2)).toStrictEqual([
      ...asked.messages,
      { role: 'assistant', content: [sum] },
      { role: 'user', content: [sumResult] },
    ]);
  });

  it('R-13.4 a client that went away in the middle finds what was done when it comes back', async () => {
    gate.upstream.answer(script({ blocks: [sum], stop: 'tool_use' }, { blocks: [said('It is 3.')], everyMs: 100 }));
    const stream = gate.client.messages.stream(asked);
    stream.on('text', () => stream.abort());
    await stream.finalMessage().catch(() => undefined);
    await until(() => gate.gateway.running === 0);
    await gate.client.messages.stream(asked).finalMessage();
    expect(messagesOf(2)).toHaveLength(3);
    // What the upstream will not take at all is not tried again.
    gate.upstream.answer(script({ blocks: [sum], stop: 'tool_use' }, { status: 400, body: '{}' }, {}));
    const other = { ...asked, max_tokens: 7 };
    expect((await gate.post(other)).status).toBe(400);
    await gate.post(other);
    expect(messagesOf(2)).toHaveLength(1);
  });

  it.each([false, true])(
    'R-13.1 calls in an answer that was cut off are neither made nor shown (stream: %s)',
    async (stream) => {
      gate.upstream.answer(script({ blocks: [said('Let me'), sum], stop: 'max_tokens' }));
      const message = stream
        ? await gate.client.messages.stream(asked).finalMessage()
        : await gate.client.messages.create(asked);
      expect(message).toMatchObject({ stop_reason: 'max_tokens', content: [said('Let me')] });
      expect(calls.inputs).toHaveLength(0);
    },
  );

  it.each([false, true])(
    'R-13.1 an answer that pauses after tools have run goes on by itself (stream: %s)',
    async (stream) => {
      const search = { type: 'server_tool_use', id: 'srvtoolu_1', name: 'web_search', input: { q: 'x' } };
      gate.upstream.answer(
        script(
          { blocks: [sum], stop: 'tool_use' },
          { blocks: [said('Searching'), search], stop: 'pause_turn' },
          { blocks: [said('Found'), use('toolu_2', 'math_add', { a: 2, b: 2 })], stop: 'tool_use' },
          { blocks: [said('Done')] },
        ),
      );
      const message = stream
        ? await gate.client.messages.stream(asked).finalMessage()
        : await gate.client.messages.create(asked);
      expect(message).toMatchObject({
        stop_reason: 'end_turn',
        content: [said('Searching'), search, said('Found'), said('Done')],
      });
      expect(messagesOf(2).at(-1)).toStrictEqual({ role: 'assistant', content: [said('Searching'), search] });
      expect(messagesOf(3).slice(-2)[0]).toStrictEqual({
        role: 'assistant',
        content: [said('Searching'), search, said('Found'), use('toolu_2', 'math_add', { a: 2, b: 2 })],
      });
      expect(gate.upstream.faults).toStrictEqual([]);
    },
  );

  it('R-13.1 a client’s tool keeps its name, and the gateway’s gets another', async () => {
    gate.upstream.answer(
      script({ blocks: [use('toolu_1', 'math_add'), use('toolu_2', 'math_add_2', { a: 1, b: 2 })], stop: 'tool_use' }),
    );
    const response = await gate.post({ ...asked, tools: [{ ...mine, name: 'math_add' }] });
    expect(await response.json()).toMatchObject({ content: [use('toolu_1', 'math_add')], stop_reason: 'tool_use' });
    expect(gate.upstream.faults).toStrictEqual([]);
    expect(calls.inputs).toStrictEqual([{ a: 1, b: 2 }]);
  });

  it('R-13.1 input that is no JSON is told to the model, as what it wrote', async () => {
    gate.upstream.answer(
      script({ blocks: [{ ...sum, json: '{"a":1' }], stop: 'tool_use' }, { blocks: [said('Again')] }),
    );
    await gate.client.messages.stream(asked).finalMessage();
    expect(messagesOf(1).slice(1)).toMatchObject([
      { content: [{ ...sum, input: { $unparsed: '{"a":1' } }] },
      { content: [{ is_error: true, content: expect.stringContaining('not JSON') as string }] },
    ]);
  });

  it('R-13.1 a run of code goes on in its container', async () => {
    const body = JSON.stringify({
      id: 'm',
      type: 'message',
      role: 'assistant',
      content: [sum],
      stop_reason: 'tool_use',
      usage: {},
      container: { id: 'container_1', expires_at: 'x' },
    });
    gate.upstream.answer(script({ status: 200, body }, { blocks: [said('Done')] }));
    await gate.post(asked);
    expect(gate.upstream.asked[1]?.body['container']).toBe('container_1');
  });

  it('R-13.1 a model that goes on calling tools is stopped, and answers', async () => {
    const few = await kit({ limits: { steps: 3 } });
    few.upstream.answer((_asked, place) =>
      place < 2
        ? { blocks: [use(`toolu_${place}`, 'math_add', { a: place, b: 0 })], stop: 'tool_use' }
        : { blocks: [said('Enough')] },
    );
    expect(await (await few.post({ ...asked, tool_choice: { type: 'auto' } })).json()).toMatchObject({
      content: [said('Enough')],
    });
    expect(few.upstream.asked.map(({ body }) => body['tool_choice'])).toStrictEqual([
      { type: 'auto' },
      { type: 'auto' },
      { type: 'none' },
    ]);
    await few.close();
  });

  it('R-13.2 an output that is too long is cut, and one that is empty is told so', async () => {
    const odd = [tool({ name: 'long', execute: () => 'x'.repeat(1_000) }), tool({ name: 'empty', execute: () => '' })];
    const cut = await kit({ tools: odd, limits: { outputChars: 100 } });
    cut.upstream.answer(script({ blocks: [use('toolu_1', 'long'), use('toolu_2', 'empty')], stop: 'tool_use' }, {}));
    await cut.post(asked);
    const [long, empty] = (cut.upstream.asked[1]?.body.messages.at(-1)?.content ?? []) as unknown as ReadonlyArray<{
      content: string;
    }>;
    expect(long?.content).toMatch(/^x{100}\n\n\[Cut: the first 100 of 1000/);
    expect(empty?.content).toBe('(no output)');
    await cut.close();
  });
});

describe('R-13.5 drain', () => {
  it('R-13.5 lets turns end, and refuses what comes meanwhile', async () => {
    const gate = await kit();
    gate.upstream.answer(script({ blocks: [said('slowly')], everyMs: 60 }));
    const turn = gate.post({ ...asked, stream: true }).then((response) => response.text());
    await until(() => gate.gateway.running === 1);
    const drained = gate.gateway.drain(5_000);
    const refused = await gate.post(asked);
    expect([refused.status, refused.headers.get('retry-after')]).toStrictEqual([503, '1']);
    expect(await refused.json()).toMatchObject({ error: { type: 'overloaded_error' } });
    expect(await turn).toContain('message_stop');
    await drained;
    await gate.close();
  });

  it('R-13.5 harvests what runs too long: tools canceled, finished results kept, the client told', async () => {
    const gate = await kit();
    gate.upstream.answer(script({ blocks: [sum, use('toolu_2', 'slow')], stop: 'tool_use' }));
    const turn = gate.post({ ...asked, stream: true }).then((response) => response.text());
    await until(() => calls.inputs.length === 1);
    await gate.drain(50);
    expect(await turn).toMatch(/event: error\ndata: \{"type":"error","error":\{"type":"overloaded_error"/);
    expect(calls.aborted).toStrictEqual(['slow']);
    expect(gate.gateway.metrics.text()).toContain('spillway_gateway_state_stores_total 1\n');
    await gate.close();
  });

  it('R-13.5 harvests a mixed step into an answer that can be answered', async () => {
    const gate = await kit();
    gate.upstream.answer(script({ blocks: [use('toolu_1', 'mine'), use('toolu_2', 'slow')], stop: 'tool_use' }));
    const turn = gate.post({ ...asked, tools: [mine] }).then((response) => response.json());
    await until(() => calls.begun.includes('slow'));
    await gate.drain(0);
    expect(await turn).toMatchObject({ stop_reason: 'tool_use', content: [use('toolu_1', 'mine')] });
    await gate.close();
  });
});
