import { Redis } from 'ioredis';
import { createSpillway } from '../../src/index.ts';
import { bullmqFleet } from '../../src/fleet/bullmq.ts';
import { restateFleet } from '../../src/fleet/restate.ts';
import { redisStore } from '../../src/stores/redis.ts';
import { fleetConformanceTools } from '../../src/testing/index.ts';
import { served } from './served.ts';

/** What a worker process is told on its command line. */
export interface WorkerTask {
  readonly path: string;
  /** The Redis that stands for the world outside. */
  readonly worldPath: string;
  readonly worker: string;
  /** The ingress of Restate; without one it is BullMQ. */
  readonly ingressUrl?: string;
  readonly version?: string;
  readonly concurrency?: number;
  readonly drainMs?: number;
  /** Only effects are marked. */
  readonly quiet?: boolean;
}

const task = JSON.parse(process.argv[2] ?? '{}') as WorkerTask;
const { path, worldPath, worker, ingressUrl, version = '0', concurrency = 10, drainMs = 2_000, quiet = false } = task;
process.once('disconnect', () => process.exit());

const connect = (at: string): Redis => {
  const redis = new Redis({ path: at, maxRetriesPerRequest: null, retryStrategy: () => 50 });
  redis.on('error', () => undefined);
  return redis;
};
const redis = connect(path);
/** The world outside: what attempts left, and a resource that knows the keys it has served. */
const world = connect(worldPath);

const tools = fleetConformanceTools(
  {
    mark: async (kind, mark) => (quiet && kind === 'started' ? 0 : world.rpush(kind, JSON.stringify(mark))),
    first: (key, kind, mark) => served(world, `served:${key}`, kind, mark),
  },
  worker,
);
const spillway = createSpillway({ tools, store: redisStore(redis) });
let port = 0;
const fleet =
  ingressUrl === undefined
    ? bullmqFleet(redis)
    : restateFleet(redis, { ingressUrl, port: 0, listening: (at) => (port = at) });
const serving = fleet.serve({ layer: spillway, worker, version, concurrency, drainMs });
process.once('SIGTERM', () => {
  void (async () => {
    await serving.close();
    await fleet.close();
    process.exit(0);
  })();
});
await serving.ready;
// What lives, and not what waits to be collected: asked for by whoever looks whether it grows.
process.on('message', () => {
  globalThis.gc?.();
  process.send?.({ heapMb: process.memoryUsage().heapUsed / 1e6 });
});
process.send?.({ ready: true, port });
