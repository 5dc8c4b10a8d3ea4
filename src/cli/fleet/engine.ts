import type { Redis, RedisOptions } from 'ioredis';
import type { FleetEngine } from '../../contract/fleet/port.ts';
import type { DedupeStore } from '../../contract/store.ts';
import type { bullmqFleet } from '../../fleet/bullmq.ts';
import type { redisStore } from '../../stores/redis.ts';
import { UsageError } from '../arguments/usage.ts';
import type { Environment } from '../environment.ts';

/** An engine of the command's own, the store beside it, and what ends both. */
export interface OpenEngine {
  readonly fleet: FleetEngine;
  readonly store: DedupeStore;
  /** Where it is, without what only its users may know. */
  readonly place: string;
  close(): Promise<void>;
}

const SCHEMES: readonly string[] = ['bullmq:', 'bullmqs:', 'bullmq+unix:'];
const EXAMPLE = 'bullmq://localhost:6379';

const urlOf = (given: string | undefined, env: Environment): URL => {
  const text = given ?? env['SPILLWAY_ENGINE'] ?? '';
  if (text === '') throw new UsageError(`the engine is missing; write --engine ${EXAMPLE}, or set SPILLWAY_ENGINE`);
  // Nothing of it is said: it may hold a password.
  if (!URL.canParse(text)) throw new UsageError(`--engine must be a URL, such as ${EXAMPLE}`);
  const url = new URL(text);
  if (!SCHEMES.includes(url.protocol))
    throw new UsageError(
      `there is no engine ${JSON.stringify(url.protocol.slice(0, 32))}; there is bullmq:, bullmqs: (over ` +
        `TLS) and bullmq+unix: (a socket), such as ${EXAMPLE}`,
    );
  return url;
};

const PORT = 6_379;

type ConnectOptions = Omit<RedisOptions, 'replyMapping'>;

/** What `ioredis` takes. */
const connectionOf = ({ protocol, hostname, port, pathname, username, password }: URL): ConnectOptions => {
  if (protocol === 'bullmq+unix:') return { path: decodeURIComponent(pathname) };
  const db = Number(pathname.slice(1));
  if (!Number.isInteger(db))
    throw new UsageError(`--engine: what follows the host is the number of a database, such as ${EXAMPLE}/1`);
  return {
    host: hostname.replace(/^\[|\]$/g, ''),
    port: port === '' ? PORT : Number(port),
    db,
    ...(username === '' ? {} : { username: decodeURIComponent(username) }),
    ...(password === '' ? {} : { password: decodeURIComponent(password) }),
    ...(protocol === 'bullmqs:' ? { tls: {} } : {}),
  };
};

interface Peers {
  readonly bullmqFleet: typeof bullmqFleet;
  readonly redisStore: typeof redisStore;
  readonly connect: (options: ConnectOptions) => Redis;
}

const peers = async (): Promise<Peers> => {
  try {
    const [fleet, store, ioredis] = await Promise.all([
      import('../../fleet/bullmq.ts'),
      import('../../stores/redis.ts'),
      import('ioredis'),
    ]);
    return {
      bullmqFleet: fleet.bullmqFleet,
      redisStore: store.redisStore,
      connect: (options) => new ioredis.Redis(options),
    };
  } catch (error) {
    throw new UsageError('this engine needs two packages more; npm install bullmq ioredis', { cause: error });
  }
};

const FIRST_ANSWER_MS = 5_000;

/**
 * Opens the engine that a URL names.
 * @throws UsageError for a URL that names none, and where nothing answers there
 */
export async function openEngine(given: string | undefined, env: Environment): Promise<OpenEngine> {
  const url = urlOf(given, env);
  const { connect, ...make } = await peers();
  const redis = connect({
    ...connectionOf(url),
    maxRetriesPerRequest: null,
    lazyConnect: true,
    connectTimeout: FIRST_ANSWER_MS,
  });
  redis.on('error', () => undefined);
  const place = `${url.protocol}//${url.host}${url.pathname}`;
  try {
    await redis.connect();
  } catch {
    redis.disconnect();
    throw new UsageError(`nothing answers at ${place}; check that Redis runs there, and the password`);
  }
  const name = url.searchParams.get('name');
  let fleet: FleetEngine;
  try {
    fleet = make.bullmqFleet(redis, name === null ? {} : { name });
  } catch (error) {
    redis.disconnect();
    if (error instanceof RangeError) throw new UsageError(`--engine: ${error.message}`);
    throw error;
  }
  return {
    fleet,
    store: make.redisStore(redis, { prefix: `spillway:${name ?? 'spillway'}:` }),
    place,
    close: async () => {
      await fleet.close();
      redis.disconnect();
    },
  };
}
