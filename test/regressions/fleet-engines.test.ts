// Was: Restate remembered a turn's id for longer than the fleet, and clocks, stale orders and one tenant's backlog
// decided over other turns. Now: each is told from the other, and tenants take turns.
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createSpillway, plan, tool, type AnyTool } from 'spillway';
import { bullmqFleet } from 'spillway/fleet/bullmq';
import { fleetLimits } from 'spillway/fleet/limits';
import { restateFleet } from 'spillway/fleet/restate';
import { redisStore } from 'spillway/stores/redis';
import { Subject, defer, firstValueFrom, fromEvent } from 'rxjs';
import { places } from '../../src/fleet/places.ts';
import { RedisLedger } from '../../src/fleet/redis/ledger.ts';
import { abortOf } from '../../src/fleet/worker/abort-of.ts';
import { liveRuntime } from '../../src/runtime.ts';
import { settledOf, eventsOf } from '../fleet/kit.ts';
import { startRedis, type RedisServer } from '../stores/redis/server.ts';

let server: RedisServer;
const connections: Redis[] = [];
const connect = (): Redis => {
  const redis = new Redis({ path: server.path, maxRetriesPerRequest: null, retryStrategy: () => 50 });
  redis.on('error', () => undefined);
  connections.push(redis);
  return redis;
};
beforeAll(async () => {
  server = await startRedis({ settings: { 'maxmemory-policy': 'noeviction' } });
});
afterAll(async () => {
  for (const redis of connections) redis.disconnect();
  await server.stop();
});

const ledgerOf = (name: string, keepMs = 60_000): RedisLedger =>
  new RedisLedger(connect(), {
    name,
    subscriber: undefined,
    keepMs,
    maxEvents: 100,
    commandTimeoutMs: 5_000,
    runtime: liveRuntime,
  });
const entryOf = (turnId: string, tenant = '') => ({
  turnId,
  record: '{}',
  digest: 'd',
  tenant,
  timeoutMs: 60_000,
  submission: `s-${turnId}`,
});

it('R-17.8 who refuses a turn of another version leaves it that version', async () => {
  const ledger = ledgerOf('versions');
  await ledger.enter(entryOf('t'), 10);
  await ledger.begin('t', 'a', 'v1', false, 'a');
  expect(await ledger.begin('t', 'b', 'v2', true, 'b')).toMatchObject({ state: 'begun' });
  expect(await ledger.begin('t', 'c', 'v2', false, 'c')).toMatchObject({ state: 'other_version', version: 'v1' });
});

it('R-17.6 an order to cancel is of one turn, and of no later one of its id', async () => {
  const ledger = ledgerOf('orders');
  await ledger.enter(entryOf('t'), 10);
  expect(await ledger.cancel('t')).toBe(true);
  await connect().del('{orders}:turn:t');
  await ledger.enter(entryOf('t'), 10);
  expect(await ledger.begin('t', 'a', '0', false, 'a')).toMatchObject({ epoch: 1, isCancelled: false });
  const held = [
    { turnId: 't', epoch: 1, undoes: false },
    { turnId: 't', epoch: 2, undoes: false },
    { turnId: 'gone', epoch: 1, undoes: false },
  ];
  expect(await ledger.beat('a', '0', 1, held)).toStrictEqual(['held', 'taken', 'taken']);
  await ledger.cancel('t');
  expect(await ledger.beat('a', '0', 1, held.slice(0, 1))).toStrictEqual(['cancelled']);
});

it('R-17.7 a turn that waits for longer than turns are kept still waits', async () => {
  const ledger = ledgerOf('waiting', 1);
  await ledger.enter(entryOf('t1'), 10);
  const { lagMs } = await ledger.report();
  let later = lagMs;
  while (later <= 2) later = (await ledger.report()).lagMs;
  await ledger.enter(entryOf('t2'), 10);
  expect(await ledger.report()).toMatchObject({ waiting: 2, running: 0 });
});

it('R-17.7 tenants take turns: neither a flood nor who asks again and again keeps others waiting', async () => {
  const ledger = ledgerOf('places');
  const placeOf = async (turnId: string, tenant: string): Promise<number> => {
    const entered = await ledger.enter(entryOf(turnId, tenant), 100);
    return 'place' in entered ? entered.place : 0;
  };
  const flood: number[] = [];
  for (let at = 0; at < 5; at++) flood.push(await placeOf(`a${at}`, 'a'));
  expect(flood).toStrictEqual([1, 2, 3, 4, 5]);
  for (const [at, place] of [1, 2, 3].entries()) {
    expect(await placeOf(`b${at}`, 'b')).toBe(place);
    await ledger.begin(`a${at}`, 'w', '0', false, 'w');
    await ledger.begin(`b${at}`, 'w', '0', false, 'w');
    await ledger.write(`b${at}`, 1, {
      events: [],
      firstSeq: 1,
      nodes: [],
      decisions: [],
      told: [],
      settles: true,
      tenant: 'b',
    });
  }
  // One who comes new begins where the others are.
  expect(await placeOf('c', 'c')).toBe(4);
});

