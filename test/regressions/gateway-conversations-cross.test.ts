// Was: what one user's tools had given went upstream for another who shared the key and said the same. Now: never;
// rather nothing is put back.
import { createClient } from 'redis';
import {
  memoryConversationState,
  type AnthropicGatewayOptions,
  type ConversationRecord,
  type ConversationState,
} from 'spillway/gateway/anthropic';
import { redisConversationState } from 'spillway/gateway/conversation-redis';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { tool, type AnyTool } from 'spillway';
import { handClock } from '../support.ts';
import { startRedis, type RedisServer } from '../stores/redis/server.ts';
import { asked, kit, mine, type Kit } from '../gateway/kit.ts';
import { said, use } from '../gateway/upstream.ts';

/** Gives each call a number of its own: what a person must not see of another's. */
const ticketTool = (): AnyTool => {
  let number = 0;
  return tool({ name: 'ticket', execute: () => `ticket ${++number}` });
};

const gates: Kit[] = [];
afterEach(async () => {
  await Promise.all(gates.splice(0).map((gate) => gate.close()));
});

/**
 * The upstream calls the tool once for each request that has no result yet, always under one id, and says always the
 * same.
 */
const desk = async (options: Partial<AnthropicGatewayOptions> = {}): Promise<Kit> => {
  const gate = await kit({ tools: [ticketTool()], ...options });
  gates.push(gate);
  gate.upstream.answer(({ text }) =>
    text.includes('ticket ') ? { blocks: [said('Done.')] } : { blocks: [use('toolu_1', 'ticket')], stop: 'tool_use' },
  );
  return gate;
};

type Body = Readonly<Record<string, unknown>>;
const followUp = {
  messages: [...asked.messages, { role: 'assistant', content: 'Done.' }, { role: 'user', content: 'and?' }],
};
const lastSent = (gate: Kit): string => JSON.stringify(gate.upstream.asked.at(-1)?.body.messages);
/** What of the hidden goes upstream when a conversation goes on. */
const restored = async (gate: Kit, who: Body): Promise<string | undefined> => {
  const first = gate.upstream.asked.length;
  const response = await gate.post({ ...asked, ...followUp, ...who });
  expect(response.status).toBe(200);
  return /ticket \d/.exec(gate.upstream.asked[first]?.text ?? '')?.[0];
};

describe('R-13.6 two people behind one key who say the same', () => {
  const picture = (data: string): { readonly messages: readonly object[] } => ({
    messages: [
      {
        role: 'user',
        content: [{ type: 'image', source: { type: 'base64', media_type: 'image/png', data } }, said('go')],
      },
    ],
  });
  const people: ReadonlyArray<readonly [string, Body, Body]> = [
    ['system', { system: 'You serve ALICE.' }, { system: 'You serve BOB.' }],
    [
      'system in blocks',
      { system: [said('You serve'), said('ALICE.')] },
      { system: [said('You serve'), said('BOB.')] },
    ],
    ['metadata.user_id', { metadata: { user_id: 'alice' } }, { metadata: { user_id: 'bob' } }],
    ['a metadata.user_id that one has', { metadata: { user_id: 'alice' } }, {}],
    ['model', { model: 'm1' }, { model: 'm2' }],
  ];
  it.each(people)('R-13.6 get back what is theirs, told apart by %s', async (_, alice, bob) => {
    const gate = await desk();
    for (const who of [alice, bob]) expect((await gate.post({ ...asked, ...who })).status).toBe(200);
    expect([await restored(gate, alice), await restored(gate, bob)]).toStrictEqual(['ticket 1', 'ticket 2']);
    expect(gate.upstream.faults).toStrictEqual([]);
  });

  it('R-13.6 get back what is theirs, told apart by what they show', async () => {
    const gate = await desk();
    const shows = ['aaaa', 'bbbb'].map(picture);
    for (const body of shows) await gate.post({ ...asked, ...body });
    const back: Array<string | undefined> = [];
    for (const { messages } of shows)
      back.push(await restored(gate, { messages: [...messages, ...followUp.messages.slice(1)] }));
    expect(back).toStrictEqual(['ticket 1', 'ticket 2']);
  });

  it('R-13.6 get nothing put back where nothing tells them apart, however many come', async () => {
    const gate = await desk();
    for (let person = 0; person < 3; person++) {
      await gate.post(asked);
      expect(await restored(gate, {})).toBe(person === 0 ? 'ticket 1' : undefined);
    }
  });

  it.each([[[true, false]], [[false, true]]])(
    'R-13.6 get nothing put back where one of them had an answer without a tool (%j)',
    async (asks) => {
      const gate = await desk();
      let asking = 0;
      gate.upstream.answer(({ text }) => {
        const plain = text.includes('ticket ') || asks[asking] === false;
        return plain ? { blocks: [said('Done.')] } : { blocks: [use('toolu_1', 'ticket')], stop: 'tool_use' };
      });
      for (; asking < asks.length; asking++) expect((await gate.post(asked)).status).toBe(200);
      expect(await restored(gate, {})).toBeUndefined();
    },
  );

  it('R-13.6 do not get each other’s calls of their own, although an upstream gives both one id', async () => {
    const gate = await desk();
    gate.upstream.answer((_, place) =>
      place < 2
        ? { blocks: [use('toolu_m', 'mine'), use('toolu_1', 'ticket')], stop: 'tool_use' }
        : { blocks: [said('Done.')] },
    );
    const own = { ...asked, tools: [mine] };
    const back = {
      ...own,
      messages: [
        ...asked.messages,
        { role: 'assistant', content: [use('toolu_m', 'mine')] },
        { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'toolu_m', content: 'x' }] },
      ],
    };
    const [alice, bob, eve] = [{ system: 'ALICE' }, { system: 'BOB' }, { system: 'EVE' }];
    await gate.post({ ...own, ...alice });
    await gate.post({ ...own, ...bob });
    expect((await gate.post({ ...back, ...alice })).status).toBe(200);
    expect(lastSent(gate)).toContain('ticket 1');
    expect((await gate.post({ ...back, ...bob })).status).toBe(200);
    expect(lastSent(gate)).toContain('ticket 2');
    // Who has learned the id alone gets nothing by it.
    expect((await gate.post({ ...back, ...eve })).status).toBe(500);
  });

  it('R-13.6 a failed request that another sends, too, goes on from nobody’s steps once both have failed', async () => {
    const gate = await desk({ upstreamRetry: { maxAttempts: 1 } });
    const busy = { status: 529, body: '{"type":"error","error":{"type":"overloaded_error","message":"busy"}}' };
    let open = 0;
    // Both are past their first step before either fails.
    const both = Promise.withResolvers<void>();
    gate.upstream.answer(({ text }) => {
      if (!text.includes('ticket ')) return { blocks: [use('toolu_1', 'ticket')], stop: 'tool_use' };
      if (++open === 2) both.resolve();
      return open <= 2 ? { ...busy, delayMs: 200 } : { blocks: [said('Done.')] };
    });
    const failed = [gate.post(asked), gate.post(asked)];
    await both.promise;
    expect((await Promise.all(failed)).map(({ status }) => status)).toStrictEqual([529, 529]);
    expect((await gate.post(asked)).status).toBe(200);
    expect(lastSent(gate)).toContain('ticket 3');
  });

  it('R-13.6 a user’s own system prompt may be laid out and marked otherwise, and has an attribution that changes', async () => {
    const gate = await desk();
    await gate.post({ ...asked, system: [said('x-anthropic-billing-header: cch=1'), said('You serve ALICE.')] });
    expect(
      await restored(gate, {
        system: [
          said('x-anthropic-billing-header: cch=2'),
          { ...said('You serve ALICE.\n'), cache_control: { type: 'ephemeral' } },
        ],
      }),
    ).toBe('ticket 1');
  });

  it('R-13.6 a count finds no fault with a call whose user it cannot name', async () => {
    const gate = await desk();
    gate.upstream.answer(() => ({ body: '{"input_tokens":1}' }));
    const messages = [
      ...asked.messages,
      { role: 'assistant', content: [use('toolu_m', 'mine')] },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'toolu_m', content: 'x' }] },
    ];
    const counted = await fetch(`${gate.url}/v1/messages/count_tokens`, {
      method: 'POST',
      body: JSON.stringify({ model: 'm', messages }),
    });
    expect(counted.status).toBe(200);
  });
});

