import { afterAll, beforeAll, expect, it } from 'vitest';
import { startRedis, type RedisServer } from '../stores/redis/server.ts';
import { EXAMPLE_TIMEOUT_MS, linesOf } from './started.ts';

let server: RedisServer | undefined;
beforeAll(async () => {
  server = await startRedis({ tcp: true });
});
afterAll(() => server?.stop());

it(
  'redis: two processes make one payment, and one of them has it replayed',
  { timeout: EXAMPLE_TIMEOUT_MS },
  async () => {
    expect(await linesOf('redis', { REDIS_URL: `redis://127.0.0.1:${server?.port}` })).toEqual([
      '{"receipt":1,"cents":100,"replayed":false}',
      '{"receipt":1,"cents":100,"replayed":true}',
    ]);
    expect((await server?.cli('get', 'example:receipts'))?.trim()).toBe('1');
  },
);
