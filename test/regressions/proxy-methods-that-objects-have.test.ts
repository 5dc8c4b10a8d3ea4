// Was: behind several servers a request whose method is a name that every object has was answered, as a list of
// nothing. Now: it is a method that nobody knows.
import { expect, it } from 'vitest';
import { faults, ledger, proxied } from '../mcp-proxy/kit.ts';

it.each(['constructor', '__proto__', 'toString'])('R-16.7 the method %s is not found', async (method) => {
  using kept = ledger();
  await using it = await proxied({ one: faults(kept), two: faults(kept) });
  const answer = (): unknown =>
    it.seen.find(({ from, message }) => from === 'server' && 'id' in message && message.id === 'x');
  Object.assign(it.client, { onerror: () => undefined });
  await it.raw({ jsonrpc: '2.0', id: 'x', method });
  await expect.poll(answer, { timeout: 30_000 }).toMatchObject({ message: { error: { code: -32_601 } } });
});
