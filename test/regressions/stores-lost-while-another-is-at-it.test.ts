// Was: a call that waited for another's outcome, or was to take its key over, was told "The tool did not run" when the
// store was lost, while the other had paid; and a Redis that could only be read was not asked what it holds, so that a
// `bestEffort` call paid again for what was recorded there. Now: the first is uncertain, the second gets the record.
import { createSpillway, tool, type DedupeStore } from 'spillway';
import { memoryStore } from 'spillway/stores/memory';
import { redisStore } from 'spillway/stores/redis';
import { virtualRuntime } from 'spillway/testing';
import { expect, it, onTestFinished } from 'vitest';
import { asked } from '../spec/tr-02-stores.ts';
import { CLIENTS, at } from '../stores/redis/clients.ts';
import { startRedis, type RedisServer } from '../stores/redis/server.ts';

it.each([
  ['waits for another', 500, 'get'],
  ['is to take over from another', 2_000, 'setIfNotExists'],
] as const)(
  'R-10.3 a call that %s when the store is lost is told that its tool may have run',
  async (_what, ms, lost) => {
    const runtime = virtualRuntime();
    const memory = memoryStore({ runtime, sweepMs: Infinity });
    const pay = tool({
      name: 't',
      policy: { effects: 'mutating', dedupe: { leaseMs: 900 } },
      execute: () => new Promise(() => undefined),
    });
    // It pays, and its process stands still.
    const renew: DedupeStore['renew'] = () => new Promise(() => undefined);
    void createSpillway({ tools: [pay], store: { ...memory, renew }, runtime }).execute(asked());
    await runtime.advance(10);
    const down = { get: false, setIfNotExists: false };
    const unlessDown =
      <A extends unknown[], R>(which: keyof typeof down, question: (...args: A) => R) =>
      (...args: A): R => {
        if (down[which]) throw new Error('connect ECONNREFUSED');
        return question(...args);
      };
    const store: DedupeStore = {
      ...memory,
      get: unlessDown('get', memory.get),
      setIfNotExists: unlessDown('setIfNotExists', memory.setIfNotExists),
    };
    const second = createSpillway({ tools: [pay], store, runtime }).execute(asked());
    await runtime.advance(10);
    down[lost] = true;
    await runtime.advance(ms);
    expect(await second).toMatchObject({
      status: 'retriable_error',
      attempts: 0,
      error: {
        code: 'store_unavailable',
        uncertain: true,
        modelText: expect.stringContaining('The tool may have run and taken effect.') as string,
      },
    });
  },
);

const unableToSave = async (server: RedisServer): Promise<void> => {
  await server.cli('CONFIG', 'SET', 'dir', '/proc');
  await server.cli('CONFIG', 'SET', 'save', '3600 1000000');
  await server.cli('BGSAVE');
  await expect.poll(() => server.cli('INFO', 'persistence')).toContain('rdb_last_bgsave_status:err');
};

const READABLE: ReadonlyArray<readonly [string, (server: RedisServer) => Promise<unknown>]> = [
  ['out of memory', (server) => server.cli('CONFIG', 'SET', 'maxmemory', '1', 'maxmemory-policy', 'noeviction')],
  ['a replica', (server) => server.cli('REPLICAOF', '127.0.0.1', '1')],
  ['without its replicas', (server) => server.cli('CONFIG', 'SET', 'min-replicas-to-write', '1')],
  ['unable to save', unableToSave],
];

it.each(READABLE)('R-10.3 what is recorded in a Redis that is %s is not paid again', async (_what, spoil) => {
  const server = await startRedis({ settings: { 'enable-protected-configs': 'yes' } });
  onTestFinished(() => server.stop());
  const connected = await CLIENTS[0]?.[1](at(server));
  if (connected === undefined) throw new Error('there is no client library');
  onTestFinished(connected.close);
  const ended = Promise.withResolvers<string>();
  const runs: unknown[] = [];
  const pay = tool({
    name: 't',
    policy: { effects: 'mutating' },
    execute: ({ wait }: { wait?: boolean }) => (runs.push(wait), wait === true ? ended.promise : 'paid'),
  });
  const layer = createSpillway({ tools: [pay], store: redisStore(connected.client), storeTimeoutMs: 2_000 });
  onTestFinished(() => layer.close());
  await layer.execute(asked({ key: 'done' }));
  const running = layer.execute(asked({ key: 'running', params: { wait: true } }));
  await expect.poll(() => runs).toEqual([undefined, true]);
  await spoil(server);
  for (const mode of ['enforced', 'bestEffort'] as const)
    expect(await layer.execute(asked({ key: 'done', mode }))).toMatchObject({ status: 'success', fromCache: true });
  expect((await layer.execute(asked({ key: 'running', mode: 'bestEffort', params: { wait: true } }))).error?.code).toBe(
    'duplicate_in_flight',
  );
  expect((await layer.execute(asked({ key: 'new' }))).error?.code).toBe('store_unavailable');
  expect(runs).toEqual([undefined, true]);
  ended.resolve('paid');
  await running;
});
