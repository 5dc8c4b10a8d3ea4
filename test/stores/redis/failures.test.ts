import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { ToolExecutionError } from '../../../src/contract/tool-error.ts';
import { isToolExecutionError } from '../../../src/contract/tool-error.ts';
import { redisStore, type RedisStoreOptions } from '../../../src/stores/redis.ts';
import { claimOf, finish, found, own } from '../../../src/testing/store-conformance/check.ts';
import type { DedupeStore } from '../../../src/contract/store.ts';
import { CLIENTS, at, type ClientPlace, type Connect, type TestClient } from './clients.ts';
import { startRedis, type RedisServer, type RedisServerOptions } from './server.ts';

const SECRET = 'hunter2-hunter2';

const started = async (options?: RedisServerOptions): Promise<RedisServer> => {
  const server = await startRedis(options);
  onTestFinished(() => server.stop());
  return server;
};

const opened = async (
  connect: Connect,
  place: ClientPlace,
  options: RedisStoreOptions = {},
): Promise<{ store: DedupeStore; client: TestClient }> => {
  const client = await connect(place);
  const store = redisStore(client.client, options);
  onTestFinished(async () => {
    await store.close?.();
    await client.close();
  });
  return { store, client };
};

/** What an operation fails with. It is always the one kind, says what to do, and shows nothing that is secret. */
const refusal = async (work: () => unknown): Promise<ToolExecutionError> => {
  try {
    await work();
  } catch (error) {
    if (!isToolExecutionError(error)) throw error;
    expect(error).toMatchObject({ kind: 'store_unavailable', executed: false });
    expect(`${error.message} ${JSON.stringify(error)} ${String(error.cause)}`).not.toContain(SECRET);
    return error;
  }
  throw new Error('it did not fail');
};

