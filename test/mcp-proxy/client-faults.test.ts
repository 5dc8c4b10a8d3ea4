import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { SIDE_INSTALL_TIMEOUT_MS } from '../side-install.ts';
import { isAlive, until } from '../providers/support.ts';
import { NODE, ledger, type Ledger } from './kit.ts';
import { REAL_CLIENTS, loadLangChainMcp, type Connect, type RealClient } from './real-clients.ts';
import { behind } from './wire-kit.ts';

beforeAll(loadLangChainMcp, SIDE_INSTALL_TIMEOUT_MS);

const FAULTS = join(import.meta.dirname, 'fault-server.ts');
const CLIENTS = Object.entries(REAL_CLIENTS);

const opened = (connect: Connect, kept: Ledger, ...options: string[]): Promise<RealClient> =>
  connect(behind([NODE, FAULTS, kept.path], ...options));
const pidOf = async (client: RealClient): Promise<number> => Number(/\b\d+\b/.exec(await client.call('pid'))?.[0]);

describe('R-16.2 R-16.5 what befalls a server behind the clients of others', () => {
  it.each(CLIENTS)(
    'R-16.2 R-16.5 %s: killed, idle and in the middle of a read and of a payment',
    async (_, connect) => {
      using kept = ledger();
      const client = await opened(connect, kept);
      const before = await pidOf(client);
      // A client that asks for the newest era first may have started the server more than once.
      const starts = kept.count('started ');
      process.kill(before, 'SIGKILL');
      await until(() => kept.count('started ') > starts);
      expect(await pidOf(client)).not.toBe(before);
      expect(await client.call('look', { first: 'kill', times: 1 })).toContain('looked 2 times');
      expect(await client.call('pay', { amount: 7, then: 'kill' })).toContain('may have');
      expect(await client.call('pay', { amount: 8 })).toContain('paid 8');
      expect([kept.count('pay 7'), kept.count('pay 8')]).toEqual([1, 1]);
      await client.close();
    },
  );

  it.each(CLIENTS)('R-16.2 R-16.5 %s: flooded, that call and one beside it are answered', async (_, connect) => {
    using kept = ledger();
    const client = await opened(connect, kept);
    const [flooded, beside] = await Promise.all([client.call('flood', { count: 20_000 }), pidOf(client)]);
    expect(flooded).toContain('flooded');
    expect(beside).toBeGreaterThan(0);
    await client.close();
  });

  // Most of it is the proxy's wait for an answer to its ping.
  it.concurrent.each(CLIENTS)(
    'R-16.2 R-16.5 %s: frozen, the call ends at its limit, and the next one has another server',
    async (_, connect) => {
      using kept = ledger();
      const client = await opened(connect, kept, '--timeout', '2000');
      const before = await pidOf(client);
      const starts = kept.count('started ');
      expect(await client.call('pay', { amount: 7, then: 'freeze' })).toContain('may have');
      await until(() => kept.count('started ') > starts && !isAlive(before), 60_000);
      expect(await client.call('pay', { amount: 8 })).toContain('paid 8');
      expect(kept.count('pay 7')).toBe(1);
      await client.close();
    },
  );
});
