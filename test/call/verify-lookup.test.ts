import {
  createSpillway,
  tool,
  ToolExecutionError,
  type AnyTool,
  type ToolPolicy,
  type ToolResultEnvelope,
} from 'spillway';
import type { VerifyPolicy } from 'spillway/contract';
import { virtualRuntime } from 'spillway/testing';
import { describe, expect, it } from 'vitest';

const LOOK = { tool: 'list_messages', input: { channel: '${input.channel}' }, settleMs: 0 } as const;
const BY_KEY: VerifyPolicy = { ...LOOK, done: { path: 'messages[*].key', equals: '${callKey}' } };

/** A message whose answer is lost, and what the list of messages says then. */
const sent = async (
  list: (input: unknown) => unknown,
  verify: VerifyPolicy,
  policy: ToolPolicy = { effects: 'read', retry: { maxAttempts: 1 } },
): Promise<{ readonly result: ToolResultEnvelope; readonly looked: unknown[]; readonly sends: number }> => {
  const runtime = virtualRuntime();
  const looked: unknown[] = [];
  let sends = 0;
  const send: AnyTool = {
    name: 'send_message',
    policy: { effects: 'mutating', verify, retry: { maxTotalTimeMs: 60_000, maxAttempts: 2 } },
    execute: () => {
      sends++;
      throw new Error('it broke off');
    },
  };
  const look = tool({
    name: 'list_messages',
    policy,
    execute: (input: unknown) => {
      looked.push(input);
      return list(input);
    },
  });
  const layer = createSpillway({ tools: [send, look], runtime });
  const result = layer.execute({ toolName: 'send_message', idempotencyKey: 'k7', input: { channel: 'ops' } });
  await runtime.run();
  return { result: await result, looked, sends };
};

describe('a verification by data', () => {
  it('R-18.3 finds what is in the answer of another tool, and its output there', async () => {
    const { result, looked, sends } = await sent(
      () => ({ messages: [{ key: 'k6' }, { key: 'k7' }], newest: { id: 42 } }),
      { ...BY_KEY, output: 'newest' },
    );
    expect(result).toMatchObject({ status: 'success', verified: 'done', output: { content: { id: 42 } } });
    expect(looked).toEqual([{ channel: 'ops' }]);
    expect(sends).toBe(1);
  });

  it('R-18.3 reads a text that is JSON, as tools over MCP give it', async () => {
    const { result } = await sent(() => '{"messages":[{"key":"k7"}]}', BY_KEY);
    expect(result).toMatchObject({ verified: 'done' });
  });

  it.each([
    ['an empty list', { messages: [] }],
    ['a list of others', { messages: [{ key: 'k1' }, {}] }],
  ])('R-18.3 %s is not done, and it is sent again', async (_what, answer) => {
    const { result, sends } = await sent(() => answer, BY_KEY);
    expect({ verified: result.verified, sends }).toEqual({ verified: 'not_done', sends: 2 });
  });

  it.each([
    ['no list', {}],
    ['something else for the list', { messages: 'none' }],
    ['a text', 'nothing found'],
    ['nothing', undefined],
  ])('R-18.3 %s is unknown, and nothing is sent again', async (_what, answer) => {
    const { result, sends } = await sent(() => answer, BY_KEY);
    expect({ verified: result.verified, sends }).toEqual({ verified: 'unknown', sends: 1 });
  });

  it('R-18.3 one that may be on another page is unknown where the author says so', async () => {
    const { result } = await sent(() => ({ messages: [] }), { ...BY_KEY, otherwise: 'unknown' });
    expect(result.verified).toBe('unknown');
  });

  it('R-18.3 without a value to compare, anything but nothing is done', async () => {
    const verify = { ...LOOK, done: { path: 'payment.id' } };
    expect((await sent(() => ({ payment: { id: 1 } }), verify)).result.verified).toBe('done');
    expect((await sent(() => ({ payment: { id: null } }), verify)).result.verified).toBe('not_done');
    expect((await sent(() => ({ payment: null }), verify)).result.verified).toBe('unknown');
  });

  it('R-18.3 a status that says that there is nothing is not done, and any other failure unknown', async () => {
    const failing = (status: number) => () => {
      throw new ToolExecutionError('execution_error', 'no', { status });
    };
    const verify = { ...BY_KEY, absentOn: [404] };
    expect((await sent(failing(404), verify)).result.verified).toBe('not_done');
    expect((await sent(failing(403), verify)).result.verified).toBe('unknown');
    expect((await sent(failing(404), BY_KEY)).result.verified).toBe('unknown');
  });

  it.each([
    ['that writes', { effects: 'mutating' as const }],
    ['that is not there', undefined],
  ])('R-18.3 nothing is looked up with a tool %s', async (_what, policy) => {
    const verify = policy === undefined ? { ...BY_KEY, tool: 'list_others' } : BY_KEY;
    const { result, looked } = await sent(() => ({ messages: [] }), verify, policy);
    expect({ verified: result.verified, looked }).toEqual({ verified: 'unknown', looked: [] });
  });

  it('R-18.3 an input without the part that is referred to is unknown', async () => {
    const { result, looked } = await sent(() => ({ messages: [] }), { ...BY_KEY, input: { to: '${input.to}' } });
    expect({ verified: result.verified, looked }).toEqual({ verified: 'unknown', looked: [] });
  });

  it.each([
    [{ path: 'a..b' }, /verify\.done\.path/],
    [{ path: 'a', equals: '${output.id}' }, /refers to none of input, callKey/],
    [{ path: 'a', equals: ['${input.}'] }, /verify\.done\.equals\[0\]/],
  ])('R-2.9 %j is refused when the layer is made', (done, message) => {
    const send: AnyTool = { name: 'send', policy: { verify: { tool: 'look', done } }, execute: () => 1 };
    expect(() => createSpillway({ tools: [send] })).toThrow(message);
  });
});
