import type { Redis } from 'ioredis';
import type { FleetEngine } from '../../contract/fleet/port.ts';
import type { DedupeStore } from '../../contract/store.ts';
import { UsageError } from '../arguments/usage.ts';
import type { Environment } from '../environment.ts';
import { addressOf, type ConnectOptions, type EngineAddress } from './address.ts';

/** An engine of the command's own, the store beside it, and what ends both. */
export interface OpenEngine {
  readonly fleet: FleetEngine;
  readonly store: DedupeStore;
  /** Where it is, without what only its users may know. */
  readonly place: string;
  close(): Promise<void>;
}

/** What makes an engine of a connection, and what else it needs. */
interface Peers {
  readonly fleet: (redis: Redis) => FleetEngine;
  readonly store: (redis: Redis) => DedupeStore;
  readonly connect: (options: ConnectOptions) => Redis;
}

/** @param listening told the port at which Restate calls this process, once it serves */
const makerOf = async (
  { name, restate }: EngineAddress,
  listening: (port: number) => void,
): Promise<(redis: Redis) => FleetEngine> => {
  const named = name === undefined ? {} : { name };
  if (restate === undefined) {
    const { bullmqFleet } = await import('../../fleet/bullmq.ts');
    return (redis) => bullmqFleet(redis, named);
  }
  const { restateFleet } = await import('../../fleet/restate.ts');
  return (redis) => restateFleet(redis, { ...restate, ...named, listening });
};

const peers = async (address: EngineAddress, listening: (port: number) => void): Promise<Peers> => {
  try {
    const [fleet, { redisStore }, ioredis] = await Promise.all([
      makerOf(address, listening),
      import('../../stores/redis.ts'),
      import('ioredis'),
    ]);
    const prefix = `spillway:${address.name ?? 'spillway'}:`;
    return {
      fleet,
      store: (redis) => redisStore(redis, { prefix }),
      connect: (options) => new ioredis.Redis(options),
    };
  } catch (error) {
    const packages = address.restate === undefined ? 'bullmq ioredis' : '@restatedev/restate-sdk ioredis';
    throw new UsageError(`this engine needs two packages more; npm install ${packages}`, { cause: error });
  }
};

const FIRST_ANSWER_MS = 5_000;

/**
 * Opens the engine that a URL names.
 * @param listening told the port at which Restate calls this process, once it serves
 * @throws UsageError for a URL that names none, and where nothing answers there
 */
export async function openEngine(
  given: string | undefined,
  env: Environment,
  listening: (port: number) => void = () => undefined,
): Promise<OpenEngine> {
  const address = addressOf(given, env);
  const make = await peers(address, listening);
  const redis = make.connect({
    ...address.redis,
    maxRetriesPerRequest: null,
    lazyConnect: true,
    connectTimeout: FIRST_ANSWER_MS,
  });
  redis.on('error', () => undefined);
  try {
    await redis.connect();
  } catch {
    redis.disconnect();
    throw new UsageError(`nothing answers at ${address.redisPlace}; check that Redis runs there, and the password`);
  }
  let fleet: FleetEngine;
  try {
    fleet = make.fleet(redis);
  } catch (error) {
    redis.disconnect();
    if (error instanceof RangeError) throw new UsageError(`--engine: ${error.message}`);
    throw error;
  }
  return {
    fleet,
    store: make.store(redis),
    place: address.place,
    close: async () => {
      await fleet.close();
      redis.disconnect();
    },
  };
}
