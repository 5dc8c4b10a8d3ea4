// Was: a Redis that takes no writes was not asked what it holds, so that a `bestEffort` call paid again for what was
// recorded there, and an `enforced` one was refused instead of getting it. Now: what stands in the way is read.
import { createSpillway, tool } from 'spillway';
import { redisStore } from 'spillway/stores/redis';
import { expect, it, onTestFinished } from 'vitest';
import { asked } from '../spec/tr-02-stores.ts';
import { CLIENTS, at } from '../stores/redis/clients.ts';
import { startRedis, type RedisServer } from '../stores/redis/server.ts';

const unableToSave = async (server: RedisServer): Promise<void> => {
  await server.cli('CONFIG', 'SET', 'dir', '/proc');
  await server.cli('CONFIG', 'SET', 'save', '3600 1000000');
  await server.cli('BGSAVE');
  await expect.poll(() => server.cli('INFO', 'persistence')).toContain('rdb_last_bgsave_status:err');
};

const READABLE: ReadonlyArray<readonly [string, (server: RedisServer) => Promise<unknown>]> = [
  ['out of memory', (server) => server.cli('CONFIG', 'SET', 'maxmemory', '1', 'maxmemory-policy', 'noeviction')],
  ['a replica', (server) => server.cli('REPLICAOF', '127.0.0.1', '1')],
  ['without its replicas', (server) => server.cli('CONFIG', 'SET', 'min-replicas-to-write', '1')],
  ['unable to save', unableToSave],
];

it.each(READABLE)('R-10.3 what is recorded in a Redis that is %s is not paid again', async (_what, spoil) => {
  const server = await startRedis({ settings: { 'enable-protected-configs': 'yes' } });
  onTestFinished(() => server.stop());
  const connected = await CLIENTS[0]?.[1](at(server));
  if (connected === undefined) throw new Error('there is no client library');
  onTestFinished(connected.close);
  const ended = Promise.withResolvers<string>();
  const runs: unknown[] = [];
  const pay = tool({
    name: 't',
    policy: { effects: 'mutating' },
    execute: ({ wait }: { wait?: boolean }) => (runs.push(wait), wait === true ? ended.promise : 'paid'),
  });
  const layer = createSpillway({ tools: [pay], store: redisStore(connected.client), storeTimeoutMs: 2_000 });
  onTestFinished(() => layer.close());
  const done = asked({ key: 'done' });
  await layer.execute(done);
  const running = layer.execute(asked({ key: 'running', params: { wait: true } }));
  await expect.poll(() => runs).toEqual([undefined, true]);
  await spoil(server);
  // Its client lost the answer, and sends the same envelope again.
  expect(await layer.execute(done)).toMatchObject({ status: 'success', fromCache: true });
  for (const mode of ['enforced', 'bestEffort'] as const)
    expect(await layer.execute(asked({ key: 'done', mode }))).toMatchObject({ status: 'success', fromCache: true });
  expect((await layer.execute(asked({ key: 'running', mode: 'bestEffort', params: { wait: true } }))).error?.code).toBe(
    'duplicate_in_flight',
  );
  expect((await layer.execute(asked({ key: 'new' }))).error?.code).toBe('store_unavailable');
  expect(runs).toEqual([undefined, true]);
  ended.resolve('paid');
  await running;
});
