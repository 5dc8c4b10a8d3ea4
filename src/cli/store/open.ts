import { existsSync } from 'node:fs';
import type { DedupeStore } from '../../contract/store.ts';
import { UsageError } from '../arguments/usage.ts';
import { shownName } from '../show/text.ts';

/** A store of the command's own, and what ends it. */
export interface OpenStore {
  readonly store: DedupeStore;
  readonly close: () => Promise<void>;
}

const EXAMPLE = 'redis://localhost:6379';
const FIRST_ANSWER_MS = 5_000;

const sqlite = async (path: string, stays: boolean): Promise<OpenStore> => {
  if (path === '' || (!stays && !existsSync(path)))
    throw new UsageError(`--store: there is no file ${shownName(path)}; write sqlite: and its path`);
  const { sqliteStore } = await import('../../stores/sqlite.ts');
  try {
    const store = sqliteStore(path);
    return { store, close: async () => store.close?.() };
  } catch (error) {
    throw new UsageError(`--store: ${(error as Error).message}`, { cause: error });
  }
};

/** How soon a lost connection is tried again. */
const AGAIN_MAX_MS = 2_000;

const redis = async (url: URL, stays: boolean): Promise<OpenStore> => {
  const prefix = url.searchParams.get('prefix');
  url.search = '';
  const place = `${url.protocol}//${url.host}${url.pathname}`;
  const [{ Redis }, { redisStore }] = await Promise.all([import('ioredis'), import('../../stores/redis.ts')]).catch(
    (cause: unknown) => {
      throw new UsageError('a store in Redis needs one package more; npm install ioredis', { cause });
    },
  );
  const retryStrategy = (times: number): number | null => (stays ? Math.min(times * 100, AGAIN_MAX_MS) : null);
  const client = new Redis(url.href, { lazyConnect: true, connectTimeout: FIRST_ANSWER_MS, retryStrategy });
  client.on('error', () => undefined);
  try {
    await client.connect();
  } catch {
    client.disconnect();
    throw new UsageError(`nothing answers at ${place}; check that Redis runs there, and the password`);
  }
  try {
    const store = redisStore(client, prefix === null ? {} : { prefix });
    return { store, close: async () => client.disconnect() };
  } catch (error) {
    client.disconnect();
    throw error instanceof RangeError ? new UsageError(`--store: ${error.message}`) : error;
  }
};

/**
 * Opens the store that a URL names.
 *
 * @param stays whether the command goes on with it: a file that is not there is made, and a connection that is lost
 * comes back. Who only looks would look in vain into a file that was made for it
 * @throws UsageError for a URL that names none, and where nothing answers there; nothing of a password is in it
 */
export async function openStore(given: string | undefined, stays = false): Promise<OpenStore> {
  const text = given ?? '';
  if (text === '') throw new UsageError(`the store is missing; write --store ${EXAMPLE}, or set SPILLWAY_STORE`);
  if (text.startsWith('sqlite:')) return sqlite(text.slice('sqlite:'.length), stays);
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || !['redis:', 'rediss:'].includes(url.protocol))
    throw new UsageError(`--store must be redis://, rediss:// or sqlite:FILE, such as ${EXAMPLE}`);
  return redis(url, stays);
}