it('R-17.7 an engine that gives turns in another order puts nobody behind all that wait', async () => {
  const ledger = ledgerOf('unordered');
  for (let at = 0; at < 50; at++) await ledger.enter(entryOf(`a${at}`, 'a'), 100);
  await ledger.begin('a49', 'w', '0', false, 'w');
  await ledger.begin('a30', 'w', '0', false, 'w');
  expect(await ledger.enter(entryOf('b', 'b'), 100)).toMatchObject({ place: 3 });
});

it('R-17.7 of turns that wait for a place the lowest rank comes first, and of one rank the first', async () => {
  const limited = places(1);
  const began: string[] = [];
  const held = (name: string, rank: number): Subject<void> => {
    const done$ = new Subject<void>();
    limited
      .held(
        defer(() => {
          began.push(name);
          return done$;
        }),
        rank,
      )
      .subscribe();
    return done$;
  };
  const all = [held('a9', 9), held('b7', 7), held('c3', 3), held('d7', 7)] as const;
  expect(began).toStrictEqual(['a9']);
  for (const at of [0, 2, 1] as const) all[at].complete();
  expect(began).toStrictEqual(['a9', 'c3', 'b7', 'd7']);
  let isEmpty = false;
  const emptied = limited.empty().then(() => (isEmpty = true));
  await Promise.resolve();
  expect(isEmpty).toBe(false);
  all[3].complete();
  await emptied;
});

it('R-17.7 a tenant at its own limit uses up no place of the tool', async () => {
  const hook = fleetLimits(connect(), {
    name: 'both',
    maxWaitMs: 0,
    tools: { pay: { perSecond: 0.001, burst: 2 } },
    tenants: { a: { perSecond: 0.001, burst: 1 } },
  });
  const asked = (tenant: string): Promise<unknown> =>
    firstValueFrom(
      hook.beforeToolCall({ toolName: 'pay', tenant, attempt: 1 } as Parameters<typeof hook.beforeToolCall>[0]),
    );
  expect(await asked('a')).toStrictEqual({});
  for (let times = 0; times < 5; times++)
    expect(await asked('a')).toMatchObject({ block: expect.stringMatching(/^the tenant is at/) as string });
  expect(await asked('b')).toStrictEqual({});
  expect(await asked('b')).toMatchObject({ block: expect.stringMatching(/^the tool pay is at/) as string });
});

it('R-17.3 an id that stands for a new turn is a new invocation of Restate, and the same turn none', async () => {
  const keys: string[] = [];
  const ingress = createServer((request, response) => {
    keys.push(String(request.headers['idempotency-key']));
    response.writeHead(202).end();
  }).listen(0, '127.0.0.1');
  await firstValueFrom(fromEvent(ingress, 'listening'));
  const { port } = ingress.address() as AddressInfo;
  const redis = connect();
  const fleet = restateFleet(redis, { ingressUrl: `http://127.0.0.1:${port}`, name: 'keys' });
  try {
    const trip = plan.from([{ id: 'n', tool: 'pay' }]);
    await fleet.submit('t', trip);
    await fleet.submit('t', trip);
    await redis.del('{keys-ledger}:turn:t');
    await fleet.submit('t', trip);
    expect(keys).toHaveLength(3);
    expect(keys[1]).toBe(keys[0]);
    expect(keys[2]).not.toBe(keys[0]);
  } finally {
    await fleet.close();
    ingress.close();
  }
});

it('R-17.4 that an attempt is over is known also where it was over before', async () => {
  expect(await firstValueFrom(abortOf(AbortSignal.abort()))).toBe(0);
});

/** A tool that runs until it is told to stop, and what it did. */
const hanging = () => {
  const log: string[] = [];
  const began = Promise.withResolvers<unknown>();
  const hang = tool({
    name: 'hang',
    policy: { effects: 'read', retry: { maxAttempts: 1 } },
    execute: (_input: unknown, { signal }) =>
      new Promise((resolve) => {
        log.push('began');
        began.resolve(0);
        signal.addEventListener('abort', () => {
          log.push('aborted');
          resolve(0);
        });
      }),
  }) as AnyTool;
  return { log, hang, began: began.promise };
};

it('R-17.6 a worker whose clock is wrong hands its turns over at once', async () => {
  const redis = connect();
  const ahead = { ...liveRuntime, wallNow: () => Date.now() + 3_600_000 };
  const { hang, began } = hanging();
  const name = 'skew';
  const [a, b] = [bullmqFleet(redis, { name, runtime: ahead }), bullmqFleet(redis, { name })];
  const done = tool({ name: 'hang', policy: { effects: 'read' }, execute: () => 'done' }) as AnyTool;
  const serving = a.serve({
    layer: createSpillway({ tools: [hang], store: redisStore(connect()) }),
    worker: 'a',
    drainMs: 0,
  });
  try {
    await serving.ready;
    await a.submit('t', plan.from([{ id: 'n', tool: 'hang' }], { timeoutMs: 30_000 }));
    await began;
    await serving.close();
    await b.serve({ layer: createSpillway({ tools: [done], store: redisStore(connect()) }), worker: 'b' }).ready;
    const events = await eventsOf(b, 't');
    expect(settledOf(events).values).toStrictEqual({ n: 'done' });
  } finally {
    await a.close();
    await b.close();
  }
});
