// Was: a result that is kept for less than a second had gone before whoever waited for it in another process looked
// again, and that one ran, too; nothing said so. Now: who waits looks at least twice while a result is kept.
import { Redis } from 'ioredis';
import { createSpillway, tool, type Spillway } from 'spillway';
import { redisStore } from 'spillway/stores/redis';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { asked } from '../spec/tr-02-stores.ts';
import { startRedis, type RedisServer } from '../stores/redis/server.ts';

let server: RedisServer;
beforeAll(async () => (server = await startRedis()));
afterAll(() => server.stop());

describe('R-9.4 a result that is kept for a short time', () => {
  it('R-9.4 reaches those who wait for it in other processes, and nothing runs again', async () => {
    let paid = 0;
    const clients: Redis[] = [];
    let end = (): void => undefined;
    const ends = new Promise<void>((resolve) => (end = resolve));
    const layerOf = (): Spillway => {
      const redis = new Redis({ path: server.path, maxRetriesPerRequest: null });
      clients.push(redis);
      const policy = { effects: 'mutating', dedupe: { doneTtlMs: 400 } } as const;
      const execute = async (): Promise<number> => {
        await ends;
        return ++paid;
      };
      return createSpillway({ store: redisStore(redis), tools: [tool({ name: 't', policy, execute })] });
    };
    const calls = Array.from({ length: 16 }, () => layerOf().execute(asked()));
    // By then they look a second apart.
    await new Promise((resolve) => setTimeout(resolve, 3_000));
    end();
    const results = await Promise.all(calls);
    expect(results.filter(({ fromCache }) => !fromCache)).toHaveLength(1);
    expect(paid).toBe(1);
    for (const client of clients) client.disconnect();
  });
});
