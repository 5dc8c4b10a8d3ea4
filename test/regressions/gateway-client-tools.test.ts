// Was: a gateway tool ran in the place of a toolset's member, or of a tool that the client had added in
// mid-conversation. Now: such calls are the client's.
import { afterEach, describe, expect, it } from 'vitest';
import { tool } from 'spillway';
import { asked, kit, type Kit } from '../gateway/kit.ts';
import { said, use } from '../gateway/upstream.ts';

let ran = 0;
const navigate = tool({ name: 'navigate', execute: () => `ran ${++ran}` });
const browser = tool({ name: 'browser', execute: () => `ran ${++ran}` });

let gate: Kit | undefined;
afterEach(async () => {
  await gate?.close();
});
const begin = async (): Promise<Kit> => {
  ran = 0;
  gate = await kit({ tools: [navigate, browser] });
  return gate;
};

describe('R-13.6 calls of the client’s own tools', () => {
  it.each([false, true])('R-13.6 of a toolset go to the client, whatever their name (stream: %s)', async (stream) => {
    const { upstream, client } = await begin();
    const own = { ...use('toolu_1', 'navigate', { url: 'x' }), toolset_name: 'browser' };
    upstream.answer(() => ({ blocks: [own], stop: 'tool_use' }));
    const body = { ...asked, betas: [], tools: [{ type: 'browser_toolset_20260801' as const }] };
    const message = stream
      ? await client.beta.messages.stream(body).finalMessage()
      : await client.beta.messages.create(body);
    expect(message).toMatchObject({ stop_reason: 'tool_use', content: [own] });
    expect(ran).toBe(0);
    expect(upstream.asked).toHaveLength(1);
  });

  it('R-13.6 of a toolset by its own name, where the model errs, go to the client', async () => {
    const { upstream, post } = await begin();
    upstream.answer(() => ({ blocks: [use('toolu_1', 'browser')], stop: 'tool_use' }));
    const response = await post({ ...asked, tools: [{ type: 'browser_toolset_20260801' }] });
    expect(await response.json()).toMatchObject({ stop_reason: 'tool_use', content: [use('toolu_1', 'browser')] });
    expect(ran).toBe(0);
  });

  const definition = { name: 'navigate', input_schema: { type: 'object' } };
  const additions: ReadonlyArray<readonly [string, object]> = [
    ['defined in a message', { type: 'tool_addition', tool: { type: 'tool_definition', definition } }],
    ['named in a message', { type: 'tool_addition', tool: { type: 'tool_reference', name: 'navigate' } }],
    [
      'told by a summary',
      {
        type: 'compaction',
        content: 'so far',
        tool_changes: [{ type: 'tool_addition', tool: { type: 'tool_definition', definition } }],
      },
    ],
  ];
  it.each(additions)('R-13.6 of a tool %s go to the client, and the gateway’s has another name', async (_, block) => {
    const { upstream, post } = await begin();
    upstream.answer((_asked, place) =>
      place === 0
        ? { blocks: [use('toolu_1', 'navigate_2')], stop: 'tool_use' }
        : { blocks: [said('ok'), use('toolu_2', 'navigate')], stop: 'tool_use' },
    );
    const response = await post({
      ...asked,
      messages: [...asked.messages, { role: 'system', content: [block] }, { role: 'user', content: 'on' }],
    });
    expect(await response.json()).toMatchObject({
      stop_reason: 'tool_use',
      content: [said('ok'), use('toolu_2', 'navigate')],
    });
    expect(upstream.asked[0]?.body.tools?.map(({ name }) => name)).toStrictEqual(['navigate_2', 'browser']);
    expect(ran).toBe(1);
  });
});
