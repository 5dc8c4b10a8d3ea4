// Was: an outcome that no replica had passed for recorded when it was handed in again, so that a payment was made again
// after a failover and no result said so; and a Redis out of memory refused outcomes. Now: neither.
import { createSpillway, tool } from 'spillway';
import { redisStore } from 'spillway/stores/redis';
import { expect, it, onTestFinished } from 'vitest';
import { claimOf, failure, own } from '../../src/testing/store-conformance/check.ts';
import { CLIENTS, at, type Connect, type TestClient } from '../stores/redis/clients.ts';
import { startRedis, type RedisServer } from '../stores/redis/server.ts';

const started = async (settings: Readonly<Record<string, string>>, tcp = false): Promise<RedisServer> => {
  const server = await startRedis({ tcp, settings });
  onTestFinished(() => server.stop());
  return server;
};

const clientOf = async (
  server: RedisServer,
  connect: Connect | undefined = CLIENTS[0]?.[1],
): Promise<TestClient['client']> => {
  if (connect === undefined) throw new Error('there is no client library');
  const { client, close } = await connect(at(server));
  onTestFinished(close);
  return client;
};

const pair = async (): Promise<readonly [primary: RedisServer, replica: RedisServer]> => {
  const primary = await started({ 'repl-diskless-sync-delay': '0' }, true);
  const replica = await started({ replicaof: `127.0.0.1 ${primary.port}` });
  await expect.poll(() => replica.cli('INFO', 'replication')).toContain('master_link_status:up');
  return [primary, replica];
};

const REPLICATED = { durability: 'replicated', replicaTimeoutMs: 300 } as const;

it.each(CLIENTS)(
  'R-10.2 %s: an outcome that no replica has is not recorded, however often it is handed in',
  async (_name, connect) => {
    const [primary, replica] = await pair();
    const store = redisStore(await clientOf(primary, connect), {
      ...REPLICATED,
      replicaTimeoutMs: 20_000,
      commandTimeoutMs: 40_000,
    });
    const hasty = redisStore(await clientOf(primary, connect), REPLICATED);
    const { version } = await own(store, claimOf('k'));
    await replica.kill('SIGSTOP');
    const outcome = { state: 'failed', ttlMs: 60_000, error: failure } as const;
    for (let times = 0; times < 3; times++)
      await expect(Promise.resolve(hasty.compareAndSet('k', version, outcome))).rejects.toMatchObject({
        code: 'not_replicated',
      });
    await replica.kill('SIGCONT');
    await expect
      .poll(async () => (await Promise.resolve(hasty.compareAndSet('k', version, outcome)).catch(() => null))?.state)
      .toBe('failed');
    expect(await hasty.compareAndSet('k', version, { ...outcome })).toBeUndefined();
  },
);

it('R-10.3 a call whose replica was promoted while it ran says that its result is not recorded there', async () => {
  const [primary, replica] = await pair();
  const paid: string[] = [];
  const layerOf = async (server: RedisServer, options = {}) => {
    const pay = tool({
      name: 'pay',
      policy: { effects: 'mutating', dedupe: { leaseMs: 3_000 } },
      execute: async () => {
        paid.push(server.path);
        // The failover: from here on others go by what the replica has.
        if (server === primary) await replica.cli('REPLICAOF', 'NO', 'ONE');
        return paid.length;
      },
    });
    const store = redisStore(await clientOf(server), options);
    const layer = createSpillway({ tools: [pay], store, storeTimeoutMs: 4_000 });
    onTestFinished(() => layer.close());
    return layer;
  };
  const call = { toolName: 'pay', input: {}, idempotencyKey: 'order-7', session: 'ada' };
  const first = await (await layerOf(primary, { ...REPLICATED, replicaTimeoutMs: 1_500 })).execute(call);
  const second = await (await layerOf(replica)).execute(call);
  expect([first.status, first.recorded, second.fromCache, paid.length]).toEqual(['success', 'unrecorded', false, 2]);
});

it('R-9.6 a Redis that is out of memory keeps the outcome of what it let run', async () => {
  const server = await started({});
  const store = redisStore(await clientOf(server));
  const { version } = await own(store, claimOf('k'));
  await server.cli('CONFIG', 'SET', 'maxmemory', '1', 'maxmemory-policy', 'noeviction');
  await expect(Promise.resolve(store.setIfNotExists(claimOf('new')))).rejects.toMatchObject({ code: 'OOM' });
  const settled = await store.compareAndSet('k', version, { state: 'done', ttlMs: 60_000, payload: '1' });
  expect([settled?.payload, (await store.get('k'))?.record]).toEqual(['1', settled]);
});
