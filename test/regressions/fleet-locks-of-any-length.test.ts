// Was: with a `lockMs` that three does not divide no worker looked for dead ones: Redis refused a time that is no
// integer, and a turn stood until its deadline and 20 s more. Now: whole milliseconds are asked for.
import { Worker } from 'bullmq';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createSpillway, plan, tool } from 'spillway';
import { bullmqFleet } from 'spillway/fleet/bullmq';
import { redisStore } from 'spillway/stores/redis';
import { eventsOf, settledOf } from '../fleet/kit.ts';
import { startRedis, type RedisServer } from '../stores/redis/server.ts';

const LOCK_MS = 1_000;

let server: RedisServer;
let redis: Redis;
beforeAll(async () => {
  server = await startRedis({ settings: { 'maxmemory-policy': 'noeviction' } });
  redis = new Redis({ path: server.path, maxRetriesPerRequest: null });
});
afterAll(async () => {
  redis.disconnect();
  await server.stop();
});

it('R-17.4 a turn whose worker died goes on once its lock has passed, whatever number that is', async () => {
  const fleet = bullmqFleet(redis, { lockMs: LOCK_MS });
  await fleet.submit('t', plan.from([{ id: 'n', tool: 'look' }], { timeoutMs: 60_000 }));
  // It takes the turn, and gives no sign of life.
  const dead = new Worker('spillway', null, {
    connection: redis,
    prefix: '{spillway}',
    autorun: false,
    lockDuration: LOCK_MS,
  });
  expect(await dead.getNextJob('dead', { block: false })).toMatchObject({ id: 'turn-t' });
  const look = tool({ name: 'look', policy: { effects: 'read' }, execute: () => 'the sea' });
  const worker = fleet.serve({ layer: createSpillway({ tools: [look], store: redisStore(redis) }) });
  const settled = await eventsOf(fleet, 't');
  expect(settledOf(settled)).toMatchObject({ status: 'completed' });
  await worker.close();
  await dead.close();
  await fleet.close();
}, 15_000);
