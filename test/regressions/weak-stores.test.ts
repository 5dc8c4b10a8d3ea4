// Was: a Redis that keeps nothing, or lacks the replicas that are waited for, said so only when it was asked. Now: the
// trace and `warnings` tell at the start.
import { createSpillway, tool, type DedupeStore, type TraceEvent } from 'spillway';
import { memoryStore } from 'spillway/stores/memory';
import { redisStore } from 'spillway/stores/redis';
import { virtualRuntime } from 'spillway/testing';
import { describe, expect, it, onTestFinished } from 'vitest';
import { CLIENTS, at } from '../stores/redis/clients.ts';
import { startRedis } from '../stores/redis/server.ts';
import { asked } from '../spec/tr-02-stores.ts';

const [, connect] = CLIENTS[0] ?? [];
const layerOn = (store: DedupeStore, runtime = virtualRuntime()) => {
  const layer = createSpillway({ store, runtime, tools: [tool({ name: 't', execute: () => 1 })] });
  const told: TraceEvent[] = [];
  layer.trace$.subscribe((event) => void (event.type === 'store_changed' && told.push(event)));
  return { layer, told, lines: () => layer.warnings.filter((line) => line.startsWith('store: ')) };
};

/** A client of a real Redis that is set up so. */
const redisWith = async (settings: Readonly<Record<string, string>>) => {
  const server = await startRedis({ settings });
  const client = await connect?.(at(server));
  if (client === undefined) throw new Error('there is no client library');
  onTestFinished(async () => {
    await client.close();
    await server.stop();
  });
  return client.client;
};

describe('R-10.3 how durable a store is, told at the start', () => {
  it.each([{}, { appendonly: 'yes', appendfsync: 'always' }])(
    'R-10.3 a real Redis with %j and no replicas, of which one is waited for',
    async (settings) => {
      const client = await redisWith(settings);
      const { layer, lines } = layerOn(redisStore(client, { durability: 'replicated' }));
      await expect.poll(async () => (await layer.inspect()).store?.kind).toBe('redis');
      expect(lines()).toContainEqual(expect.stringMatching('has 0 replicas and 1 are waited for'));
    },
  );

  it.each([
    [{}, ['keeps no append-only file']],
    [
      { appendonly: 'yes', appendfsync: 'always', maxmemory: '1gb', 'maxmemory-policy': 'allkeys-lru' },
      ['may evict records'],
    ],
    [{ appendonly: 'yes', 'rename-command': 'CONFIG refused' }, ['CONFIG is forbidden']],
    [{ appendonly: 'yes', appendfsync: 'always' }, []],
  ])('R-10.3 a real Redis with %j', async (settings, lines) => {
    const client = await redisWith(settings);
    const { layer, told, lines: warned } = layerOn(redisStore(client));
    // It has been asked by the time that another report is there, since commands of one connection are answered in
    // order.
    await expect.poll(async () => (await layer.inspect()).store?.kind).toBe('redis');
    expect(told.map((event) => 'state' in event && event.state)).toEqual(lines.map(() => 'weak'));
    expect(warned()).toEqual(lines.map((line) => expect.stringMatching(`^store: .*${line}`) as string));
    for (const [i, line] of lines.entries())
      expect(told[i]).toMatchObject({ message: expect.stringContaining(line) as string });
  });

  it('R-10.3 a store that is not there at the start is asked again once it answers, and tells once', async () => {
    let there = false;
    let reports = 0;
    const runtime = virtualRuntime();
    const memory = memoryStore({ runtime });
    const gone = (): never => {
      throw new Error('connect ECONNREFUSED');
    };
    const { layer, told, lines } = layerOn(
      {
        ...memory,
        setIfNotExists: (claim, over) => (there ? memory.setIfNotExists(claim, over) : gone()),
        report: () => (
          reports++,
          there ? { kind: 'own', durability: 'unknown', shared: true, warnings: ['It would not say.'] } : gone()
        ),
      },
      runtime,
    );
    await layer.execute(asked());
    there = true;
    for (let n = 0; n < 5; n++) await layer.execute(asked());
    expect(told).toMatchObject([{ state: 'lost' }, { state: 'weak', message: 'It would not say.' }, { state: 'back' }]);
    expect([lines(), reports]).toEqual([['store: It would not say.'], 2]);
  });

  it('R-10.3 memory, which is told to be memory, is no news; a report that never comes is asked for a few times only', async () => {
    const { told, layer, lines } = layerOn(memoryStore());
    await layer.execute(asked());
    expect([told, lines()]).toEqual([[], []]);
    let reports = 0;
    const runtime = virtualRuntime();
    const silent = layerOn(
      { ...memoryStore({ runtime }), report: () => Promise.reject(new Error(`no ${++reports}`)) },
      runtime,
    );
    for (let n = 0; n < 20; n++) await silent.layer.execute(asked({ key: `k${n}` }));
    expect([silent.told, silent.lines(), reports]).toEqual([[], [], 3]);
  });
});
