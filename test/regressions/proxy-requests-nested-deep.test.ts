// Was: a client's call with arguments nested 5,000 deep failed on its way to the server and was told as a failure of the
// tool; a few of them opened its breaker for every other client. Now: what nobody can write as JSON again is refused as
// the client's own mistake, and its tool is not asked.
import { expect, it } from 'vitest';
import { faults, ledger, proxied } from '../mcp-proxy/kit.ts';

const nested = (depth: number): unknown => {
  let value: unknown = 1;
  for (let at = 0; at < depth; at++) value = at % 2 === 0 ? [value] : { value };
  return value;
};

const call = (id: string, args: unknown) =>
  ({ jsonrpc: '2.0', id, method: 'tools/call', params: { name: 'pay', arguments: args } }) as never;

it('R-16.3 is refused with what to do about it, and the tool stays there for all', async () => {
  using kept = ledger();
  await using it = await proxied({ bank: faults(kept) });
  const answerTo = (id: string): unknown =>
    it.seen.find(({ from, message }) => from === 'server' && 'id' in message && message.id === id)?.message;
  for (let at = 0; at < 10; at++) await it.raw(call(`deep-${at}`, { amount: 1, more: nested(5_000) }));
  await it.raw({ jsonrpc: '2.0', method: 'notifications/progress', params: { more: nested(5_000) } } as never);
  await expect.poll(() => answerTo('deep-9')).toBeDefined();
  for (let at = 0; at < 10; at++)
    expect(answerTo(`deep-${at}`)).toMatchObject({
      error: {
        code: -32_602,
        message: 'The message is nested deeper than 512 levels, the most that is read; flatten it',
      },
    });
  await it.raw(call('flat', { amount: 2, more: nested(400) }));
  await expect.poll(() => JSON.stringify(answerTo('flat'))).toContain('paid 2');
  expect([kept.count('pay 1'), kept.count('pay 2')]).toEqual([0, 1]);
});
