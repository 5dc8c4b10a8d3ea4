import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { redisStore } from '../../../src/stores/redis.ts';
import { claimOf, finish, found, own } from '../../../src/testing/store-conformance/check.ts';
import { CLIENTS, at } from './clients.ts';
import type { RacerTask } from './racer.ts';
import { startRedis, type RedisServer } from './server.ts';

const run = promisify(execFile);
const RACER = fileURLToPath(new URL('racer.ts', import.meta.url));

const race = async (task: RacerTask): Promise<ReadonlyArray<readonly [string, number]>> =>
  JSON.parse((await run(process.execPath, [RACER, JSON.stringify(task)], { maxBuffer: 10_000_000 })).stdout) as Array<
    [string, number]
  >;

let server: RedisServer;
beforeAll(async () => {
  server = await startRedis();
});
afterAll(() => server.stop());

it('R-9.6 eight processes racing for 2,000 keys give 2,000 owners', async () => {
  const keys = Array.from({ length: 2_000 }, (_, i) => `race ${i}`);
  const owned = await Promise.all(
    Array.from({ length: 8 }, (_, library) =>
      race({
        path: server.path,
        library,
        keys: library % 2 === 0 ? keys : keys.toReversed(),
        aheadMs: 0,
        greedy: false,
      }),
    ),
  );
  const all = owned.flat();
  expect([all.length, new Set(all.map(([key]) => key)).size]).toEqual([2_000, 2_000]);
  expect(new Set(all.map(([, version]) => version)).size).toBe(2_000);
});

describe.each(CLIENTS)('%s', (name, connect) => {
  it('R-10.2 a process whose clock is ten minutes ahead steals nothing and keeps nothing longer', async () => {
    const { client, close } = await connect(at(server));
    onTestFinished(close);
    const store = redisStore(client);
    const key = `ahead ${name}`;
    const claim = await own(store, claimOf(key, { leaseMs: 300_000 }));
    const library = CLIENTS.findIndex(([other]) => other === name);
    expect(await race({ path: server.path, library, keys: [key], aheadMs: 600_000, greedy: true })).toEqual([]);
    expect((await found(store, key)).record).toEqual(claim);
    await race({ path: server.path, library, keys: [`${key} too`], aheadMs: 600_000, greedy: false });
    const { record, atMs } = await found(store, `${key} too`);
    expect(record.createdAtMs).toBeLessThanOrEqual(atMs);
    const listed: string[] = [];
    for await (const { key: one } of store.byTool('search')) if (one.startsWith(key)) listed.push(one);
    expect(listed.toSorted()).toEqual([key, `${key} too`]);
  });

  it('R-9.4 an outcome in one connection wakes who waits in another, also after its connection was lost', async () => {
    const [main, other, second] = [await connect(at(server)), await connect(at(server)), await connect(at(server))];
    onTestFinished(async () => {
      for (const { close } of [main, other, second]) await close();
    });
    const store = redisStore(main.client, { subscriber: second.client });
    const writer = redisStore(other.client);
    for (const round of [1, 2]) {
      const key = `wake ${name} ${round}`;
      const claim = await own(writer, claimOf(key));
      let heard = 0;
      const subscriptions = [1, 2].map(() => store.changes?.(key).subscribe(() => heard++));
      // The subscription itself is told, since something may have been missed before it.
      await expect.poll(() => heard).toBe(2);
      if (round === 2) {
        await server.cli('CLIENT', 'KILL', 'TYPE', 'pubsub');
        await expect.poll(() => heard).toBeGreaterThanOrEqual(4);
      }
      const before = heard;
      await finish(writer, claim);
      await expect.poll(() => heard).toBeGreaterThanOrEqual(before + 2);
      for (const subscription of subscriptions) subscription?.unsubscribe();
      await expect.poll(() => server.cli('PUBSUB', 'CHANNELS')).toBe('');
    }
    await store.close?.();
    expect(redisStore(main.client).changes).toBeUndefined();
  });

  it('R-10.2 claims made together share a script, and each gets its own answer', async () => {
    const { client, close } = await connect(at(server));
    onTestFinished(close);
    const store = redisStore(client, { prefix: `many ${name}:` });
    await server.cli('CONFIG', 'RESETSTAT');
    const answers = await Promise.all(
      Array.from({ length: 500 }, async (_, i) =>
        store.setIfNotExists(claimOf(`k${i % 300}`, { requestId: String(i), sessionKey: `s${i}` })),
      ),
    );
    expect(answers.filter(({ created }) => created)).toHaveLength(300);
    for (const [i, { record }] of answers.entries())
      expect([record.key, record.request.requestId]).toEqual([`k${i % 300}`, String(i % 300)]);
    const [, calls] = /cmdstat_evalsha:calls=(\d+)/.exec(await server.cli('INFO', 'commandstats')) ?? [];
    expect(Number(calls)).toBeLessThan(30);
    expect((await firstOf(store.bySession('s7'))).key).toBe('k7');
  });

  it('R-10.2 claims of several leases made together have each its own', async () => {
    const { client, close } = await connect(at(server));
    onTestFinished(close);
    const store = redisStore(client, { prefix: `leases ${name}:` });
    const leases = [10_000, 20_000, 10_000, 30_000];
    const claim = async (round: number): Promise<unknown> => {
      const answers = await Promise.all(
        leases.map(async (leaseMs, i) =>
          store.setIfNotExists({ ...claimOf(`k${i}`, { requestId: `${round}` }), leaseMs, ttlMs: leaseMs + 1_000 }),
        ),
      );
      return answers.map(({ created, record: { key, request, createdAtMs, lockUntilMs = 0, expiresAtMs } }) => [
        created,
        key,
        request.requestId,
        lockUntilMs - createdAtMs,
        expiresAtMs - createdAtMs,
      ]);
    };
    const first = leases.map((leaseMs, i) => [`k${i}`, '1', leaseMs, leaseMs + 1_000]);
    expect(await claim(1)).toStrictEqual(first.map((record) => [true, ...record]));
    expect(await claim(2)).toStrictEqual(first.map((record) => [false, ...record]));
  });
});

async function firstOf<T>(list: AsyncIterable<T>): Promise<T> {
  for await (const item of list) return item;
  throw new Error('the list is empty');
}
