import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { folder, spillway } from '../cli/support.ts';
import { startRedis, type RedisServer } from '../stores/redis/server.ts';
import { ledger, type Ledger } from './kit.ts';
import { behind, opening, rawServer, type Command, type Json, type RawServer } from './wire-kit.ts';

let redis: RedisServer;
beforeAll(async () => {
  redis = await startRedis({ tcp: true });
});
afterAll(() => redis.stop());

const FAULTS = join(import.meta.dirname, 'fault-server.ts');
const faulty = (kept: Ledger): Command => [process.execPath, FAULTS, kept.path];

const opened = async (command: Command, env: Record<string, string> = {}): Promise<RawServer> => {
  const server = rawServer(command, { env });
  for (const [method, params] of opening()) {
    if (method.startsWith('notifications/')) server.say({ method, ...(params === undefined ? {} : { params }) });
    else await server.ask(method, params);
  }
  return server;
};

const pay = async (server: RawServer, key: string, input: Json = { amount: 7 }): Promise<string> =>
  JSON.stringify(
    await server.ask('tools/call', { name: 'pay', arguments: input, _meta: { 'spillway/idempotencyKey': key } }),
  );

describe('R-16.1 keys in a store', () => {
  it('R-16.1 hold over proxies and restarts: what was paid under a key is not paid again', async () => {
    using kept = ledger();
    const url = `redis://127.0.0.1:${redis.port}/0?prefix=one:`;
    const [first, second] = await Promise.all([
      opened(behind(faulty(kept), '--store', url)),
      opened(behind(faulty(kept)), { SPILLWAY_STORE: url }),
    ]);
    const both = await Promise.all([pay(first, 'order-1'), pay(second, 'order-1')]);
    for (const answer of both) expect(answer).toContain('paid 7');
    await Promise.all([first.end(), second.end()]);
    const again = await opened(behind(faulty(kept), '--store', url));
    expect(await pay(again, 'order-1')).toContain('paid 7');
    expect(await pay(again, 'order-1', { amount: 8 })).toContain('"isError":true');
    expect(kept.count('pay 7')).toBe(1);
    expect(kept.count('pay 8')).toBe(0);
    await again.end();
  });

  it('R-16.1 a payment that may have been made is not made again by the next proxy', async () => {
    using kept = ledger();
    const url = `redis://127.0.0.1:${redis.port}/0?prefix=two:`;
    const first = await opened(behind(faulty(kept), '--store', url));
    expect(await pay(first, 'order-2', { amount: 9, then: 'kill' })).toContain('may have');
    await first.end();
    const again = await opened(behind(faulty(kept), '--store', url));
    expect(await pay(again, 'order-2', { amount: 9, then: 'kill' })).toContain('may have');
    expect(kept.count('pay 9')).toBe(1);
    await again.end();
  });

  it('R-16.1 a store that comes back is used again, and meanwhile nothing with a key runs', async () => {
    using kept = ledger();
    const url = `redis://127.0.0.1:${redis.port}/0?prefix=three:`;
    const server = await opened(behind(faulty(kept), '--store', url));
    await redis.kill('SIGKILL');
    expect(await pay(server, 'order-3')).toContain('"isError":true');
    expect(kept.count('pay 7')).toBe(0);
    await redis.start();
    let answer = '';
    while (!answer.includes('paid 7')) answer = await pay(server, 'order-3');
    expect(kept.count('pay 7')).toBe(1);
    await server.end();
  });

  it('R-16.8 one that cannot be had is told before anything starts, without its password', async () => {
    using files = folder();
    const command = ['--', process.execPath, FAULTS, join(files.path, 'ledger')];
    const gone = await spillway('mcp', '--store', 'redis://:secret@127.0.0.1:1/0', ...command);
    expect(gone).toMatchObject({ code: 2 });
    expect(gone.stderr).toMatch(/nothing answers at redis:\/\/127\.0\.0\.1:1\/0/);
    expect(gone.stderr).not.toContain('secret');
    expect((await spillway('mcp', '--store', 'mongodb://x', ...command)).stderr).toMatch(/--store must be redis:\/\//);
  });
});
