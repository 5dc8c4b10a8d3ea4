// Was: tools, verify and compensate had the caller's own key, and of two tenants one was told the other's receipt.
// Now: the key that a resource is given is one tenant's.
import { createSpillway, type ToolContext } from 'spillway';
import { virtualRuntime } from 'spillway/testing';
import { expect, it } from 'vitest';

const keysOf = async (calls: ReadonlyArray<Readonly<Record<string, string>>>): Promise<string[]> => {
  const keys: string[] = [];
  const runtime = virtualRuntime();
  const execute = (_: unknown, { callKey }: ToolContext): void => void keys.push(callKey);
  const layer = createSpillway({ runtime, tools: [{ name: 'pay', policy: { effects: 'mutating' }, execute }] });
  for (const call of calls) {
    const settled = layer.execute({ toolName: 'pay', input: {}, ...call });
    await runtime.advance(1_000);
    await settled;
  }
  return keys;
};

it('IDEM-8 one key of two tenants is two keys for the resource, the same ones each time', async () => {
  const idempotencyKey = 'order-1';
  const calls = [
    { idempotencyKey, tenant: 'a' },
    { idempotencyKey, tenant: 'b' },
    { idempotencyKey, session: 'a' },
  ];
  const keys = await keysOf(calls);
  expect(new Set(keys).size).toBe(3);
  expect(keys.at(-1)).toBe('order-1');
  expect(await keysOf(calls)).toEqual(keys);
});

it('IDEM-8 a lost payment is not verified by the receipt of another tenant', async () => {
  const runtime = virtualRuntime();
  const ledger = new Map<string, string>();
  const layer = createSpillway({
    runtime,
    tools: [
      {
        name: 'pay',
        policy: { verify: { settleMs: 0 }, retry: { maxAttempts: 1 } },
        execute: (input: unknown, { callKey }) => {
          const { of, isLost } = input as { readonly of: string; readonly isLost: boolean };
          if (isLost) throw Object.assign(new Error('reset'), { code: 'ECONNRESET' });
          ledger.set(callKey, of);
        },
        verify: (_: unknown, { callKey }) => {
          const receipt = ledger.get(callKey);
          return receipt === undefined ? { done: false } : { done: true, output: receipt };
        },
      },
    ],
  });
  const pay = (tenant: string, isLost: boolean) =>
    layer.execute({ toolName: 'pay', input: { of: tenant, isLost }, idempotencyKey: 'order-1', tenant });
  const settled = Promise.all([pay('a', false), pay('b', true)]);
  await runtime.advance(60_000);
  const [, lost] = await settled;
  expect(lost).toMatchObject({ verified: 'not_done', attempts: 1 });
  expect(lost).not.toHaveProperty('output');
});
