// Was: a tool_choice that forces a call was sent at every step, so the model had to go on calling. Now: it holds until
// a tool of the gateway has been called for it.
import { afterEach, describe, expect, it } from 'vitest';
import { asked, kit, mine, type Kit } from '../gateway/kit.ts';
import { said, use, type Reply } from '../gateway/upstream.ts';

const sum: Reply = { blocks: [use('toolu_1', 'math_add', { a: 1, b: 2 })], stop: 'tool_use' };

describe('a tool_choice that forces a call', () => {
  let gate: Kit;
  afterEach(() => gate.close());
  const choices = async (choice: unknown, ...replies: readonly Reply[]): Promise<unknown[]> => {
    gate = await kit();
    gate.upstream.answer((_, place) => replies[place] ?? { blocks: [said('Done')] });
    expect((await gate.post({ ...asked, tools: [mine], tool_choice: choice })).status).toBe(200);
    expect(gate.upstream.faults).toStrictEqual([]);
    return gate.upstream.asked.map(({ body }) => body['tool_choice']);
  };

  it('R-13.1 any: holds until a tool of the gateway has been called for it', async () => {
    const any = { type: 'any', disable_parallel_tool_use: true };
    expect(await choices(any, sum)).toStrictEqual([any, { disable_parallel_tool_use: true, type: 'auto' }]);
  });

  it('R-13.1 tool, one of the gateway: holds until that tool has been called', async () => {
    const again: Reply = { blocks: [use('toolu_2', 'math_add', { a: 3, b: 4 })], stop: 'tool_use' };
    expect(await choices({ type: 'tool', name: 'math_add' }, sum, again)).toStrictEqual([
      { type: 'tool', name: 'math_add' },
      { type: 'auto' },
      { type: 'auto' },
    ]);
  });

  it('R-13.1 tool, one of the client: no tool of the gateway stands for it', async () => {
    const own = { type: 'tool', name: 'mine' };
    expect(await choices(own, sum, { blocks: [use('toolu_2', 'mine')], stop: 'tool_use' })).toStrictEqual([own, own]);
  });

  it.each([{ type: 'auto' }, { type: 'none' }])('R-13.1 %j: holds for all steps', async (choice) => {
    expect(await choices(choice, sum)).toStrictEqual([choice, choice]);
  });

  it('R-13.1 a request that goes on from where it failed is not forced anew', async () => {
    const overloaded: Reply = { status: 529, body: '{}' };
    gate = await kit({ upstreamRetry: { maxAttempts: 1 } });
    const replies = [sum, overloaded, {}];
    gate.upstream.answer((_, place) => replies[place] ?? {});
    const forced = { ...asked, tool_choice: { type: 'any' } };
    expect([(await gate.post(forced)).status, (await gate.post(forced)).status]).toStrictEqual([529, 200]);
    expect(gate.upstream.asked.map(({ body }) => body['tool_choice'])).toStrictEqual([
      { type: 'any' },
      { type: 'auto' },
      { type: 'auto' },
    ]);
  });
});
