import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ADMIN_PATH, adminHandler } from 'spillway/gateway/admin';
import { PATH, TOKEN, layerOf, page, withToken, type Page } from './kit.ts';

const JSON_TYPE = { 'content-type': 'application/json' };
const FORCE = JSON.stringify({ action: 'force_open', all: true });
const good = { method: 'POST', headers: { ...withToken, ...JSON_TYPE }, body: FORCE };
const withHeaders = (headers: Record<string, string>): RequestInit => ({
  ...good,
  headers: { ...good.headers, ...headers },
});

/** What any accepted order would change. */
const filled = async (): Promise<Page & { readonly state: () => Promise<string> }> => {
  const made = page();
  await made.spillway.execute({ toolName: 'search', session: 'ada', idempotencyKey: 'k' });
  const state = async (): Promise<string> => {
    const { breakers, store } = await made.spillway.inspect();
    return JSON.stringify([breakers, store]);
  };
  return { ...made, state };
};

const changedToken = `${TOKEN.slice(0, -1)}X`;

describe('R-11.3 refused, logged, nothing changed', () => {
  it.each<[why: string, reason: string, status: number, init: RequestInit, path?: string]>([
    ['no token', 'token', 401, { ...good, headers: JSON_TYPE }],
    ['a wrong token', 'token', 401, withHeaders({ authorization: `Bearer ${changedToken}` })],
    ['the token and more', 'token', 401, withHeaders({ authorization: `Bearer ${TOKEN}x` })],
    ['the beginning of the token', 'token', 401, withHeaders({ authorization: `Bearer ${TOKEN.slice(0, 16)}` })],
    ['another scheme', 'token', 401, withHeaders({ authorization: `Basic ${TOKEN}` })],
    ['the bare token', 'token', 401, withHeaders({ authorization: TOKEN })],
    ['two tokens', 'token', 401, withHeaders({ authorization: `Bearer ${TOKEN}, Bearer ${TOKEN}` })],
    ['a token in the address', 'token', 401, { ...good, headers: JSON_TYPE }, `${PATH}?token=${TOKEN}`],
    ['another Host', 'host', 403, withHeaders({ host: 'rebound.example' })],
    ['another Host with our name in it', 'host', 403, withHeaders({ host: 'localhost.rebound.example' })],
    ['a Host with a user', 'host', 403, withHeaders({ host: 'localhost@rebound.example' })],
    ['a Host of two', 'host', 403, withHeaders({ host: 'localhost, rebound.example' })],
    ['a loopback address with more behind', 'host', 403, withHeaders({ host: '127.0.0.1.rebound.example' })],
    ['an empty Host', 'host', 403, withHeaders({ host: '' })],
    ['another Origin', 'origin', 403, withHeaders({ origin: 'https://evil.example' })],
    ['the Origin null', 'origin', 403, withHeaders({ origin: 'null' })],
    ['the Origin of another port', 'origin', 403, withHeaders({ origin: 'http://localhost:3000' })],
    ['another method', 'method', 405, { method: 'DELETE', headers: withToken }],
    [
      'a preflight',
      'method',
      405,
      {
        method: 'OPTIONS',
        headers: { ...withToken, origin: 'http://localhost', 'access-control-request-method': 'POST' },
      },
    ],
    ['another path', 'path', 404, good, '/debug'],
    ['a path with a slash behind', 'path', 404, good, `${PATH}/`],
    ['a path in capitals', 'path', 404, good, PATH.toUpperCase()],
    ['a path in another spelling', 'path', 404, good, PATH.replace('d', '%64')],
    ['a path with a slash doubled', 'path', 404, good, `/${PATH}`],
    ['another type of content', 'content_type', 415, withHeaders({ 'content-type': 'text/plain' })],
    ['a form', 'content_type', 415, withHeaders({ 'content-type': 'application/x-www-form-urlencoded' })],
    ['a packed body', 'content_type', 415, withHeaders({ 'content-encoding': 'gzip' })],
    ['no JSON', 'malformed', 400, { ...good, body: `${FORCE}}` }],
    [
      'no text',
      'malformed',
      400,
      {
        ...good,
        body: new Uint8Array([...new TextEncoder().encode('{"action":"flush","session":"'), 0xff, 0x22, 0x7d]),
      },
    ],
    ['no body', 'malformed', 400, { ...good, body: '' }],
    ['a list', 'malformed', 400, { ...good, body: `[${FORCE}]` }],
    ['an unknown action', 'unknown_action', 400, { ...good, body: '{"action":"force_closed","all":true}' }],
    ['no action', 'unknown_action', 400, { ...good, body: '{"all":true}' }],
    ['an action of an object', 'unknown_action', 400, { ...good, body: '{"action":{"toString":"reset"},"all":true}' }],
    ['no target', 'malformed', 400, { ...good, body: '{"action":"force_open"}' }],
    ['two targets', 'malformed', 400, { ...good, body: '{"action":"force_open","tool":"search","all":true}' }],
    ['all: false', 'malformed', 400, { ...good, body: '{"action":"flush","all":false}' }],
    ['a session of a breaker', 'malformed', 400, { ...good, body: '{"action":"reset","session":"ada"}' }],
    ['a key too many', 'malformed', 400, { ...good, body: '{"action":"flush","all":true,"dry":true}' }],
    ['a prototype', 'malformed', 400, { ...good, body: '{"action":"flush","all":true,"__proto__":{"tool":"search"}}' }],
    ['a tool that is no text', 'malformed', 400, { ...good, body: '{"action":"reset","tool":7}' }],
    ['an unknown tool', 'unknown_tool', 404, { ...good, body: '{"action":"force_open","tool":"ghost"}' }],
    ['a tool of every object', 'unknown_tool', 404, { ...good, body: '{"action":"flush","tool":"constructor"}' }],
    ['a tool without a breaker', 'no_breaker', 409, { ...good, body: '{"action":"force_open","tool":"bare"}' }],
    [
      'a long body',
      'body_too_large',
      413,
      { ...good, body: JSON.stringify({ action: 'flush', tool: 'x'.repeat(70_000) }) },
    ],
    ['a long body of spaces', 'body_too_large', 413, { ...good, body: `${FORCE}${' '.repeat(65_536)}` }],
  ])('R-11.3 %s: %s', async (_why, reason, status, init, path) => {
    const { ask, refusals, state } = await filled();
    const before = await state();
    const asked = await ask(init, path);
    expect([asked.status, (asked.body['error'] as { reason?: string }).reason]).toEqual([status, reason]);
    expect([...asked.headers.keys()].filter((name) => name.startsWith('access-control'))).toEqual([]);
    expect(refusals).toEqual([
      { reason, status, method: init.method ?? 'GET', message: expect.stringMatching(/^[a-z].{10,}/) as string },
    ]);
    for (const secret of [TOKEN, changedToken, 'rebound', 'evil', 'ghost', 'ada'])
      expect(JSON.stringify([refusals, asked.text])).not.toContain(secret);
    expect(await state()).toBe(before);
  });

  it('R-11.3 a body that is long is given up, not read to its end', async () => {
    const { admin, refusals, state } = await filled();
    const before = await state();
    let pulled = 0;
    let canceled = false;
    const body = new ReadableStream<Uint8Array>({
      pull: (controller) => {
        pulled += 16_384;
        controller.enqueue(new Uint8Array(16_384).fill(32));
      },
      cancel: () => {
        canceled = true;
      },
    });
    const response = await admin.fetch(
      new Request(`http://localhost${PATH}`, { ...good, body, duplex: 'half' } as RequestInit),
    );
    expect([response.status, canceled, pulled <= 65_536 + 3 * 16_384]).toEqual([413, true, true]);
    expect(refusals).toMatchObject([{ reason: 'body_too_large' }]);
    expect(await state()).toBe(before);
  });

  it('R-11.3 a body that says it is long is not read at all', async () => {
    const { admin } = await filled();
    let pulled = 0;
    const body = new ReadableStream({ pull: () => void pulled++ }, { highWaterMark: 0 });
    const headers = { ...good.headers, 'content-length': '65537' };
    expect(
      (
        await admin.fetch(
          new Request(`http://localhost${PATH}`, { ...good, headers, body, duplex: 'half' } as RequestInit),
        )
      ).status,
    ).toBe(413);
    expect(pulled).toBe(0);
  });

  it('R-11.3 an address of another host is refused, whatever the Host says', async () => {
    const { admin, refusals } = await filled();
    expect(
      (await admin.fetch(new Request(`http://rebound.example${PATH}`, withHeaders({ host: 'localhost' })))).status,
    ).toBe(403);
    expect(refusals).toMatchObject([{ reason: 'host' }]);
  });

  it('R-11.3 a body that breaks off changes nothing', async () => {
    const { admin, refusals } = await filled();
    const body = new ReadableStream({ pull: (controller) => controller.error(new Error('gone')) });
    expect(
      (await admin.fetch(new Request(`http://localhost${PATH}`, { ...good, body, duplex: 'half' } as RequestInit)))
        .status,
    ).toBe(400);
    expect(refusals).toMatchObject([{ reason: 'malformed' }]);
  });

  it('R-11.3 a store that does not answer is told as such, and as what may be done in part', async () => {
    const { order, refusals, store } = page();
    store.byTool = () => {
      throw new Error('secret host is down');
    };
    const { status, text } = await order({ action: 'flush', tool: 'search' });
    expect([status, text.includes('secret')]).toEqual([503, false]);
    expect(refusals).toMatchObject([{ reason: 'store_unavailable', status: 503 }]);
  });

  it('R-11.3 a log that throws changes no answer', async () => {
    const admin = adminHandler(layerOf(), {
      token: TOKEN,
      onRefused: () => {
        throw new Error('disk full');
      },
    });
    expect((await admin.fetch(new Request(`http://localhost${ADMIN_PATH}`))).status).toBe(401);
  });

  it('R-11.3 the order of checks: who has no token learns nothing about paths, tools or methods', async () => {
    const { ask } = await filled();
    for (const path of [PATH, '/', '/metrics', '/debug'])
      for (const method of ['GET', 'POST', 'PUT'])
        expect((await ask({ method, headers: JSON_TYPE }, path)).status).toBe(401);
  });
});

