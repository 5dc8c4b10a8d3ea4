import type { Redis } from 'ioredis';

/** A process may be killed at any moment: what is served is marked in the same step. */
const SERVE = `
if not redis.call('SET', KEYS[1], '1', 'NX') then return 0 end
redis.call('RPUSH', KEYS[2], ARGV[1])
return 1`;

/** Serves a key once, and leaves a mark of it in a list; gives whether it did. */
export const served = async (redis: Redis, key: string, list: string, mark: object): Promise<boolean> =>
  (await redis.eval(SERVE, 2, key, list, JSON.stringify(mark))) === 1;
