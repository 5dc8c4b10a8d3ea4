import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { memoryConversationState } from 'spillway/gateway/anthropic';
import { asked, faultyState, kit, mine, type FaultyState, type Kit } from '../kit.ts';
import { said, use } from '../upstream.ts';

const own = { ...asked, tools: [mine] };
const called = [use('toolu_1', 'mine'), use('toolu_2', 'math_add', { a: 1, b: 2 })];
const back = {
  ...own,
  messages: [
    ...asked.messages,
    { role: 'assistant', content: [called[0]] },
    { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'toolu_1', content: 'mine' }] },
  ],
};

interface ErrorBody {
  readonly type: string;
  readonly error: { readonly type: string; readonly message: string };
}

describe('R-13.4 PROXY’s four test strategies', () => {
  let gate: Kit;
  let state: FaultyState;
  beforeEach(async () => {
    state = faultyState(memoryConversationState());
    gate = await kit({ state });
    gate.upstream.answer((_, place) =>
      place === 0 ? { blocks: called, stop: 'tool_use' } : { blocks: [said('Done')] },
    );
  });
  afterEach(() => gate.close());

  it('R-13.2 PROXY 1: a tool that fails gives a tool_result with is_error: true', async () => {
    gate.upstream.answer((_, place) =>
      place === 0 ? { blocks: [use('toolu_1', 'fails')], stop: 'tool_use' } : { blocks: [said('Sorry')] },
    );
    expect((await gate.post(asked)).status).toBe(200);
    const [result] = (gate.upstream.asked[1]?.body.messages.at(-1)?.content ?? []) as ReadonlyArray<
      Record<string, unknown>
    >;
    expect(result).toStrictEqual({
      type: 'tool_result',
      tool_use_id: 'toolu_1',
      content: 'The tool ran and failed. You can try again.',
      is_error: true,
    });
    expect(gate.log).toMatchObject([
      { level: 'warn', fields: { kind: 'tool_failed', tool: 'fails', tool_error: 'execution_error' } },
    ]);
  });

  it.each([
    ['without a tool_use_id', { type: 'tool_result', content: 'mine' }],
    ['of a bad structure', { type: 'tool_result', tool_use_id: 'toolu_1', content: { text: 'mine' } }],
  ])('R-13.3 PROXY 2: a tool_result %s gives 400 invalid_request_error', async (_, block) => {
    await gate.post(own);
    const response = await gate.post({
      ...back,
      messages: [...back.messages.slice(0, 2), { role: 'user', content: [block] }],
    });
    expect(response.status).toBe(400);
    expect(await response.json()).toMatchObject({ type: 'error', error: { type: 'invalid_request_error' } });
    expect(gate.upstream.asked).toHaveLength(1);
  });

  it('R-13.4 PROXY 3: a retrieval that fails is retried twice, then gives 500 api_error', async () => {
    await gate.post(own);
    state.asked.retrieve = 0;
    state.fail.retrieve = 99;
    const response = await gate.post(back);
    expect(response.status).toBe(500);
    expect(((await response.json()) as ErrorBody).error.type).toBe('api_error');
    expect(state.asked.retrieve).toBe(3);
    expect(gate.log.at(-1)).toMatchObject({ level: 'error', fields: { kind: 'state_unavailable' } });
    expect(gate.gateway.metrics.text()).toContain('spillway_gateway_state_retrieval_failures_total 1\n');
    expect(gate.upstream.asked).toHaveLength(1);
  });

  it('R-13.4 PROXY 3: a retrieval that fails twice and then answers is as if nothing had been', async () => {
    await gate.post(own);
    state.fail.retrieve = 2;
    expect((await gate.post(back)).status).toBe(200);
    expect(gate.upstream.asked[1]?.body.messages).toHaveLength(3);
    expect(gate.upstream.faults).toStrictEqual([]);
  });

  it('R-13.4 PROXY 3: an id that the state does not know gives 500 api_error', async () => {
    const response = await gate.post(back);
    expect(response.status).toBe(500);
    const { error } = (await response.json()) as ErrorBody;
    expect(error.type).toBe('api_error');
    expect(error.message).toContain('messages.1');
    expect(gate.upstream.asked).toHaveLength(0);
  });

  it('R-13.4 PROXY 3: the same without a state that could have known it passes, where the host says so', async () => {
    const lax = await kit({ unknownCalls: 'pass' });
    lax.upstream.answer(() => ({}));
    expect((await lax.post(back)).status).toBe(200);
    await lax.close();
  });

  it.each([false, true])(
    'R-13.4 PROXY 4: storing that fails is retried twice, logged, counted and warned of, and the answer arrives (stream: %s)',
    async (stream) => {
      state.fail.store = 99;
      const response = await gate.post({ ...own, stream });
      expect(response.status).toBe(200);
      const text = await response.text();
      expect(text).toContain('toolu_1');
      expect(text).toContain('"spillway_warning":"The conversation state could not be stored');
      if (!stream) expect(response.headers.get('x-spillway-warning')).toContain('could not be stored');
      expect(state.asked.store).toBe(3);
      expect(gate.log.at(-1)).toMatchObject({
        level: 'error',
        fields: { kind: 'storage_failed', tool_use_ids: ['toolu_1'] },
      });
      expect(gate.gateway.metrics.text()).toContain('spillway_gateway_state_store_failures_total 1\n');
      // What was warned of.
      expect((await gate.post(back)).status).toBe(500);
    },
  );

  it('R-13.4 PROXY 4: the warning disturbs no client', async () => {
    state.fail.store = 99;
    gate.upstream.answer(() => ({ blocks: called, stop: 'tool_use' }));
    const message = await gate.client.messages.stream({ ...asked, tools: [mine] }).finalMessage();
    expect(message).toMatchObject({ stop_reason: 'tool_use', content: [called[0]] });
  });

  it('R-13.4 storing that fails twice and then succeeds leaves no warning', async () => {
    state.fail.store = 2;
    const response = await gate.post(own);
    expect(response.headers.has('x-spillway-warning')).toBe(false);
    expect((await gate.post(back)).status).toBe(200);
  });

  it('R-13.4 state does not cross keys', async () => {
    await gate.post(own);
    expect((await gate.post(back, { 'x-api-key': 'another' })).status).toBe(500);
    expect((await gate.post(back)).status).toBe(200);
  });
});
