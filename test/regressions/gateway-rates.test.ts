// Was: a key's rate was got round by sending the key twice, beside a made-up one, or to another spelling of the path,
// and 10,000 made-up keys pushed a bucket out. Now: none of it.
import { request } from 'node:http';
import { afterEach, describe, expect, it } from 'vitest';
import { TurnGate } from '../../src/gateway/wire/limits.ts';
import { conversationPath } from '../../src/gateway/wire/path.ts';
import { asked, kit, mine, type Kit } from '../gateway/kit.ts';
import { use } from '../gateway/upstream.ts';
import { handClock } from '../support.ts';

let gate: Kit | undefined;
afterEach(async () => {
  await gate?.close();
});

/** Headers and path go over the wire as they are written. */
const ask = (
  url: string,
  path: string,
  headers: Record<string, string | string[]>,
  body: unknown = asked,
): Promise<number> =>
  new Promise((resolve, reject) => {
    const { hostname, port } = new URL(url);
    const sent = request({ hostname, port, path, method: 'POST', headers }, (response) => {
      response.resume();
      resolve(response.statusCode ?? 0);
    });
    sent.on('error', reject).end(JSON.stringify(body));
  });

const limited = async (requests: number): Promise<Kit> => {
  gate = await kit({ limits: { rate: { requests, windowMs: 3_600_000 } } });
  gate.upstream.answer(() => ({}));
  return gate;
};

describe('R-13.6 a key’s rate', () => {
  const k = { 'x-api-key': 'k' };
  const round: ReadonlyArray<readonly [string, string, Record<string, string | string[]>]> = [
    ['sent twice', '/v1/messages', { 'x-api-key': ['k', 'k'] }],
    ['sent after a made-up one', '/v1/messages', { 'x-api-key': ['made-up', 'k'] }],
    ['as a bearer token', '/v1/messages', { authorization: 'Bearer k' }],
    ['as a bearer token beside a made-up key', '/v1/messages', { 'x-api-key': 'made-up', authorization: 'bearer k' }],
    ['beside a made-up bearer token', '/v1/messages', { 'x-api-key': 'k', authorization: 'Bearer made-up' }],
    ['to a path with a slash more', '//v1/messages', k],
    ['to a path with one between', '/v1//messages', k],
    ['to a path with one behind', '/v1/messages/', k],
    ['to a path in capitals', '/V1/MESSAGES', k],
    ['to a path with escapes', '/v1/%6dessages', k],
    ['to a path with a query', '/v1/messages?beta=true', k],
    ['to the counting of tokens', '/v1/messages/count_tokens/', k],
  ];
  it.each(round)('R-13.6 holds for it %s', async (_, path, headers) => {
    const { url, upstream } = await limited(1);
    expect(await ask(url, '/v1/messages', k)).toBe(200);
    expect(await ask(url, path, headers)).toBe(429);
    expect(upstream.asked).toHaveLength(1);
    expect(await ask(url, '/v1/messages', { 'x-api-key': 'another' })).toBe(200);
  });

  it.each([
    '//v1/messages',
    '/v1/messages/',
    '/V1/Messages',
    '/v1%2Fmessages',
    '/v1/./messages',
    '/v1/%2e%2e/v1/messages',
  ])('R-13.3 what goes to %s is checked', async (path) => {
    const { url, upstream } = await limited(10);
    expect(await ask(url, path, k, { ...asked, messages: [] })).toBe(400);
    expect(upstream.asked).toHaveLength(0);
  });

  it('R-13.1 other paths are no conversations', () => {
    const others = [
      '/',
      '/v1',
      '/v1/messages/batches',
      '/v1/messages/count_tokens/x',
      '/v1/messages2',
      '/v2/messages',
      '/v1/models',
      '/v1/%zz',
      '/v1/messages%3Fx',
    ];
    expect(others.map(conversationPath)).toStrictEqual(others.map(() => undefined));
  });

  it('R-13.6 is not forgotten for any number of made-up keys', () => {
    const clock = handClock();
    const limits = new TurnGate(100, { requests: 2, windowMs: 1_000 }, clock.runtime);
    const admitted = (key: string): boolean => {
      try {
        limits.admit([key]);
        return true;
      } catch {
        return false;
      }
    };
    expect([admitted('real'), admitted('real'), admitted('real')]).toStrictEqual([true, true, false]);
    for (let n = 0; n < 20_000; n++) admitted(`made-up ${n}`);
    expect(admitted('real')).toBe(false);
    // Those that came first take what room there is; all others together may ask as often as one key.
    expect([admitted('newcomer'), admitted('made-up 19999')]).toStrictEqual([false, false]);
    clock.pass(1_000);
    expect([admitted('real'), admitted('newcomer'), admitted('newcomer'), admitted('newcomer')]).toStrictEqual([
      true,
      true,
      true,
      false,
    ]);
  });

  it('R-13.4 a key sent twice has the conversations of the key', async () => {
    gate = await kit();
    gate.upstream.answer((_, place) =>
      place === 0
        ? { blocks: [use('toolu_1', 'mine'), use('toolu_2', 'math_add', { a: 1, b: 2 })], stop: 'tool_use' }
        : {},
    );
    const own = { ...asked, tools: [mine] };
    const back = {
      ...own,
      messages: [
        ...asked.messages,
        { role: 'assistant', content: [use('toolu_1', 'mine')] },
        { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'toolu_1', content: 'x' }] },
      ],
    };
    expect(await ask(gate.url, '/v1/messages', k, own)).toBe(200);
    expect(await ask(gate.url, '/v1/messages', { 'x-api-key': 'other' }, back)).toBe(500);
    expect(await ask(gate.url, '/v1/messages', { 'x-api-key': ['k', 'k'] }, back)).toBe(200);
  });
});
