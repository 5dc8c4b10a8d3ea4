import { setTimeout as sleep } from 'node:timers/promises';
import { createConnection, createServer, type AddressInfo, type Socket } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import { redisStore } from 'spillway/stores/redis';
import { createClient } from 'redis';
import type { DedupeStore, ToolPolicy, TraceEvent } from 'spillway';
import { CLIENTS, at, type Connect } from '../stores/redis/clients.ts';
import { startRedis, type RedisServer, type RedisServerOptions } from '../stores/redis/server.ts';
import { gate, watched, type Watched } from '../spec/tr-02-stores.ts';

const COMMAND_MS = 1_000;
const policy: ToolPolicy = { breaker: false, dedupe: { leaseMs: 3_000 } };

const started = async (options?: RedisServerOptions): Promise<RedisServer> => {
  const server = await startRedis(options);
  onTestFinished(() => server.stop());
  return server;
};

const storeAt = async (server: RedisServer, connect: Connect): Promise<DedupeStore> => {
  const client = await connect(at(server));
  const store = redisStore(client.client, { commandTimeoutMs: COMMAND_MS });
  onTestFinished(async () => {
    await store.close?.();
    await client.close();
  });
  return store;
};

const counted = (
  store: DedupeStore,
  work?: () => Promise<unknown>,
  leaseMs = 3_000,
): Watched & { readonly runs: () => number } => {
  let runs = 0;
  const seen = watched(
    store,
    async () => {
      const run = ++runs;
      await work?.();
      return run;
    },
    { ...policy, dedupe: { leaseMs } },
  );
  return { ...seen, runs: () => runs };
};

/** But that these servers keep nothing, which is told as soon as they say so. */
const changes = (events: readonly TraceEvent[]): string[] =>
  events.flatMap((event) => (event.type === 'store_changed' && event.state !== 'weak' ? [event.state] : []));

/** What `enforced` and `bestEffort` promise of a store that gives no answer. */
const promised = async ({ call, runs, steps }: ReturnType<typeof counted>, key: string): Promise<void> => {
  const before = runs();
  const refused = await call({ key });
  expect(refused).toMatchObject({
    status: 'retriable_error',
    attempts: 0,
    fromCache: false,
    error: { code: 'store_unavailable', retriable: true, terminal: false },
  });
  expect(refused.error?.uncertain).toBeUndefined();
  expect(runs()).toBe(before);
  expect(await call({ key, mode: 'bestEffort' })).toMatchObject({ status: 'success', attempts: 1, fromCache: false });
  expect(runs()).toBe(before + 1);
  expect(steps()).toContain('unprotected');
};

