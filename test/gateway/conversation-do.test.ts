import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { SIDE_INSTALL_TIMEOUT_MS } from '../side-install.ts';
import { asked, mine } from './kit.ts';
import { said, testUpstream, use, type TestUpstream } from './upstream.ts';
import { workerIn, type RunningWorker } from './workerd.ts';

const record = (id: string): object => ({
  author: 'a turn',
  toolUseIds: [id],
  before: '[]',
  content: '[{"type":"text","text":"ä"}]',
  results: '[]',
});

/** The deployed shape: the bundle in real workerd, with its storage on a disk. */
describe('R-13.4 ConversationStateDO in workerd', () => {
  const folder = mkdtempSync(join(tmpdir(), 'spillway-do-'));
  let begin: (upstream: string) => Promise<RunningWorker>;
  let upstream: TestUpstream;
  let running: RunningWorker;
  let url = '';

  const start = async (): Promise<void> => {
    running = await begin(upstream.url);
    ({ url } = running);
  };
  const post = (path: string, body: unknown): Promise<Response> =>
    fetch(`${url}${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: typeof body === 'string' ? body : JSON.stringify(body),
    });
  const json = async (path: string, body: unknown): Promise<unknown> => (await post(path, body)).json();

  beforeAll(async () => {
    begin = await workerIn(folder);
    upstream = await testUpstream();
    await start();
  }, SIDE_INSTALL_TIMEOUT_MS);
  afterAll(async () => {
    await running.dispose();
    await upstream.close();
    rmSync(folder, { recursive: true, force: true });
  });

  it('R-13.4 keeps a record, and gives it back', async () => {
    expect(await json('/state/a/store', { key: 'k', record: record('toolu_1'), ttlMs: 60_000 })).toStrictEqual({
      stored: true,
    });
    expect(await json('/state/a/retrieve', { keys: ['k', 'other'] })).toStrictEqual({
      records: { k: record('toolu_1') },
      damaged: [],
    });
    expect(await json('/state/b/retrieve', { keys: ['k'] })).toStrictEqual({ records: {}, damaged: [] });
  });

  it('R-13.4 keeps a record of several megabytes', async () => {
    const long = { ...record('toolu_1'), before: JSON.stringify(['ä€😀'.repeat(600_000)]) };
    expect((await post('/state/long/store', { key: 'k', record: long, ttlMs: 60_000 })).status).toBe(200);
    expect(await json('/state/long/retrieve', { keys: ['k'] })).toStrictEqual({ records: { k: long }, damaged: [] });
  });

  it('R-13.6 a key that two authors stored different contents under gives neither, and nothing that comes after', async () => {
    const store = (author: string, id: string): Promise<unknown> =>
      json('/state/crossed/store', { key: 'k', record: { ...record(id), author }, ttlMs: 60_000 });
    const kept = (): Promise<unknown> => json('/state/crossed/retrieve', { keys: ['k'] });
    await store('alice', 'toolu_1');
    await store('alice', 'toolu_2');
    expect(await kept()).toStrictEqual({ records: { k: { ...record('toolu_2'), author: 'alice' } }, damaged: [] });
    await store('bob', 'toolu_3');
    expect(await kept()).toStrictEqual({ records: {}, damaged: [] });
    await store('alice', 'toolu_2');
    expect(await kept()).toStrictEqual({ records: {}, damaged: [] });
  });

  it('R-13.6 of many that store at once under one key, none is given', async () => {
    const one = (n: number): object => ({
      key: 'k',
      record: { ...record(`toolu_${n}`), author: `author ${n}` },
      ttlMs: 60_000,
    });
    const stored = await Promise.all(
      Array.from({ length: 50 }, async (_, n) => (await post('/state/raced/store', one(n))).status),
    );
    expect(new Set(stored)).toStrictEqual(new Set([200]));
    expect(await json('/state/raced/retrieve', { keys: ['k'] })).toStrictEqual({ records: {}, damaged: [] });
  });

  it('R-13.4 forgets by alarm', async () => {
    await post('/state/expiring/store', { key: 'later', record: record('toolu_2'), ttlMs: 60_000 });
    await post('/state/expiring/store', { key: 'soon', record: record('toolu_1'), ttlMs: 300 });
    expect(await json('/state/expiring/rows', '')).toStrictEqual({ rows: 2 });
    await expect.poll(() => json('/state/expiring/rows', ''), { interval: 100 }).toStrictEqual({ rows: 1 });
    expect(await json('/state/expiring/retrieve', { keys: ['soon', 'later'] })).toStrictEqual({
      records: { later: record('toolu_2') },
      damaged: [],
    });
  });

  it('R-13.4 does not give what has expired, alarm or not', async () => {
    await post('/state/short/store', { key: 'k', record: record('toolu_1'), ttlMs: 0.5 });
    await new Promise((resolve) => {
      setTimeout(resolve, 20);
    });
    expect(await json('/state/short/retrieve', { keys: ['k'] })).toStrictEqual({ records: {}, damaged: [] });
  });

  it('R-13.4 says which row is damaged, and a new one takes its place', async () => {
    await post('/state/spoiled/store', { key: 'k', record: record('toolu_1'), ttlMs: 60_000 });
    await post('/state/spoiled/spoil', '');
    expect(await json('/state/spoiled/retrieve', { keys: ['k'] })).toStrictEqual({ records: {}, damaged: ['k'] });
    await post('/state/spoiled/store', { key: 'k', record: record('toolu_1'), ttlMs: 60_000 });
    expect(await json('/state/spoiled/retrieve', { keys: ['k'] })).toStrictEqual({
      records: { k: record('toolu_1') },
      damaged: [],
    });
  });

  it.each([
    ['/state/a/store', '{'],
    ['/state/a/store', { key: 'k' }],
    ['/state/a/store', { key: '', record: record('a'), ttlMs: 1 }],
    ['/state/a/store', { key: 'k', record: record('a'), ttlMs: -1 }],
    ['/state/a/store', { key: 'k', record: { ...record('a'), before: '{}' }, ttlMs: 1 }],
    ['/state/a/store', { key: 'k', record: { ...record('a'), more: 1 }, ttlMs: 1 }],
    ['/state/a/retrieve', { keys: [] }],
    ['/state/a/retrieve', { keys: [7] }],
  ])('R-13.4 refuses a body that does not fit: %s %j', async (path, body) => {
    const response = await post(path, body);
    expect(response.status).toBe(400);
    expect(await response.json()).toMatchObject({ type: 'error', error: { type: 'invalid_request_error' } });
  });

  it('R-13.4 knows two paths and one method', async () => {
    expect((await post('/state/a/other', {})).status).toBe(404);
    expect((await fetch(`${url}/state/a/store`)).status).toBe(405);
  });

  it('R-13.4 holds 1,000 conversations at once', async () => {
    const ids = Array.from({ length: 1_000 }, (_, n) => n);
    // A machine that is busy resets some of a thousand connections that are opened in one go; the gateway's client asks
    // again, too.
    const insistent = async <T>(ask: () => Promise<T>, tries = 5): Promise<T> =>
      ask().catch((error: unknown) => (tries > 1 ? insistent(ask, tries - 1) : Promise.reject(error)));
    const stored = await Promise.all(
      ids.map(
        async (n) =>
          (
            await insistent(() =>
              post(`/state/many${n % 16}/store`, { key: `k${n}`, record: record(`toolu_${n}`), ttlMs: 60_000 }),
            )
          ).status,
      ),
    );
    expect(new Set(stored)).toStrictEqual(new Set([200]));
    const read = await Promise.all(
      ids.map((n) => insistent(() => json(`/state/many${n % 16}/retrieve`, { keys: [`k${n}`] }))),
    );
    expect(read).toStrictEqual(ids.map((n) => ({ records: { [`k${n}`]: record(`toolu_${n}`) }, damaged: [] })));
  });

  it.each([false, true])(
    'R-13.4 the whole gateway runs there, and goes on after a restart between store and retrieve (stream: %s)',
    async (stream) => {
      const sum = use('toolu_g', 'math_add', { a: 1, b: 2 });
      const id = `toolu_m${String(stream)}`;
      const own = use(id, 'mine');
      upstream.answer((_, place) =>
        place === 0
          ? { blocks: [said('Adding'), { ...sum, id: 'toolu_f' }], stop: 'tool_use' }
          : place === 1
            ? { blocks: [own, sum], stop: 'tool_use' }
            : { blocks: [said('Done')] },
      );
      const first = await post('/v1/messages', { ...asked, tools: [mine], stream });
      expect(first.status).toBe(200);
      expect(await first.text()).toContain(id);
      await running.dispose();
      await start();
      const back = [
        ...asked.messages,
        { role: 'assistant', content: [said('Adding'), own] },
        { role: 'user', content: [{ type: 'tool_result', tool_use_id: id, content: 'mine' }] },
      ];
      const second = await post('/v1/messages', { ...asked, tools: [mine], stream, messages: back });
      expect(await second.text()).toContain(stream ? '"text":"ne"' : 'Done');
      expect(upstream.faults).toStrictEqual([]);
      expect(upstream.asked[2]?.body.messages).toHaveLength(5);
      expect(upstream.asked[2]?.body.messages.at(-1)?.content).toMatchObject([
        { tool_use_id: id, content: 'mine' },
        { tool_use_id: 'toolu_g', content: 'sum 3' },
      ]);
    },
  );

  it('R-13.4 an id that no object knows: 500 api_error', async () => {
    upstream.answer(() => ({}));
    const back = [
      ...asked.messages,
      { role: 'assistant', content: [use('toolu_x', 'mine')] },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'toolu_x', content: 'mine' }] },
    ];
    const response = await post('/v1/messages', { ...asked, tools: [mine], messages: back });
    expect(response.status).toBe(500);
    expect(await response.json()).toMatchObject({ error: { type: 'api_error' } });
  });
});
