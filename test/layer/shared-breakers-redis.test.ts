import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createSpillway, tool, type Spillway } from 'spillway';
import { redisStore } from 'spillway/stores/redis';
import { CLIENTS, at, type TestClient } from '../stores/redis/clients.ts';
import { gate } from '../spec/tr-02-stores.ts';
import { startRedis, type RedisServer } from '../stores/redis/server.ts';

/** Eight calls through Redis are rejected within it, also beside busy loops. */
const COOLDOWN_MS = 5_000;
const SIZE = 8;

describe.each(CLIENTS)('R-3.10 breakers shared over Redis, by %s', (_, connect) => {
  let server: RedisServer;
  const clients: TestClient[] = [];
  const layers: Spillway[] = [];
  const state = { up: false, runs: 0, asked: Promise.resolve() };

  beforeAll(async () => {
    server = await startRedis();
    for (let n = 0; n < SIZE; n++) {
      const client = await connect(at(server));
      clients.push(client);
      const flaky = tool({
        name: 'flaky',
        policy: { retry: { maxAttempts: 1 }, breaker: { cooldownMs: COOLDOWN_MS, successThreshold: 1 } },
        execute: async () => {
          state.runs++;
          // Until all the others have asked.
          if (state.up) await state.asked;
          if (!state.up) throw new Error('ECONNRESET');
          return 'ok';
        },
      });
      // A store and a connection of its own for each, as eight processes have.
      layers.push(createSpillway({ tools: [flaky], store: redisStore(client.client), shareBreakers: true }));
    }
  });
  afterAll(async () => {
    for (const layer of layers) await layer.close();
    for (const client of clients) await client.close();
    await server.stop();
  });

  it('R-3.10 what one opens is open for all at their next call; after the cooldown eight that ask at once make exactly one probe', async () => {
    const status = async (layer: Spillway | undefined): Promise<string | undefined> =>
      (await layer?.execute({ toolName: 'flaky' }))?.status;
    for (let failure = 0; failure < 5; failure++) expect(await status(layers[0])).toBe('retriable_error');
    // The record is written beside the call that opened it.
    await expect.poll(async () => server.cli('--raw', 'keys', '*breaker*')).toContain('breaker');
    expect(await Promise.all(layers.map(status))).toEqual(layers.map(() => 'circuit_open'));
    expect(state.runs).toBe(5);
    await sleep(COOLDOWN_MS + 100);
    state.up = true;
    const others = gate();
    state.asked = others.opened;
    let rejected = 0;
    const asking = layers.map(async (layer) => {
      const one = await status(layer);
      if (one === 'circuit_open' && ++rejected === SIZE - 1) others.open();
      return one;
    });
    const statuses = await Promise.all(asking);
    expect(statuses.filter((one) => one === 'success')).toHaveLength(1);
    expect(statuses.filter((one) => one === 'circuit_open')).toHaveLength(SIZE - 1);
    expect(state.runs).toBe(6);
    await expect.poll(async () => (await Promise.all(layers.map(status))).every((one) => one === 'success')).toBe(true);
  });
});