describe.each(CLIENTS)('R-10.3 %s', (_name, connect) => {
  it('R-10.3 killed: enforced refuses, bestEffort runs and says so, the trace tells lost and back; back, all is as before', async () => {
    const server = await started({ settings: { appendonly: 'yes', appendfsync: 'always' } });
    const layer = counted(await storeAt(server, connect));
    expect((await layer.call({ key: 'before' })).fromCache).toBe(false);
    await server.kill('SIGKILL');
    await promised(layer, 'k');
    await server.start();
    await expect.poll(async () => (await layer.call({ key: 'k' })).status).toBe('success');
    expect((await layer.call({ key: 'before' })).fromCache).toBe(true);
    expect(changes(layer.events)).toEqual(['lost', 'back']);
  });

  it('R-10.3 out of memory: refused, and what was known is still replayed', async () => {
    const server = await started();
    const layer = counted(await storeAt(server, connect));
    await layer.call({ key: 'before' });
    await server.cli('CONFIG', 'SET', 'maxmemory', '1', 'maxmemory-policy', 'noeviction');
    await promised(layer, 'k');
    await server.cli('CONFIG', 'SET', 'maxmemory', '0');
    expect((await layer.call({ key: 'before' })).fromCache).toBe(true);
    expect(await layer.call({ key: 'k' })).toMatchObject({ status: 'success', fromCache: false });
  });

  it('R-10.3 out of memory between claim and outcome: the outcome is recorded all the same', async () => {
    const server = await started();
    const store = await storeAt(server, connect);
    const layer = watched(
      store,
      async () => {
        await server.cli('CONFIG', 'SET', 'maxmemory', '1', 'maxmemory-policy', 'noeviction');
        return 'done';
      },
      { ...policy, dedupe: { leaseMs: 60_000 } },
      { storeTimeoutMs: 500 },
    );
    expect(await layer.call()).toMatchObject({ status: 'success', output: { content: 'done' } });
    expect(layer.steps()).toEqual(['claimed', 'recorded']);
    // A claim asks for room, and is refused until there is some.
    await server.cli('CONFIG', 'SET', 'maxmemory', '0');
    expect(await layer.call()).toMatchObject({ status: 'success', fromCache: true, output: { content: 'done' } });
  });

  it('R-10.3 a replica that is read-only: refused', async () => {
    const server = await started();
    const layer = counted(await storeAt(server, connect));
    await server.cli('REPLICAOF', '127.0.0.1', '1');
    await server.cli('CONFIG', 'SET', 'replica-serve-stale-data', 'yes');
    await promised(layer, 'k');
  });

  it('R-10.3 flushed while a call runs: it learns that it holds nothing, is aborted, and is honest about it', async () => {
    const server = await started();
    const running = gate();
    onTestFinished(() => running.open());
    const layer = counted(await storeAt(server, connect), () => running.opened);
    const call = layer.call();
    await expect.poll(layer.runs).toBe(1);
    await server.cli('FLUSHALL');
    expect(await call).toMatchObject({
      status: 'retriable_error',
      attempts: 1,
      error: { code: 'store_unavailable', uncertain: true },
    });
    expect(layer.steps()).toEqual(['claimed', 'lease_lost']);
  });

  it('R-10.3 flushed after the attempt: its result is refused by the store and still given to its caller', async () => {
    const server = await started();
    const layer = counted(await storeAt(server, connect), () => server.cli('FLUSHALL'));
    expect(await layer.call()).toMatchObject({ status: 'success', output: { content: 1 } });
    expect(layer.steps()).toEqual(['claimed', 'superseded']);
  });

  it('R-10.3 lost while one waits: it is refused, not run, and the owner goes on', async () => {
    const server = await started({ settings: { appendonly: 'yes', appendfsync: 'always' } });
    const running = gate();
    const owner = counted(await storeAt(server, connect), () => running.opened, 60_000);
    const waiter = counted(await storeAt(server, connect));
    const first = owner.call();
    await expect.poll(owner.runs).toBe(1);
    const second = waiter.call();
    await expect.poll(waiter.steps).toEqual(['waiting']);
    await server.kill('SIGKILL');
    expect(await second).toMatchObject({
      status: 'retriable_error',
      attempts: 0,
      error: { code: 'store_unavailable' },
    });
    await server.start();
    running.open();
    expect(await first).toMatchObject({ status: 'success', fromCache: false });
    expect([owner.runs(), waiter.runs()]).toEqual([1, 0]);
  });

  it('R-10.3 frozen in mid-claim: refused in time; thawed, the claim that nobody wants is given back', async () => {
    const server = await started();
    const layer = counted(await storeAt(server, connect));
    await layer.call({ key: 'warm' });
    await server.kill('SIGSTOP');
    const startedMs = performance.now();
    expect(await layer.call()).toMatchObject({ attempts: 0, error: { code: 'store_unavailable' } });
    expect(performance.now() - startedMs).toBeLessThan(COMMAND_MS * 20);
    await server.kill('SIGCONT');
    await expect.poll(async () => (await layer.call({ mode: 'bestEffort' })).status).toBe('success');
    expect(layer.runs()).toBe(2);
  });

  it('R-10.3 lost for good while a call runs: enforced stops before its lease ends, bestEffort goes on; both say so', async () => {
    for (const mode of ['enforced', 'bestEffort'] as const) {
      const server = await started();
      const running = gate();
      const layer = counted(await storeAt(server, connect), () => running.opened);
      const call = layer.call({ mode });
      await expect.poll(layer.runs).toBe(1);
      await server.kill('SIGKILL');
      await expect.poll(layer.steps).toContain('lease_lost');
      running.open();
      const result = await call;
      if (mode === 'enforced')
        expect(result).toMatchObject({
          status: 'retriable_error',
          attempts: 1,
          error: { code: 'store_unavailable', uncertain: true },
        });
      else expect(result).toMatchObject({ status: 'success', output: { content: 1 } });
      expect(layer.steps()).toEqual(
        mode === 'enforced' ? ['claimed', 'lease_lost'] : ['claimed', 'lease_lost', 'unprotected'],
      );
      expect(layer.runs()).toBe(1);
    }
  });
});

it('R-10.3 down at the start: what each mode promises, and all is well once it is up', async () => {
  const client = createClient({ socket: { host: '127.0.0.1', port: 1, reconnectStrategy: () => 50 } });
  client.on('error', () => undefined);
  void client.connect().catch(() => undefined);
  onTestFinished(() => client.destroy());
  await promised(counted(redisStore(client, { commandTimeoutMs: 300 })), 'k');
});

it('R-10.3 answers that take 2 s: calls are slow, and right', async () => {
  const server = await started({ tcp: true });
  const sockets = new Set<Socket>();
  let delayMs = 0;
  const proxy = createServer((near) => {
    const far = createConnection(server.port, '127.0.0.1');
    for (const socket of [near, far]) {
      sockets.add(socket);
      socket
        .on('error', () => undefined)
        .on('close', () => {
          near.destroy();
          far.destroy();
        });
    }
    near.on('data', (data) => far.write(data));
    far.on('data', (data) => {
      setTimeout(() => near.destroyed || near.write(data), delayMs);
    });
  }).listen(0, '127.0.0.1');
  await new Promise((resolve) => proxy.once('listening', resolve));
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    proxy.close();
  });
  const [, connect] = CLIENTS[0] ?? [];
  const place = { port: (proxy.address() as AddressInfo).port };
  const client = await connect?.(place);
  if (client === undefined) throw new Error('there is no client library');
  onTestFinished(() => client.close());
  let runs = 0;
  const layer = watched(
    redisStore(client.client),
    async () => {
      await sleep(100);
      return ++runs;
    },
    { ...policy, dedupe: { leaseMs: 30_000 } },
  );
  await layer.call({ key: 'warm' });
  delayMs = 2_000;
  const results = await Promise.all([layer.call(), layer.call()]);
  expect(results.map(({ status, output }) => [status, output?.content])).toEqual([
    ['success', 2],
    ['success', 2],
  ]);
  const brief = watched(redisStore(client.client), () => ++runs, policy, { storeTimeoutMs: 500 });
  expect(await brief.call({ key: 'x' })).toMatchObject({ attempts: 0, error: { code: 'store_unavailable' } });
  expect(runs).toBe(2);
});
