// Was: a Sentinel client was taken and failed every call, a Redis out of memory ended running calls, a claim whose
// answer was lost kept its key for a lease. Now: none of it.
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createClient, createClientPool, createSentinel } from 'redis';
import { redisStore } from 'spillway/stores/redis';
import { describe, expect, it, onTestFinished } from 'vitest';
import { LONG_MS, claimOf, failure, finish, found, own, refused } from '../../src/testing/store-conformance/check.ts';
import { CLIENTS, at } from '../stores/redis/clients.ts';
import { freePort } from '../free-port.ts';
import { startRedis, type RedisServer } from '../stores/redis/server.ts';

const started = async (tcp = false): Promise<RedisServer> => {
  const server = await startRedis({ tcp });
  onTestFinished(() => server.stop());
  return server;
};

/** A real sentinel that watches one primary. */
const sentinelOf = async (primary: number): Promise<number> => {
  const folder = mkdtempSync(join(tmpdir(), 'spillway-sentinel-'));
  const port = await freePort();
  const file = join(folder, 'sentinel.conf');
  writeFileSync(file, `port ${port}\nbind 127.0.0.1\ndir ${folder}\nsentinel monitor calls 127.0.0.1 ${primary} 1\n`);
  const child = spawn('redis-server', [file, '--sentinel'], { stdio: 'ignore' });
  onTestFinished(async () => {
    const gone = new Promise((resolve) => child.once('exit', resolve));
    child.kill('SIGKILL');
    await gone;
    rmSync(folder, { recursive: true });
  });
  const listens = (): Promise<boolean> =>
    new Promise((resolve) => {
      const socket = connect(port, '127.0.0.1', () => (socket.destroy(), resolve(true)));
      socket.on('error', () => resolve(false));
    });
  await expect.poll(listens).toBe(true);
  return port;
};

/** Passes on what a client says, and ends the connection in place of the next answer when it is told to. */
const proxyOf = async (port: number): Promise<{ readonly port: number; readonly cutNext: () => void }> => {
  let cut = false;
  const sockets = new Set<Socket>();
  const server = createServer((near) => {
    const far = connect(port, '127.0.0.1');
    for (const socket of [near, far]) sockets.add(socket.on('error', () => undefined));
    near.on('data', (bytes) => far.write(bytes));
    far.on('data', (bytes) => {
      if (!cut) return void near.write(bytes);
      cut = false;
      near.resetAndDestroy();
      return undefined;
    });
    near.on('close', () => far.end());
    far.on('close', () => near.end());
  });
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return { port: (server.address() as AddressInfo).port, cutNext: () => void (cut = true) };
};

describe('R-10.3 clients of the official package over several connections', () => {
  it('R-10.3 createSentinel: claims, renewals, outcomes, lists, and news over its subscriber', async () => {
    const server = await started(true);
    const port = await sentinelOf(server.port);
    const sentinel = createSentinel({ name: 'calls', sentinelRootNodes: [{ host: '127.0.0.1', port }] });
    sentinel.on('error', () => undefined);
    await sentinel.connect();
    onTestFinished(() => sentinel.destroy());
    const store = redisStore(sentinel);
    const claim = await own(store, claimOf('k'));
    await refused(store, claimOf('k'));
    expect(await store.renew('k', claim.version, LONG_MS)).toBe(true);
    const done = await finish(store, claim);
    expect((await found(store, 'k')).record).toEqual(done);
    const keys: string[] = [];
    for await (const { key } of store.byTool('search')) keys.push(key);
    expect(keys).toEqual(['k']);
    expect(await store.report?.()).toMatchObject({ kind: 'redis', durability: 'memory' });
    expect(await store.delete('k')).toBe(true);
    // And what it lends for a while.
    await sentinel.use(async (lent) => void (await own(redisStore(lent), claimOf('lent'))));
    expect(() => redisStore(sentinel, { durability: 'replicated' })).toThrow(
      /'replicated' must not be used with a client of createSentinel/,
    );
  });

  it("R-10.3 createClientPool: works, and 'replicated' is refused by name, since WAIT asks of one connection only", async () => {
    const server = await started();
    const pool = createClientPool({ socket: { path: server.path, tls: false } });
    pool.on('error', () => undefined);
    await pool.connect();
    onTestFinished(() => pool.destroy());
    const store = redisStore(pool);
    await finish(store, await own(store, claimOf('k')));
    expect(() => redisStore(pool, { durability: 'replicated' })).toThrow(
      /createClientPool, which sends WAIT over any connection: give the store a client of one connection/,
    );
    const client = createClient({ socket: { path: server.path, tls: false } });
    expect(() => redisStore(client, { durability: 'replicated' })).not.toThrow();
  });
});

