// Was: a slip of a program that had paid (a failed assertion, a bad argument, an error of some name) counted as a
// refusal, and the alternative paid again. Now: it proves nothing.
import { strictEqual } from 'node:assert';
import { describe, expect, it } from 'vitest';
import { createSpillway, tool } from '../../src/index.ts';
import { guardTools } from '../../src/adapters/ai-sdk.ts';

const slips: Readonly<Record<string, () => unknown>> = {
  'an assertion that fails': () => strictEqual('paid', 'booked'),
  'an argument that Node refuses': () => Buffer.from(undefined as never),
  'an address that is none': () => new URL('receipt of 21 €'),
  'a class of error whose name says what was wrong': () => {
    throw Object.assign(new Error('receipt'), { name: 'ZodError' });
  },
  'a class of error that is called as a service’s code is': () => {
    throw Object.assign(new Error('receipt'), { name: 'ValidationError' });
  },
  'a class of error whose code says nothing': () => {
    throw Object.assign(new Error('receipt'), { name: 'ZodError', code: 'custom' });
  },
  'a name that a service has for what it does not find': () => {
    throw Object.assign(new Error('receipt'), { name: 'NoSuchKey' });
  },
  'JSON-RPC’s word for an output that does not fit': () => {
    throw Object.assign(new Error('Structured content does not match the tool’s output schema'), { code: -32602 });
  },
};

describe.each(Object.entries(slips))('%s, after the payment', (_, slip) => {
  it('R-2.5 leaves open whether the tool took effect, and no alternative does it again', async () => {
    const payments: string[] = [];
    const pay = (name: string, policy: object): ReturnType<typeof tool> =>
      tool({
        name,
        policy: { effects: 'mutating', ...policy },
        execute: () => {
          payments.push(name);
          slip();
        },
      });
    const spillway = createSpillway({ tools: [pay('pay', { alternatives: ['pay_by_card'] }), pay('pay_by_card', {})] });
    const { error } = await spillway.execute({ toolName: 'pay', input: {} });
    expect(payments).toEqual(['pay']);
    expect(error?.uncertain).toBe(true);
  });

  it('R-2.5 of a framework’s tool, too: its model reads that the tool may have taken effect', async () => {
    const tools = { pay: { execute: async () => slip() } };
    const text = await guardTools(tools).pay.execute().catch(String);
    expect(text).toMatch(/may have (run and )?taken effect/);
  });
});
