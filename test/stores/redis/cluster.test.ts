import { Cluster } from 'ioredis';
import { createCluster } from 'redis';
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest';
import { redisStore, type RedisClientLike } from '../../../src/stores/redis.ts';
import { claimOf, finish, found, own, refused } from '../../../src/testing/store-conformance/check.ts';
import { freePort } from '../../free-port.ts';
import { CLIENTS } from './clients.ts';
import { startRedis, type RedisServer } from './server.ts';

const SLOTS = [
  ['0', '8191'],
  ['8192', '16383'],
] as const;

const nodes: RedisServer[] = [];
beforeAll(async () => {
  for (const [first, last] of SLOTS) {
    const node = await startRedis({
      tcp: true,
      settings: {
        'cluster-enabled': 'yes',
        'cluster-port': String(await freePort()),
        'cluster-announce-ip': '127.0.0.1',
      },
    });
    nodes.push(node);
    await node.cli('CLUSTER', 'ADDSLOTSRANGE', first, last);
  }
  const [one, two] = nodes;
  const bus = (await two?.cli('CONFIG', 'GET', 'cluster-port'))?.split('\n')[1] ?? '';
  await one?.cli('CLUSTER', 'MEET', '127.0.0.1', String(two?.port), bus);
  for (const node of nodes)
    await vi.waitFor(async () => expect(await node.cli('CLUSTER', 'INFO')).toContain('cluster_state:ok'), {
      timeout: 60_000,
      interval: 50,
    });
});
afterAll(async () => {
  for (const node of nodes) await node.stop();
});

const clusters: ReadonlyArray<readonly [string, () => Promise<readonly [RedisClientLike, () => unknown]>]> = [
  [
    'redis',
    async () => {
      const cluster = createCluster({ rootNodes: nodes.map(({ port }) => ({ url: `redis://127.0.0.1:${port}` })) });
      cluster.on('error', () => undefined);
      await cluster.connect();
      return [cluster, () => cluster.destroy()];
    },
  ],
  [
    'ioredis',
    async () => {
      const cluster = new Cluster(nodes.map(({ port }) => ({ host: '127.0.0.1', port })));
      cluster.on('error', () => undefined);
      return [cluster, () => cluster.disconnect()];
    },
  ],
];

describe.each(clusters)('%s', (name, connect) => {
  it('R-10.2 on a cluster: a record and its fence in one slot, lists across slots', async () => {
    const [client, close] = await connect();
    onTestFinished(async () => void (await close()));
    const store = redisStore(client, { prefix: `${name}:` });
    const claims = await Promise.all(Array.from({ length: 100 }, (_, i) => own(store, claimOf(`k${i}`))));
    for (const claim of claims) await refused(store, claimOf(claim.key), claim.version);
    for (const claim of claims.slice(0, 50))
      expect((await found(store, claim.key)).record).not.toEqual(await finish(store, claim));
    for (const { key, version } of claims.slice(50))
      expect([await store.renew(key, version, 1_000), await store.delete(key, version)]).toEqual([true, true]);
    const keys: string[] = [];
    for await (const { key } of store.byTool('search')) keys.push(key);
    expect(keys).toHaveLength(50);
    expect((await store.report?.())?.kind).toBe('redis cluster');
    for (const node of nodes) expect(Number(await node.cli('DBSIZE'))).toBeGreaterThan(10);
  });
});

it.each(CLIENTS)('R-10.3 %s: a plain client of one node is told to be a cluster client', async (_name, connect) => {
  const { client, close } = await connect({ path: nodes[0]?.path ?? '' });
  onTestFinished(close);
  const store = redisStore(client);
  const answers = await Promise.allSettled(Array.from({ length: 20 }, async (_, i) => store.get(`k${i}`)));
  const refusal = answers.find(({ status }) => status === 'rejected');
  expect(refusal).toMatchObject({
    reason: {
      kind: 'store_unavailable',
      code: 'MOVED',
      message: expect.stringContaining('give the store a cluster client') as string,
    },
  });
});
