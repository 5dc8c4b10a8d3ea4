import { afterEach, describe, expect, it } from 'vitest';
import { ToolExecutionError, createSpillway, isToolExecutionError, plan, tool } from 'spillway';
import { bullmqFleet } from 'spillway/fleet/bullmq';
import { redisStore } from 'spillway/stores/redis';
import { eventsOf, settledOf, startFleet, type Fleet } from '../kit.ts';

let fleet: Fleet | undefined;
afterEach(() => fleet?.stop());

const small = (value: number) => plan.from([{ id: 'n', tool: 'work', input: { ms: 20, value } }]);

describe('R-17.7 backpressure', () => {
  it('R-17.7 a full queue refuses, says when to come again, and takes more once there is room', async () => {
    fleet = await startFleet({ maxOpen: 3 });
    const { engine } = fleet;
    for (const turnId of ['a', 'b', 'c']) await engine.submit(turnId, small(1));
    const error = await engine.submit('d', small(1)).catch((thrown: unknown) => thrown);
    expect(isToolExecutionError(error) && error).toMatchObject({
      kind: 'limit_exceeded',
      executed: false,
      retryAfterMs: 1_000,
    });
    expect(String(error)).toContain('The fleet has 3 turns that have not settled, and takes no more');
    // What is known already is no more work.
    expect(await engine.submit('a', small(1))).toMatchObject({ state: 'known' });
    await fleet.start('w').ready;
    await Promise.all(['a', 'b', 'c'].map((turnId) => eventsOf(engine, turnId)));
    expect(await engine.submit('d', small(1))).toMatchObject({ state: 'accepted' });
  });

  it('R-17.7 tenants take turns: one that floods does not keep the other waiting', async () => {
    fleet = await startFleet();
    const { engine } = fleet;
    for (let at = 0; at < 20; at++) await engine.submit(`loud-${at}`, small(at), { tenant: 'loud' });
    for (let at = 0; at < 2; at++) await engine.submit(`quiet-${at}`, small(at), { tenant: 'quiet' });
    await fleet.start('w', { concurrency: 1 }).ready;
    await Promise.all(['loud-19', 'quiet-0', 'quiet-1'].map((turnId) => eventsOf(engine, turnId)));
    const order = (await fleet.marks('started')).map(({ key }) => key.split('/')[0] ?? '');
    expect(order.indexOf('quiet-0')).toBeLessThanOrEqual(2);
    expect(order.indexOf('quiet-1')).toBeLessThanOrEqual(4);
    expect(order).toHaveLength(22);
  });

  it('R-17.7 a Retry-After that one machine was told keeps the workers of all others away', async () => {
    fleet = await startFleet();
    const { engine, open, redis } = fleet;
    const asked: Array<{ readonly worker: string; readonly atMs: number }> = [];
    const serve = async (worker: string) => {
      const limited = tool({
        name: 'limited',
        policy: { effects: 'read', retry: { maxAttempts: 1 }, breaker: { failureThreshold: 1, cooldownMs: 100 } },
        execute: () => {
          asked.push({ worker, atMs: performance.now() });
          if (asked.length > 1) return worker;
          throw new ToolExecutionError('execution_error', 'slow down', { status: 429, retryAfterMs: 2_000 });
        },
      });
      const layer = createSpillway({ tools: [limited], store: redisStore(redis), shareBreakers: true });
      const serving = open().serve({ layer, worker });
      await serving.ready;
      return serving;
    };
    const turn = async (turnId: string) => {
      await engine.submit(turnId, plan.from([{ id: 'n', tool: 'limited', input: {} }]));
      return settledOf(await eventsOf(engine, turnId));
    };
    const first = await serve('first');
    await turn('told');
    await serve('second');
    await first.close();
    // However fast the machine is, it asks again and again before the time is over.
    for (let at = 0; (await turn(`again-${at}`)).status !== 'completed'; at++);
    expect(asked.map(({ worker }) => worker)).toStrictEqual(['first', 'second']);
    // However long question and answer take, nobody asks too early; two clocks differ by less than this.
    expect((asked[1]?.atMs ?? 0) - (asked[0]?.atMs ?? 0)).toBeGreaterThan(1_950);
  });

  it('R-17.5 what is kept of a turn is bounded: the oldest events make room, and their places show it', async () => {
    fleet = await startFleet({ maxEvents: 10 });
    const { engine, redis } = fleet;
    const work = tool({ name: 'work', policy: { effects: 'read' }, execute: () => 1 });
    const serving = engine.serve({ layer: createSpillway({ tools: [work], store: redisStore(redis) }) });
    await serving.ready;
    const nodes = Array.from({ length: 6 }, (_, at) => ({ id: `n${at}`, tool: 'work', input: {} }));
    await engine.submit('long', plan.from(nodes));
    const last = (await eventsOf(engine, 'long')).at(-1)?.seq ?? 0;
    expect(last).toBeGreaterThan(30);
    const later = await eventsOf(fleet.open(), 'long');
    expect(later.map(({ seq }) => seq)).toStrictEqual(Array.from({ length: 10 }, (_, at) => last - 9 + at));
    expect(settledOf(later).status).toBe('completed');
  });

  it('R-17.2 a layer whose store is its own process’s is refused, with the reason', async () => {
    fleet = await startFleet();
    const layer = createSpillway({
      tools: [tool({ name: 'x', policy: { effects: 'read' }, execute: () => 1 })],
    });
    const serving = fleet.engine.serve({ layer });
    await expect(serving.ready).rejects.toThrow('layer must have a store that all workers share');
    await serving.close();
  });

  it('R-17.1 ids that cannot be part of keys and traces are refused', async () => {
    fleet = await startFleet();
    const { engine } = fleet;
    for (const id of ['', 'a:b', 'a{b}', 'a b', 'x'.repeat(129)])
      await expect(engine.submit(id, small(1))).rejects.toThrow('turnId must be 1 to 128');
    await expect(engine.submit('sk-ant-api03-abcdefghijklmnopqrstuvwxyz0123456789', small(1))).rejects.toThrow(
      'turnId must not look like a secret',
    );
    expect(() => bullmqFleet(fleet?.redis as never, { lockMs: 10 })).toThrow('lockMs must be an integer from 1000');
  });
});
