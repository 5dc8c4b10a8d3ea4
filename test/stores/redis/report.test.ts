import { afterEach, describe, expect, it } from 'vitest';
import { redisStore, type RedisStoreOptions } from '../../../src/stores/redis.ts';
import { claimOf, failure, finish, found, own } from '../../../src/testing/store-conformance/check.ts';
import { CLIENTS, at, type TestClient } from './clients.ts';
import { startRedis, type RedisServer } from './server.ts';

const ends: Array<() => Promise<unknown>> = [];
afterEach(async () => {
  for (const end of ends.splice(0).toReversed()) await end();
});

const started = async (settings: Readonly<Record<string, string>> = {}, tcp = false): Promise<RedisServer> => {
  const server = await startRedis({ settings, tcp });
  ends.push(() => server.stop());
  return server;
};

describe.each(CLIENTS)('%s', (_name, connect) => {
  const opened = async (server: RedisServer): Promise<TestClient> => {
    const client = await connect(at(server));
    ends.push(() => client.close());
    return client;
  };

  it.each([
    [{ save: '3600 1 300 100' }, 'memory', ['since the last snapshot']],
    [{}, 'memory', ['loses every claim and result there was']],
    [{ appendonly: 'yes', appendfsync: 'always' }, 'disk', []],
    [{ appendonly: 'yes', appendfsync: 'everysec' }, 'disk', ['appendfsync everysec']],
    [{ appendonly: 'yes', appendfsync: 'no' }, 'disk', ['appendfsync no']],
    [
      { appendonly: 'yes', appendfsync: 'always', maxmemory: '1gb', 'maxmemory-policy': 'allkeys-lru' },
      'disk',
      ['maxmemory-policy allkeys-lru'],
    ],
  ])('R-10.3 reports what %j keeps: %s', async (settings, durability, warnings) => {
    const server = await started(settings);
    const { client } = await opened(server);
    const report = await redisStore(client).report?.();
    expect(report).toMatchObject({ kind: 'redis', durability, shared: true });
    expect(report?.warnings).toEqual(warnings.map((text) => expect.stringContaining(text) as string));
  });

  it('R-10.3 where CONFIG is forbidden, durability is unknown, and the report says why', async () => {
    const server = await started({ appendonly: 'yes', 'rename-command': 'CONFIG refused' });
    const { client } = await opened(server);
    const report = await redisStore(client).report?.();
    expect([report?.durability, report?.warnings]).toEqual([
      'unknown',
      [expect.stringContaining('CONFIG is forbidden')],
    ]);
  });

  it('R-10.2 replicated: a claim that no replica has is refused and undone; with one, it is there as well', async () => {
    const primary = await started({}, true);
    const { client } = await opened(primary);
    // Impatient where it is to fail, patient where it is not: a replica that has just come tells once a second how far
    // it is.
    const impatient = redisStore(client, { durability: 'replicated', replicaTimeoutMs: 300 });
    const store = redisStore(client, { durability: 'replicated', replicaTimeoutMs: 20_000, commandTimeoutMs: 40_000 });
    await expect(impatient.setIfNotExists(claimOf('k'))).rejects.toMatchObject({
      kind: 'store_unavailable',
      code: 'not_replicated',
      executed: false,
    });
    expect(await store.get('k')).toBeUndefined();
    expect((await store.report?.())?.warnings).toContainEqual(expect.stringContaining('every claim is refused'));

    const replica = await started({ replicaof: `127.0.0.1 ${primary.port}` });
    await expect.poll(async () => (await store.report?.())?.durability).toBe('replicated');
    await expect.poll(() => replica.cli('INFO', 'replication')).toContain('master_link_status:up');
    const claims = await Promise.all(Array.from({ length: 50 }, (_, i) => own(store, claimOf(`k${i}`))));
    const { client: reader } = await opened(replica);
    const copy = redisStore(reader);
    for (const claim of claims) expect((await found(copy, claim.key)).record).toEqual(claim);
    const settled = await finish(store, claims[0] ?? (await own(store, claimOf('never'))));
    expect((await found(copy, 'k0')).record).toEqual(settled);

    await replica.kill('SIGSTOP');
    await expect(impatient.setIfNotExists(claimOf('k50'))).rejects.toMatchObject({ code: 'not_replicated' });
    await expect(
      impatient.compareAndSet('k1', claims[1]?.version ?? 0, { state: 'failed', ttlMs: 1_000, error: failure }),
    ).rejects.toMatchObject({ code: 'not_replicated' });
    expect([await store.get('k50'), (await store.get('k1'))?.record.state]).toEqual([undefined, 'failed']);
    await replica.kill('SIGCONT');
  });
});

describe('options', () => {
  const client = { sendCommand: () => Promise.resolve() };
  it.each([
    [{ prefix: 'a{b}' }, 'prefix must be a text without braces'],
    [{ commandTimeoutMs: 0 }, 'commandTimeoutMs must be an integer'],
    [{ durability: 'twice' as 'default' }, 'durability must be one of default, replicated'],
    [{ replicas: 0 }, 'replicas must be an integer'],
    [
      { durability: 'replicated', replicaTimeoutMs: 5_000 } as const,
      'replicaTimeoutMs must be below commandTimeoutMs (5000)',
    ],
    [{ prefixes: 'x' }, 'redisStore has no option "prefixes"'],
    [{ subscriber: {} as never }, 'subscriber must be a client'],
  ])('R-2.9 %j is refused', (options, message) => {
    expect(() => redisStore(client, options as RedisStoreOptions)).toThrow(message);
  });

  it('R-2.9 a client of neither library is refused, and a cluster client where it cannot do what is asked', () => {
    expect(() => redisStore({} as never)).toThrow('client must be a client of the package redis');
    expect(() => redisStore({ ...client, masters: [] }, { durability: 'replicated' })).toThrow(
      'must not be used with a cluster client',
    );
  });
});
