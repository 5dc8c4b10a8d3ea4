// Was: a call ran without its key, or with another input, where what a prepareCall hook gave could not be read; or its
// stream errored. Now: it is blocked.
import { createSpillway, tool } from 'spillway';
import { virtualRuntime } from 'spillway/testing';
import { expect, it } from 'vitest';

const unreadable = (): never => {
  throw new Error('not now');
};

it.each<[string, () => object]>([
  [
    'key',
    () => ({
      get idempotencyKey() {
        return unreadable();
      },
    }),
  ],
  [
    'input',
    () => ({
      get input() {
        return unreadable();
      },
    }),
  ],
  ['members', () => new Proxy({}, { has: unreadable })],
])(
  'R-11.1 a prepareCall hook blocks the call where the %s of its answer cannot be read',
  async (_what, prepareCall) => {
    const inputs: unknown[] = [];
    const pay = tool({ name: 'pay', policy: { effects: 'mutating' }, execute: (input) => inputs.push(input) });
    const spillway = createSpillway({ runtime: virtualRuntime(), tools: [pay], hooks: { prepareCall } });
    const { status, error } = await spillway.execute({ toolName: 'pay', input: { amount: 1 } });
    expect({ status, code: error?.code, message: error?.message }).toEqual({
      status: 'error',
      code: 'blocked',
      message: 'The call is blocked, since the answer of prepareCall cannot be read: not now',
    });
    expect(inputs).toEqual([]);
  },
);