describe.each(CLIENTS)('%s', (_name, connectTo) => {
  it('R-9.6 a Redis that is out of memory refuses claims, and still renews what runs', async () => {
    const server = await started();
    const { client, close } = await connectTo(at(server));
    onTestFinished(close);
    const store = redisStore(client);
    const claim = await own(store, claimOf('k', { leaseMs: 2_000 }));
    await server.cli('CONFIG', 'SET', 'maxmemory', '1', 'maxmemory-policy', 'noeviction');
    await expect((async () => store.setIfNotExists(claimOf('new')))()).rejects.toMatchObject({ code: 'OOM' });
    expect(await store.renew('k', claim.version, LONG_MS)).toBe(true);
    const { record, atMs } = await found(store, 'k');
    expect((record.lockUntilMs ?? 0) - atMs).toBeGreaterThan(LONG_MS - 60_000);
    expect(await store.renew('k', claim.version - 1, LONG_MS)).toBe(false);
    await server.cli('CONFIG', 'SET', 'maxmemory', '0');
    await finish(store, claim);
  });

  it('R-9.6 a claim whose answer was lost with the connection is undone, and a takeover is as it was', async () => {
    const server = await started(true);
    const proxy = await proxyOf(server.port);
    const { client, close } = await connectTo({ port: proxy.port });
    const direct = await connectTo(at(server));
    onTestFinished(async () => {
      await close();
      await direct.close();
    });
    // Each fails as the connection is lost: a client that sends again what was under way would hide it.
    if ('options' in client)
      Object.assign((client as { options: object }).options, { autoResendUnfulfilledCommands: false });
    const [store, other] = [redisStore(client), redisStore(direct.client)];
    // What it takes at first (the script, the lists) is no matter of this.
    await own(store, claimOf('first'));
    const old = await own(other, claimOf('old', { leaseMs: 1 }));
    await expect.poll(async () => ((r) => (r.record.lockUntilMs ?? 0) <= r.atMs)(await found(other, 'old'))).toBe(true);
    for (const [key, over] of [
      ['k', undefined],
      ['old', old.version],
    ] as const) {
      // The lists are told in a command of their own, before the claim; theirs is the answer that is cut, and the
      // claim's goes with the connection.
      proxy.cutNext();
      await expect(
        (async () => store.setIfNotExists(claimOf(key, { requestId: 'lost', leaseMs: LONG_MS }), over))(),
      ).rejects.toMatchObject({ kind: 'store_unavailable' });
      // Long before its lease of ten minutes.
      const free = async (): Promise<boolean> => {
        const reading = await other.get(key);
        return reading === undefined ? over === undefined : (reading.record.lockUntilMs ?? 0) <= reading.atMs;
      };
      await expect.poll(free, { interval: 50 }).toBe(true);
      const next = await own(store, claimOf(key), (await other.get(key))?.record.version);
      expect(
        await store.compareAndSet(key, next.version, { state: 'failed', ttlMs: LONG_MS, error: failure }),
      ).toMatchObject({ state: 'failed' });
    }
  });
});

describe('R-10.3 answers that are none', () => {
  it.each([undefined, null, 'OK', [], ['x'], {}])(
    'R-10.3 %j in place of an answer fails for good and is named',
    async (answer) => {
      const store = redisStore({ sendCommand: () => Promise.resolve(answer) });
      for (const ask of [
        () => store.get('k'),
        () => store.setIfNotExists(claimOf('k')),
        () => store.renew('k', 1, 1_000),
        () => store.delete('k'),
      ]) {
        await expect((async () => ask())()).rejects.toMatchObject({
          kind: 'store_unavailable',
          classification: 'permanent',
          code: 'bad_answer',
          message: expect.stringContaining('Redis answered') as string,
        });
      }
    },
  );
});