describe.each(CLIENTS)('%s', (_name, connect) => {
  it('R-10.3 out of memory: claims are refused, reading and outcomes work; it goes on when there is room', async () => {
    const server = await started();
    const { store } = await opened(connect, at(server));
    const claim = await own(store, claimOf('k'));
    await server.cli('CONFIG', 'SET', 'maxmemory', '1', 'maxmemory-policy', 'noeviction');
    const error = await refusal(() => store.setIfNotExists(claimOf('k2')));
    expect(error).toMatchObject({ code: 'OOM' });
    expect(error.message).toContain('raise maxmemory');
    expect((await found(store, 'k')).record).toEqual(claim);
    await finish(store, claim);
    await server.cli('CONFIG', 'SET', 'maxmemory', '0');
    await finish(store, await own(store, claimOf('k2')));
  });

  it('R-10.3 a replica refuses writes, says so, and its report warns', async () => {
    const server = await started();
    const { store } = await opened(connect, at(server));
    await own(store, claimOf('k'));
    await server.cli('REPLICAOF', '127.0.0.1', '1');
    await server.cli('CONFIG', 'SET', 'replica-serve-stale-data', 'yes');
    const error = await refusal(() => store.setIfNotExists(claimOf('k2')));
    expect([error.code, error.message]).toEqual(['READONLY', expect.stringContaining('connect to the primary')]);
    expect((await found(store, 'k')).record.key).toBe('k');
    expect((await store.report?.())?.warnings.join(' ')).toContain('This Redis is a replica');
    await server.cli('CONFIG', 'SET', 'replica-serve-stale-data', 'no');
    expect((await refusal(() => store.get('k'))).code).toBe('MASTERDOWN');
  });

  it('R-10.3 lost in mid-command: killed, it fails; back, it goes on; scripts that were forgotten are sent again', async () => {
    const server = await started({ settings: { appendonly: 'yes', appendfsync: 'always' } });
    const { store } = await opened(connect, at(server), { commandTimeoutMs: 400 });
    const claim = await own(store, claimOf('k'));
    await server.kill('SIGSTOP');
    const stuck = refusal(() => store.setIfNotExists(claimOf('k2')));
    expect((await stuck).message).toContain('gave no answer within 0.4s');
    await server.kill('SIGKILL');
    const error = await refusal(() => store.get('k'));
    expect(error.message).toMatch(/connection|no answer/);
    await server.start();
    await expect.poll(() => store.get('k')).toMatchObject({ record: claim });
    await server.cli('SCRIPT', 'FLUSH');
    await finish(store, claim);
  });

  it('R-10.3 a claim whose answer came too late is given back', async () => {
    const server = await started();
    const { store } = await opened(connect, at(server), { commandTimeoutMs: 300 });
    const other = await opened(connect, at(server));
    await own(store, claimOf('warm'));
    await server.kill('SIGSTOP');
    await refusal(() => store.setIfNotExists(claimOf('k')));
    await server.kill('SIGCONT');
    await expect.poll(() => other.store.get('k')).toBeUndefined();
    await own(other.store, claimOf('k', { requestId: 'r2' }));
    await sleep(400);
    expect((await found(other.store, 'k')).record.request.requestId).toBe('r2');
  });

  it('R-10.3 FLUSHALL: an owner learns that its claim is gone, and cannot touch the next one', async () => {
    const server = await started();
    const { store } = await opened(connect, at(server));
    const first = await own(store, claimOf('k'));
    await server.cli('FLUSHALL');
    expect([
      await store.renew('k', first.version, 1_000),
      await store.compareAndSet('k', first.version, { state: 'done', ttlMs: 1_000, payload: '1' }),
    ]).toEqual([false, undefined]);
    const second = await own(store, claimOf('k', { requestId: 'r2' }));
    expect(second.version).toBeGreaterThan(first.version);
    expect([await store.renew('k', first.version, 1_000), await store.delete('k', first.version)]).toEqual([
      false,
      false,
    ]);
    expect(
      await store.compareAndSet('k', first.version, { state: 'done', ttlMs: 1_000, payload: '1' }),
    ).toBeUndefined();
    expect((await found(store, 'k')).record).toEqual(second);
  });

  it('R-10.3 what is no record of ours is never replayed: another type, a text, a damaged record, a record of another key', async () => {
    const server = await started();
    const { store } = await opened(connect, at(server), { prefix: 'p:' });
    const claim = await own(store, claimOf(`k ${SECRET}`));
    const [name = ''] = (await server.cli('KEYS', 'p:{*')).split('\n');
    const text = await server.cli('GET', name);
    const ask = (): unknown => store.get(`k ${SECRET}`);
    for (const damage of [
      'junk',
      '',
      '{}',
      `${text}\n{"more":1}`,
      text.replace('inflight', 'asleep'),
      text.replace('"requestId"', '"requestID"'),
      text.replace(/"key":"[^"]*"/, '"key":"k2"'),
    ]) {
      await server.cli('SET', name, damage);
      for (const work of [ask, () => store.setIfNotExists(claimOf(`k ${SECRET}`))]) {
        const error = await refusal(work);
        expect([error.code, error.classification]).toEqual(['damaged_record', 'permanent']);
        expect(error.message).toContain(name);
      }
    }
    await own(store, claimOf('k2'));
    const keys: string[] = [];
    for await (const { key } of store.byTool('search')) keys.push(key);
    expect(keys).toEqual(['k2']);
    expect(await store.renew(`k ${SECRET}`, claim.version, 1_000)).toBe(true);
    await server.cli('DEL', name);
    await server.cli('RPUSH', name, 'x');
    const claims = await Promise.allSettled([
      store.setIfNotExists(claimOf(`k ${SECRET}`)),
      store.setIfNotExists(claimOf('k3')),
    ]);
    expect(claims.map(({ status }) => status)).toEqual(['rejected', 'fulfilled']);
    expect([(await refusal(ask)).code, await store.delete(`k ${SECRET}`), await store.get(`k ${SECRET}`)]).toEqual([
      'WRONGTYPE',
      true,
      undefined,
    ]);
  });

  it('R-10.3 no password, a wrong one, a user that may not: said, without the password', async () => {
    const server = await started();
    const { store } = await opened(connect, at(server));
    await own(store, claimOf('k'));
    await server.cli('ACL', 'SETUSER', 'limited', 'on', `>${SECRET}`, '~other:*', '+@all');
    await server.cli('ACL', 'SETUSER', 'quiet', 'on', `>${SECRET}`, '~*', '+@all', 'resetchannels');
    const limited = await opened(connect, { ...at(server), user: 'limited', password: SECRET });
    expect((await refusal(() => limited.store.setIfNotExists(claimOf('k')))).code).toBe('NOPERM');
    // Who may not publish can do all else.
    const quiet = await opened(connect, { ...at(server), user: 'quiet', password: SECRET });
    await finish(quiet.store, await own(quiet.store, claimOf('quiet')));
    await server.cli('CONFIG', 'SET', 'requirepass', SECRET);
    await server.cli('-a', SECRET, 'CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'no').catch(() => '');
    await sleep(300);
    expect((await refusal(() => store.setIfNotExists(claimOf('k4')))).message).toMatch(/password|connection|no answer/);
  });
});

it('R-10.3 down at the start: each library fails clearly, and so does a client that was never connected', async () => {
  const { createClient } = await import('redis');
  const { Redis } = await import('ioredis');
  const unconnected = createClient({ url: `redis://:${SECRET}@127.0.0.1:1` });
  expect((await refusal(() => redisStore(unconnected).get('k'))).message).toContain(
    'connect it before the store is used',
  );
  const io = new Redis(`redis://:${SECRET}@127.0.0.1:1`, { maxRetriesPerRequest: 1, retryStrategy: () => 20 });
  io.on('error', () => undefined);
  onTestFinished(() => io.disconnect());
  expect((await refusal(() => redisStore(io).setIfNotExists(claimOf('k')))).code).toBe('MaxRetriesPerRequestError');
});
