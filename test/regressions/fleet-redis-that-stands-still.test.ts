// Was: a worker asks for its turn again where Redis gives no answer, and a Redis that stood still for a minute and woke
// up took each time for another owner that had died of the turn: it was refused, though nobody had begun it. Now: one
// beginning is one owner, however often it was asked for.
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { NEVER, type Observable } from 'rxjs';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createSpillway, plan, tool } from 'spillway';
import { virtualRuntime } from 'spillway/testing';
import type { TraceEvent } from '../../src/contract/event.ts';
import type { Given, RunEnd } from '../../src/fleet/dispatcher.ts';
import { engineOnRedis } from '../../src/fleet/redis/engine.ts';
import { sharedStore } from '../fleet/by-hand.ts';
import { startRedis, type RedisServer } from '../stores/redis/server.ts';

let server: RedisServer;
let redis: Redis;

beforeAll(async () => {
  server = await startRedis();
  redis = new Redis({ path: server.path, maxRetriesPerRequest: null });
});

afterAll(async () => {
  redis.disconnect();
  await server.stop();
});

/** A worker over the real Redis, whose timers are the test's, and which the test gives turns to. */
const workerOver = (name: string) => {
  const runtime = virtualRuntime();
  let run: ((given: Given) => Observable<RunEnd>) | undefined;
  const fleet = engineOnRedis(
    redis,
    { name, runtime },
    {
      engine: 'by hand',
      add: async () => undefined,
      work: (given) => {
        run = given;
        return { ready: Promise.resolve(), pause: async () => undefined, close: async () => undefined };
      },
      close: async () => undefined,
    },
  );
  const events: TraceEvent[] = [];
  /** Redis answers in its own time, whatever the test's clock says. */
  const passing = async (ms: number, isOver: () => boolean = () => false): Promise<void> => {
    for (let passed = 0; passed < ms && !isOver(); passed += 100) {
      await runtime.advance(100);
      await sleep(1);
    }
  };
  return { runtime, fleet, events, passing, give: (given: Given): Observable<RunEnd> => run?.(given) ?? NEVER };
};

it('R-17.4 a turn that was asked for while Redis stood still has had one owner', async () => {
  const { runtime, fleet, events, passing, give } = workerOver('still');
  const pay = tool({ name: 'pay', policy: { effects: 'mutating' }, execute: () => 'paid' });
  await fleet.submit('t', plan.from([{ id: 'n', tool: 'pay' }], { timeoutMs: 1_000_000 }));
  await fleet.serve({ layer: createSpillway({ tools: [pay], store: sharedStore(runtime), runtime }), worker: 'w' })
    .ready;
  await server.kill('SIGSTOP');
  const ends: RunEnd[] = [];
  give({ turnId: 't', lost$: NEVER }).subscribe((end) => ends.push(end));
  await passing(90_000);
  expect(ends).toStrictEqual([]);
  await server.kill('SIGCONT');
  fleet.attach('t').subscribe((event) => events.push(event));
  await passing(60_000, () => events.some(({ source, type }) => source === 'turn' && type === 'settled'));
  expect(events.at(-1)).toMatchObject({ type: 'settled', result: { status: 'completed', values: { n: 'paid' } } });
  // Nor has it moved: its only owner is who asked for it.
  expect(events.map(({ type }) => type)).not.toContain('turn_moved');
  expect(await redis.hget('{still-ledger}:turn:t', 'epoch')).toBe('1');
});