const record = (author: string, id: string): ConversationRecord => ({
  author,
  toolUseIds: [],
  before: '[]',
  content: `[{"type":"text","text":"${id}\\n"}]`,
  results: '',
});
const empty = (author: string): ConversationRecord => ({
  author,
  toolUseIds: [],
  before: '',
  content: '',
  results: '',
});

describe('R-13.6 a key that two contents were stored under', () => {
  let server: RedisServer;
  let client: ReturnType<typeof createClient>;
  beforeAll(async () => {
    server = await startRedis();
    client = createClient({ socket: { path: server.path, tls: false } });
    await client.connect();
  });
  afterAll(async () => {
    client.destroy();
    await server.stop();
  });
  let place = 0;
  const states: ReadonlyArray<readonly [string, () => ConversationState]> = [
    ['memory', () => memoryConversationState()],
    ['Redis', () => redisConversationState(client, { prefix: `cross${place++}:` })],
  ];

  describe.each(states)('R-13.6 in %s', (_, make) => {
    const found = async (state: ConversationState): Promise<ConversationRecord | undefined> =>
      (await state.retrieve(['k'])).get('k');

    it('R-13.6 gives neither, and nothing that comes after', async () => {
      const state = make();
      await state.store('k', record('alice', 'a'));
      await state.store('k', record('bob', 'b'));
      expect(await found(state)).toBeUndefined();
      await state.store('k', record('alice', 'a'));
      await state.store('k', empty('alice'));
      await state.store('k', record('carol', 'c'));
      expect(await found(state)).toBeUndefined();
    });

    it('R-13.6 gives what one author wrote last, and what two wrote alike', async () => {
      const state = make();
      await state.store('k', record('alice', 'a'));
      await state.store('k', record('alice', 'more'));
      expect(await found(state)).toStrictEqual(record('alice', 'more'));
      await state.store('k', record('bob', 'more'));
      expect(await found(state)).toStrictEqual(record('bob', 'more'));
      await state.store('k', empty('bob'));
      await state.store('k', record('carol', 'c'));
      expect(await found(state)).toStrictEqual(record('carol', 'c'));
    });

    it('R-13.6 gives nothing, of however many that store at once', async () => {
      const state = make();
      for (let round = 0; round < 20; round++) {
        const key = `k${round}`;
        await Promise.all(
          Array.from({ length: 20 }, async (_unused, n) => state.store(key, record(`author ${n}`, String(n)))),
        );
        expect((await state.retrieve([key])).size).toBe(0);
      }
    });
  });

  it('R-13.6 in memory, a record that made room is not taken for one that never was', async () => {
    const clock = handClock();
    const state = memoryConversationState({ maxRecords: 1, ttlMs: 1_000, runtime: clock.runtime });
    await state.store('k', record('alice', 'a'));
    await state.store('other', record('alice', 'x'));
    await state.store('k', record('bob', 'b'));
    expect((await state.retrieve(['k'])).size).toBe(0);
    clock.pass(2_000);
    await state.store('k', record('bob', 'b'));
    expect((await state.retrieve(['k'])).size).toBe(1);
  });
});