describe('R-11.3 let in', () => {
  it.each<[why: string, headers: Record<string, string>]>([
    ['each loopback name', { host: '127.0.0.1:9464' }],
    ['the IPv6 one', { host: '[::1]:9464' }],
    ['the name in capitals', { host: 'LOCALHOST' }],
    ['a page of our own', { host: 'localhost:9464', origin: 'http://localhost:9464' }],
    ['a host that was allowed', { host: 'ops.internal:9464' }],
    ['a page that was allowed', { origin: 'https://ops.example' }],
    ['the scheme in small letters', { authorization: `bearer ${TOKEN}` }],
    ['a type with its charset', { 'content-type': 'application/json; charset=UTF-8' }],
  ])('R-11.3 %s', async (_why, headers) => {
    const { ask, refusals } = page({ allowedHosts: ['OPS.internal'], allowedOrigins: ['https://ops.example'] });
    expect((await ask(withHeaders(headers))).status).toBe(200);
    expect(refusals).toEqual([]);
  });

  it('R-11.3 only orders change anything, whatever JSON comes', async () => {
    const names = fc.constantFrom('action', 'tool', 'session', 'all', 'force_open', 'flush', '__proto__');
    const value = fc.oneof(
      names,
      fc.constantFrom('search', 'none', true, false, null, 0),
      fc.jsonValue({ maxDepth: 2 }),
    );
    const target = fc.oneof(
      fc.record({ tool: fc.constantFrom('search', 'none') }),
      fc.record({ all: fc.boolean() }),
      fc.record({ session: value }),
      fc.dictionary(names, value, { maxKeys: 2 }),
    );
    const nearly = fc
      .tuple(fc.constantFrom('force_open', 'disable', 'reset', 'flush', 'open'), target)
      .map(([action, of]) => ({ action, ...of }));
    const seen = new Set<number>();
    await fc.assert(
      fc.asyncProperty(fc.oneof(nearly, fc.dictionary(names, value), fc.jsonValue()), async (body) => {
        const { order, refusals, spillway } = page();
        const { status } = await order(body);
        seen.add(status);
        expect(status === 200).toBe(refusals.length === 0);
        expect([200, 400, 404]).toContain(status);
        if (status !== 200) expect(spillway.breakers.list()).toEqual([]);
      }),
      { numRuns: 500 },
    );
    expect(seen).toContain(200);
    expect(seen).toContain(404);
  });
});
