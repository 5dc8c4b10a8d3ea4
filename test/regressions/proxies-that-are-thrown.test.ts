// Was: a tool that threw a proxy which was revoked, as sandboxes do, made `execute` reject with a TypeError of the
// engine, uncounted by the breaker. Now: it is a failure like any other, and a payment is made once.
import { createSpillway, tool } from 'spillway';
import { guardFunction, ToolFailure } from 'spillway/adapters/function';
import { expect, it } from 'vitest';

const revoked = (): unknown => {
  const { proxy, revoke } = Proxy.revocable({}, {});
  revoke();
  return proxy;
};
const hostile = (): unknown =>
  new Proxy(
    {},
    {
      getPrototypeOf: () => {
        throw new Error('none of your business');
      },
    },
  );

it.each([
  ['that is revoked', revoked],
  ['that does not say what it is', hostile],
])('R-8.2 R-2.5 a proxy %s is a failure of the tool', async (_name, made) => {
  let paid = 0;
  const execute = (): Promise<never> => {
    paid++;
    return Promise.reject(made());
  };
  const pay = tool({ name: 'pay', policy: { effects: 'mutating', breaker: { failureThreshold: 1 } }, execute });
  const spillway = createSpillway({ tools: [pay] });
  const { status, error } = await spillway.execute({ toolName: 'pay', input: {} });
  expect([status, error?.code, error?.uncertain, paid]).toEqual(['retriable_error', 'execution_error', true, 1]);
  await spillway.close();
  await expect(guardFunction('pay', execute)({})).rejects.toBeInstanceOf(ToolFailure);
  expect(paid).toBe(2);
});

it('R-1.2 with a verify of its own, too', async () => {
  const pay = tool({
    name: 'pay',
    policy: { effects: 'mutating' },
    execute: (): Promise<string> => Promise.reject(revoked()),
    verify: () => ({ done: true, output: 'paid' }),
  });
  const spillway = createSpillway({ tools: [pay] });
  const { status, error } = await spillway.execute({ toolName: 'pay', input: {} });
  expect([status, error]).toEqual(['success', undefined]);
  await spillway.close();
});
