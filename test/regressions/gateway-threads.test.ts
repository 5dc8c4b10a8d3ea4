// Was: the SDK's tool runner, as it is by default, got 400 at its second request, also without any gateway tool. Now:
// its threads pass, or are declined as the API declines them.
import Anthropic from '@anthropic-ai/sdk';
import { betaZodTool } from '@anthropic-ai/sdk/helpers/beta/zod';
import { afterEach, describe, expect, it } from 'vitest';
import { z } from 'zod';
import type { AnthropicGatewayOptions } from 'spillway/gateway/anthropic';
import { asked, kit, mine, type Kit } from '../gateway/kit.ts';
import { said, use, wholeOf, type Asked, type Reply } from '../gateway/upstream.ts';

const gates: Kit[] = [];
afterEach(async () => {
  await Promise.all(gates.splice(0).map((gate) => gate.close()));
});
const open = async (options: Partial<AnthropicGatewayOptions> = {}): Promise<Kit> => {
  const gate = await kit(options);
  gates.push(gate);
  return gate;
};

const weather = betaZodTool({
  name: 'weather',
  description: 'Weather',
  inputSchema: z.object({ city: z.string() }),
  run: ({ city }) => `sunny in ${city}`,
});
const call = use('toolu_w', 'weather', { city: 'Helsinki' });
const result = { type: 'tool_result', tool_use_id: 'toolu_w', content: 'sunny in Helsinki' };

/** Answers that have ids of their own, as a thread needs them. */
const numbered =
  (...replies: readonly Reply[]): ((request: Asked, place: number) => Reply) =>
  (_, place) => ({ body: wholeOf(replies[place] ?? { blocks: [said('Done')] }, `msg_${place}`) });

describe('R-13.6 threads of the SDK, without tools of the gateway', () => {
  it('R-13.6 its tool runner runs by default', async () => {
    const gate = await open({ tools: [] });
    gate.upstream.answer(numbered({ blocks: [call], stop: 'tool_use' }, { blocks: [said('Sunny')] }));
    const runner = gate.client.beta.messages.toolRunner({ ...asked, messages: [...asked.messages], tools: [weather] });
    expect(await runner.runUntilDone()).toMatchObject({ content: [said('Sunny')] });
    const [first, second] = gate.upstream.asked;
    expect([first?.body['thread'], second?.body['thread']]).toStrictEqual([
      { type: 'create' },
      { type: 'continue', previous_message_id: 'msg_0' },
    ]);
    expect(second?.body.messages).toStrictEqual([{ role: 'user', content: [result] }]);
    expect(gate.upstream.asked).toHaveLength(2);
  });

  it('R-13.6 a thread goes on after a pause without a message, and each request passes to the byte', async () => {
    const gate = await open({ tools: [] });
    const search = { type: 'server_tool_use', id: 'srvtoolu_1', name: 'web_search', input: { q: 'x' } };
    gate.upstream.answer(numbered({ blocks: [search], stop: 'pause_turn' }, { blocks: [said('Found')] }));
    const thread = gate.client.beta.messages.thread({ model: 'm', max_tokens: 10 });
    await thread.send({ role: 'user', content: 'search' });
    expect(await thread.send()).toMatchObject({ content: [said('Found')] });
    expect(gate.upstream.asked[1]?.body.messages).toStrictEqual([]);
    const spelled =
      '{ "thread": {"type":"continue", "previous_message_id":"msg_1"}, "model":"m","max_tokens":10,"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_9","content":"ok"}]}] }';
    expect((await gate.post(spelled)).status).toBe(200);
    expect(gate.upstream.asked.at(-1)?.text).toBe(spelled);
  });

  it('R-13.3 what is malformed in what it brings is refused all the same', async () => {
    const gate = await open({ tools: [] });
    gate.upstream.answer(() => ({}));
    const send = async (fields: object): Promise<number> =>
      (await gate.post({ ...asked, thread: { type: 'continue', previous_message_id: 'msg_1' }, ...fields })).status;
    expect(await send({ messages: [{ role: 'user', content: [result, result] }] })).toBe(400);
    expect(await send({ messages: [{ role: 'user', content: [said('x'), result] }] })).toBe(400);
    expect(await send({ messages: [{ role: 'user', content: [{ ...result, content: 7 }] }] })).toBe(400);
    expect(
      await send({
        messages: [
          { role: 'user', content: 'a' },
          { role: 'assistant', content: 'b' },
          { role: 'user', content: [result] },
        ],
      }),
    ).toBe(400);
    expect(await send({ messages: [], thread: { type: 'create' } })).toBe(400);
    expect(await send({ messages: [], thread: null })).toBe(400);
    expect(gate.upstream.asked).toHaveLength(0);
  });
});

describe('R-13.6 threads of the SDK, with tools of the gateway', () => {
  it.each([false, true])(
    'R-13.6 its tool runner, as it is by default, goes on without one, and both sides’ tools run (stream: %s)',
    async (stream) => {
      const gate = await open();
      gate.upstream.answer((_, place) =>
        place === 0
          ? { blocks: [call, use('toolu_g', 'math_add', { a: 1, b: 2 })], stop: 'tool_use' }
          : { blocks: [said('Sunny, and 3')] },
      );
      const runner = gate.client.beta.messages.toolRunner({
        ...asked,
        messages: [...asked.messages],
        tools: [weather],
        stream,
      });
      expect(await runner.runUntilDone()).toMatchObject({ content: [said('Sunny, and 3')] });
      expect(gate.upstream.asked.map(({ body }) => body['thread'])).toStrictEqual([undefined, undefined]);
      expect(gate.upstream.asked[1]?.body.messages.at(-1)?.content).toStrictEqual([
        result,
        { type: 'tool_result', tool_use_id: 'toolu_g', content: 'sum 3' },
      ]);
      expect(gate.upstream.faults).toStrictEqual([]);
    },
  );

  it('R-13.6 a thread that was begun elsewhere is declined by the API’s own code, too', async () => {
    const gate = await open();
    gate.upstream.answer(() => ({}));
    const response = await gate.post({
      ...asked,
      thread: { type: 'continue', previous_message_id: 'msg_1' },
      messages: [{ role: 'user', content: [result] }],
    });
    expect(response.status).toBe(400);
    expect(await response.json()).toMatchObject({
      error: {
        type: 'invalid_request_error',
        details: { error_code: 'thread_unsupported_request', unsupported: ['tools'] },
      },
    });
    const thrown: unknown = await gate.client.beta.messages
      .thread({ model: 'm', max_tokens: 10 })
      .send({ role: 'user', content: 'go' })
      .catch((error: unknown) => error);
    expect(thrown).toBeInstanceOf(Anthropic.ThreadUnsupportedRequestError);
    expect(gate.upstream.asked).toHaveLength(0);
    expect(gate.log.every(({ level }) => level === 'info')).toBe(true);
  });

  it('R-13.6 `thread: null` is no thread', async () => {
    const gate = await open();
    gate.upstream.answer(() => ({}));
    expect((await gate.post({ ...asked, tools: [mine], thread: null })).status).toBe(200);
  });
});
