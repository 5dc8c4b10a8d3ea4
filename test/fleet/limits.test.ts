import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createSpillway, tool, type Spillway } from 'spillway';
import { fleetLimits, type FleetLimitOptions } from 'spillway/fleet/limits';
import { startRedis, type RedisServer } from '../stores/redis/server.ts';

let server: RedisServer;
const connections: Redis[] = [];
const connect = (): Redis => {
  const redis = new Redis({ path: server.path, retryStrategy: () => 50 });
  redis.on('error', () => undefined);
  connections.push(redis);
  return redis;
};
beforeAll(async () => {
  server = await startRedis();
});
afterAll(async () => {
  for (const redis of connections) redis.disconnect();
  await server.stop();
});

const began: number[] = [];
const layerOf = (limits: FleetLimitOptions): Spillway =>
  createSpillway({
    tools: [
      tool({
        name: 'pay',
        policy: { effects: 'read', retry: { maxAttempts: 1 } },
        execute: () => void began.push(performance.now()),
      }),
    ],
    hooks: fleetLimits(connect(), limits),
  });

describe('R-17.7 limits of a whole fleet', () => {
  it('R-17.7 hold over processes: what comes at once is spread, in order', async () => {
    const limits = { name: 'spread', tools: { pay: { perSecond: 20, burst: 4 } } };
    const [one, other] = [layerOf(limits), layerOf(limits)];
    began.length = 0;
    const calls = Array.from({ length: 24 }, (_, at) =>
      (at % 2 === 0 ? one : other).execute({ toolName: 'pay', input: {} }),
    );
    const results = await Promise.all(calls);
    expect(results.every((result) => result.status === 'success')).toBe(true);
    // Four at once, and then one every 50 ms: the last of 24 a second after the first.
    expect((began.at(-1) ?? 0) - (began[0] ?? 0)).toBeGreaterThan(950);
    for (let at = 8; at < began.length; at++) expect((began[at] ?? 0) - (began[at - 8] ?? 0)).toBeGreaterThan(100);
  });

  it('R-17.7 block at once what would wait too long, with the reason, and take no place for it', async () => {
    const layer = layerOf({ name: 'blocked', eachTenant: { perSecond: 0.01, burst: 1 }, maxWaitMs: 60_000 });
    const ask = (tenant: string) => layer.execute({ toolName: 'pay', input: {}, tenant });
    expect((await ask('a')).status).toBe('success');
    const atMs = performance.now();
    const refused = await Promise.all([ask('a'), ask('a')]);
    expect(performance.now() - atMs).toBeLessThan(30_000);
    for (const { error } of refused) {
      expect(error?.code).toBe('blocked');
      expect(error?.message).toMatch(/the tenant is at its limit of 0\.01 a second in the whole fleet/);
    }
    expect((await ask('b')).status).toBe('success');
  });

  it('R-17.7 limit nothing while Redis gives no answer', async () => {
    const away = await startRedis();
    const redis = new Redis({ path: away.path, retryStrategy: () => null, enableOfflineQueue: false });
    redis.on('error', () => undefined);
    await new Promise((resolve) => redis.once('ready', resolve));
    const layer = createSpillway({
      tools: [tool({ name: 'pay', policy: { effects: 'read' }, execute: () => 'paid' })],
      hooks: fleetLimits(redis, { tools: { pay: { perSecond: 0.001 } } }),
    });
    await away.stop();
    const results = await Promise.all([1, 2].map(() => layer.execute({ toolName: 'pay', input: {} })));
    expect(results.map(({ status }) => status)).toStrictEqual(['success', 'success']);
    redis.disconnect();
  });
});
