import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, it } from 'vitest';
import type { DedupeStore } from '../../../src/contract/store.ts';
import { redisStore } from '../../../src/stores/redis.ts';
import { storeConformance } from '../../../src/testing/store-conformance.ts';
import { CLIENTS, at, type TestClient } from './clients.ts';
import { startRedis, type RedisServer } from './server.ts';

let server: RedisServer;
beforeAll(async () => {
  server = await startRedis();
});
afterAll(() => server.stop());

describe.each(CLIENTS)('%s', (name, connect) => {
  let used = 0;
  const cases = storeConformance(async () => {
    const prefix = `${name}${++used}:`;
    const opened: TestClient[] = [];
    const stores: DedupeStore[] = [];
    const open = async (): Promise<DedupeStore> => {
      const [main, second] = [await connect(at(server)), await connect(at(server))];
      opened.push(main, second);
      const store = redisStore(main.client, { prefix, subscriber: second.client });
      stores.push(store);
      return store;
    };
    return {
      store: await open(),
      open,
      pass: sleep,
      forgetsAlone: true,
      close: async () => {
        for (const store of stores) await store.close?.();
        for (const client of opened) await client.close();
      },
    };
  });
  it.each(cases)('R-10.3 $name', ({ run }) => run());
});
