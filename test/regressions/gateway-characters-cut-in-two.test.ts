// Was: a long conversation record lost a character where the Durable Object cut it into parts. Now: it keeps them all,
// wherever it is cut.
import { DatabaseSync } from 'node:sqlite';
import { expect, it } from 'vitest';
import { ConversationStateDO } from '../../src/gateway/conversation-do.ts';

it.each([0, 1, 2, 3])(
  'R-13.4 a long record keeps its characters wherever its parts are cut (shifted by %i)',
  async (shift) => {
    const database = new DatabaseSync(':memory:');
    const exec = (
      query: string,
      ...values: ReadonlyArray<string | number>
    ): Iterable<Readonly<Record<string, unknown>>> => database.prepare(query).all(...values);
    const state = new ConversationStateDO({
      storage: { sql: { exec }, getAlarm: () => Promise.resolve(null), setAlarm: () => Promise.resolve() },
    });
    const post = (path: string, body: unknown): Promise<Response> =>
      state.fetch(new Request(`https://state${path}`, { method: 'POST', body: JSON.stringify(body) }));
    const record = {
      author: 'a turn',
      toolUseIds: ['toolu_1'],
      before: JSON.stringify(['x'.repeat(shift), '😀'.repeat(600_000)]),
      content: '',
      results: '',
    };
    expect((await post('/store', { key: 'k', record, ttlMs: 60_000 })).status).toBe(200);
    expect(await (await post('/retrieve', { keys: ['k'] })).json()).toStrictEqual({
      records: { k: record },
      damaged: [],
    });
    database.close();
  },
);
