import { Redis } from 'ioredis';
import { createClient } from 'redis';
import { redisConversationState, type ConversationRedisLike } from 'spillway/gateway/conversation-redis';
import type { ConversationRecord } from 'spillway/gateway/anthropic';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startRedis, type RedisServer } from '../stores/redis/server.ts';
import { asked, kit, mine } from './kit.ts';
import { said, use } from './upstream.ts';

const record = (id: string): ConversationRecord => ({
  author: 'a turn',
  toolUseIds: [id],
  before: '[]',
  content: '[{"type":"text","text":"ä😀"}]',
  results: '',
});

describe.each(['redis', 'ioredis'])('R-13.4 state in a real Redis, with %s', (library) => {
  let server: RedisServer;
  let client: ConversationRedisLike;
  let close: () => Promise<unknown>;
  beforeAll(async () => {
    server = await startRedis();
    if (library === 'redis') {
      const own = createClient({ socket: { path: server.path, tls: false } });
      own.on('error', () => undefined);
      await own.connect();
      client = own;
      close = () => Promise.resolve(own.destroy());
    } else {
      const own = new Redis(server.path, { maxRetriesPerRequest: 0 });
      own.on('error', () => undefined);
      client = own;
      close = () => Promise.resolve(own.disconnect());
    }
  });
  afterAll(async () => {
    await close();
    await server.stop();
  });

  it('R-13.4 keeps records, each with its lifetime, under its prefix', async () => {
    const state = redisConversationState(client, { prefix: 'p:', ttlMs: 60_000 });
    await state.store('a', record('a'));
    await state.store('a', record('b'));
    expect(await state.retrieve(['a', 'x'])).toStrictEqual(new Map([['a', record('b')]]));
    expect(await server.cli('KEYS', '*')).toBe('p:a');
    expect(Number(await server.cli('PTTL', 'p:a'))).toBeGreaterThan(50_000);
  });

  it('R-13.4 what was spoiled is as if it were not there', async () => {
    const state = redisConversationState(client, { prefix: 'q:' });
    await server.cli('SET', 'q:a', '{"toolUseIds":7}');
    expect(await state.retrieve(['a'])).toStrictEqual(new Map());
  });

  it('R-13.4 two gateways share a conversation', async () => {
    const state = redisConversationState(client);
    const [one, other] = [await kit({ state }), await kit({ state })];
    one.upstream.answer(() => ({
      blocks: [use('toolu_1', 'mine'), use('toolu_2', 'math_add', { a: 1, b: 2 })],
      stop: 'tool_use',
    }));
    other.upstream.answer(() => ({ blocks: [said('Done')] }));
    await one.post({ ...asked, tools: [mine] });
    const messages = [
      ...asked.messages,
      { role: 'assistant', content: [use('toolu_1', 'mine')] },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'toolu_1', content: 'mine' }] },
    ];
    expect((await other.post({ ...asked, tools: [mine], messages })).status).toBe(200);
    expect(other.upstream.faults).toStrictEqual([]);
    expect(other.upstream.asked[0]?.body.messages.at(-1)?.content).toHaveLength(2);
    await one.close();
    await other.close();
  });

  it('R-13.4 Redis lost: an error that says what to do, without what was stored', async () => {
    const state = redisConversationState(client);
    await server.kill('SIGKILL');
    const error: unknown = await Promise.resolve(state.retrieve(['k'])).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ kind: 'store_unavailable' });
    await server.start();
  });
});

it('R-2.9 a client that is none is refused', () => {
  expect(() => redisConversationState({} as ConversationRedisLike)).toThrow(
    /client must be a client of the package redis/,
  );
});
