import { expect, it, onTestFinished } from 'vitest';
import { redisStore } from '../../../src/stores/redis.ts';
import { redisCommands } from '../../../src/stores/redis/client.ts';
import { claimOf, failure, finish, found, own, refused } from '../../../src/testing/store-conformance/check.ts';
import { CLIENTS, at } from './clients.ts';
import { startRedis } from './server.ts';

it.each(CLIENTS)(
  'R-10.3 %s: what a client sends again after it lost the answer takes place once, and gives the same',
  async (_name, connect) => {
    const server = await startRedis();
    const { client, close } = await connect(at(server));
    onTestFinished(async () => {
      await close();
      await server.stop();
    });
    const commands = redisCommands(client);
    // As ioredis does after a reconnection: the first answer is lost on the way.
    const store = redisStore({
      sendCommand: async (args: string[]) => {
        await commands.send(args, undefined).catch(() => undefined);
        return commands.send(args, undefined);
      },
    });
    const plain = redisStore(client);
    const claim = await own(store, claimOf('k'));
    expect((await found(plain, 'k')).record).toEqual(claim);
    await refused(store, claimOf('k'), claim.version);
    const settled = await finish(store, claim, '"once"', 60_000);
    expect((await found(plain, 'k')).record).toEqual(settled);
    // Whose outcome was taken over meanwhile gets no second one in.
    const again = await own(store, claimOf('k', { requestId: 'r2' }), settled.version);
    expect(
      await store.compareAndSet('k', claim.version, { state: 'failed', ttlMs: 60_000, error: failure }),
    ).toBeUndefined();
    expect((await found(plain, 'k')).record).toEqual(again);
  },
);
