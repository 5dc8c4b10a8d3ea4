import { Redis } from 'ioredis';
import { createClient } from 'redis';
import type { RedisClientLike, RedisSubscriberLike } from '../../../src/stores/redis.ts';
import type { RedisServer } from './server.ts';

/** A connected client of one of the libraries. */
export interface TestClient {
  readonly client: RedisClientLike & RedisSubscriberLike;
  close(): Promise<void>;
}

export interface ClientPlace {
  readonly path?: string;
  readonly port?: number;
  readonly password?: string;
  readonly user?: string;
}

const ignore = (): void => undefined;

/** The official package. Errors of the connection are told by the commands as well. */
const nodeRedis = async ({ path, port, password, user }: ClientPlace): Promise<TestClient> => {
  const socket = {
    reconnectStrategy: () => 50,
    ...(path === undefined ? { host: '127.0.0.1', port: port ?? 0 } : { path, tls: false as const }),
  };
  const client = createClient({
    socket,
    ...(password === undefined ? {} : { password }),
    ...(user === undefined ? {} : { username: user }),
  });
  client.on('error', ignore);
  await client.connect();
  return { client, close: async () => client.destroy() };
};

const ioRedis = async ({ path, port, password, user }: ClientPlace): Promise<TestClient> => {
  const place = path === undefined ? { host: '127.0.0.1', port: port ?? 0 } : { path };
  const client = new Redis({
    ...place,
    retryStrategy: () => 50,
    lazyConnect: true,
    ...(password === undefined ? {} : { password }),
    ...(user === undefined ? {} : { username: user }),
  });
  client.on('error', ignore);
  await client.connect();
  return { client, close: async () => client.disconnect() };
};

export type Connect = (place: ClientPlace) => Promise<TestClient>;

/** Each library by its name. */
export const CLIENTS: ReadonlyArray<readonly [string, Connect]> = [
  ['redis', nodeRedis],
  ['ioredis', ioRedis],
];

export const at = ({ path }: RedisServer): ClientPlace => ({ path });
