// Was: a worker that was started while Redis was away for longer than five seconds was refused for having no store, and
// served nothing when Redis was back, while its signs of life went on. Now: its store is asked again, until it closes.
import { Redis } from 'ioredis';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createSpillway, plan, tool } from 'spillway';
import { bullmqFleet } from 'spillway/fleet/bullmq';
import { redisStore } from 'spillway/stores/redis';
import { eventsOf, settledOf } from '../fleet/kit.ts';
import { startRedis, type RedisServer } from '../stores/redis/server.ts';

let server: RedisServer;
let redis: Redis;
beforeAll(async () => {
  server = await startRedis({ settings: { 'maxmemory-policy': 'noeviction' } });
  redis = new Redis({ path: server.path, maxRetriesPerRequest: null, retryStrategy: () => 50 });
  redis.on('error', () => undefined);
});
afterAll(async () => {
  redis.disconnect();
  await server.stop();
});

const look = tool({ name: 'look', policy: { effects: 'read' }, execute: () => 'the sea' });
/** A worker whose layer has taken its store for lost, and which waits for the ledger. */
const serving = async () => {
  const layer = createSpillway({ tools: [look], store: redisStore(redis, { commandTimeoutMs: 100 }) });
  const fleet = bullmqFleet(redis);
  const worker = fleet.serve({ layer, drainMs: 100 });
  expect(await layer.inspect()).not.toHaveProperty('store');
  return { fleet, worker };
};

it('R-17.2 a worker that is started before Redis answers serves once it does', async () => {
  await server.kill('SIGKILL');
  const { fleet, worker } = await serving();
  await server.start();
  await worker.ready;
  await fleet.submit('t', plan.from([{ id: 'n', tool: 'look' }]));
  expect(settledOf(await eventsOf(fleet, 't'))).toMatchObject({ status: 'completed' });
  await fleet.close();
});

it('R-17.2 a layer without a store is refused as one that has none that answers', async () => {
  const fleet = bullmqFleet(redis);
  const worker = fleet.serve({ layer: createSpillway({ tools: [look] }) });
  await expect(worker.ready).rejects.toThrow('share, and has none that answers: give createSpillway a redisStore');
  await fleet.close();
});

it('R-17.2 a worker that is closed while it looks for its store looks no more', async () => {
  await server.kill('SIGKILL');
  const { fleet, worker } = await serving();
  const refusal = worker.ready.catch(String);
  await worker.close();
  expect(await refusal).toContain('closed before its store had answered');
  await server.start();
  await fleet.close();
});
