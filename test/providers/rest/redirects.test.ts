import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { RestToolEntry } from '../../../src/providers/rest.ts';
import { json, oneTool, redirect, restServer, type RestServer } from './kit.ts';
import { failure } from '../support.ts';

let here: RestServer;
let there: RestServer;
beforeAll(async () => {
  here = await restServer();
  there = await restServer();
});
afterAll(async () => {
  await here[Symbol.asyncDispose]();
  await there[Symbol.asyncDispose]();
});
afterEach(() => {
  here.seen.length = 0;
  there.seen.length = 0;
  there.answer(json({ ok: true }));
});

const SECRET = {
  authorization: 'Bearer ${env:KEY}',
  cookie: 'sid=1',
  'x-api-key': 'plain',
  accept: 'application/json',
  'accept-language': '${lang}',
};
const call = async (tool: Partial<RestToolEntry> = {}, allow: readonly string[] = ['127.0.0.1']): Promise<unknown> => {
  await using one = oneTool(here.url, { headers: SECRET, ...tool }, { allow, env: { KEY: 'secret' } });
  return await one.call({ lang: 'fi' }, { callKey: 'k1', traceparent: '00-1-2-01', baggage: { a: 'b' } });
};
const onceTo = (status: number, location: string): void =>
  here.answer((request, response) =>
    request.url === '/x' ? redirect(status, location)(request, response) : json({ ok: true })(request, response),
  );

describe('R-12.2 a redirect of a read', () => {
  it.each([301, 302, 303, 307, 308])('%i is followed within its origin, with all its headers', async (status) => {
    onceTo(status, '/elsewhere?a=1');
    expect(await call()).toEqual({ ok: true });
    expect(here.seen.map(({ method, url }) => [method, url])).toEqual([
      ['GET', '/x'],
      ['GET', '/elsewhere?a=1'],
    ]);
    expect(here.seen[1]?.headers).toMatchObject({ authorization: 'Bearer secret', cookie: 'sid=1' });
  });

  it('to another origin takes no credentials along, and nothing of the call', async () => {
    here.answer(redirect(302, `${there.url}/there`));
    expect(await call({ idempotency_header: 'Idempotency-Key' })).toEqual({ ok: true });
    const { host, connection, ...headers } = there.seen[0]?.headers ?? {};
    expect({ host, connection }).toBeDefined();
    expect(headers).toEqual({
      accept: 'application/json',
      'accept-encoding': 'gzip, deflate, br',
      'user-agent': 'spillway',
    });
  });

  it('and back does not bring them back', async () => {
    here.answer((request, response) =>
      (request.url === '/x' ? redirect(302, `${there.url}/y`) : json({ ok: true }))(request, response),
    );
    there.answer(redirect(302, `${here.url}/back`));
    expect(await call()).toEqual({ ok: true });
    expect(here.seen[1]?.headers).not.toHaveProperty('authorization');
  });

  it.each<[string, string]>([
    ['a private address', 'http://10.0.0.1/'],
    ['cloud metadata', 'http://169.254.169.254/latest/meta-data/'],
    ['loopback in another spelling', 'http://2130706433:1/'],
    ['loopback in IPv6', 'http://[::1]/'],
    ['a file', 'file:///etc/passwd'],
    ['a URL with a user', 'http://user:pass@example.com/'],
    ['the same, relative', '//user@example.com/'],
  ])('to %s is refused, and not executed', async (_what, location) => {
    here.answer(redirect(302, location));
    const error = await failure(call({}, [`127.0.0.1:${here.port}`]));
    expect(error).toMatchObject({ kind: 'not_permitted', executed: false });
    expect(error.message).not.toContain('pass@');
    expect(here.seen).toHaveLength(1);
  });

  it('to a port of this machine that is not allowed is refused', async () => {
    here.answer(redirect(307, there.url));
    expect(await failure(call({}, [`127.0.0.1:${here.port}`]))).toMatchObject({ kind: 'not_permitted' });
    expect(there.seen).toHaveLength(0);
  });

  it('to a name that resolves to a private address is refused', async () => {
    here.answer(redirect(302, 'http://inside.example.com/'));
    await using one = oneTool(
      here.url,
      {},
      { allow: [`127.0.0.1:${here.port}`], lookup: () => Promise.resolve(['192.168.0.7']) },
    );
    expect(await failure(one.call())).toMatchObject({ kind: 'not_permitted', executed: false });
  });

  it('from https to http is refused', async () => {
    await using secure = await restServer(redirect(302, there.url), true);
    await using one = oneTool(secure.url, {}, { ca: secure.ca });
    expect(await failure(one.call())).toMatchObject({ kind: 'not_permitted', executed: false });
    expect(there.seen).toHaveLength(0);
  });

  it('five times is followed, six times is not', async () => {
    let left = 5;
    here.answer((request, response) => (left-- > 0 ? redirect(302, '/x') : json({ ok: true }))(request, response));
    expect(await call()).toEqual({ ok: true });
    here.answer(redirect(302, '/x'));
    expect(await failure(call())).toMatchObject({
      kind: 'execution_error',
      message: 'The server redirects more than 5 times',
      classification: 'permanent',
    });
    expect(here.seen).toHaveLength(12);
  });

  it('that does not say where to is an error', async () => {
    here.answer((_request, response) => void response.writeHead(302).end());
    expect(await failure(call())).toMatchObject({
      kind: 'execution_error',
      status: 302,
      classification: 'permanent',
      uncertain: false,
    });
  });
});

describe('R-12.2 a redirect of a change', () => {
  const post: Partial<RestToolEntry> = { method: 'POST', body: { a: 1 } };

  it.each([307, 308])('%i is repeated within its origin, body and all', async (status) => {
    onceTo(status, '/y');
    expect(await call(post)).toEqual({ ok: true });
    expect(here.seen).toMatchObject([
      { method: 'POST', url: '/x', body: '{"a":1}' },
      { method: 'POST', url: '/y', body: '{"a":1}' },
    ]);
  });

  it('303 leads to what is read next, without a body', async () => {
    onceTo(303, '/y');
    expect(await call(post)).toEqual({ ok: true });
    expect(here.seen[1]).toMatchObject({ method: 'GET', url: '/y', body: '' });
    expect(here.seen[1]?.headers).not.toHaveProperty('content-type');
    expect(here.seen[1]?.headers).not.toHaveProperty('content-length');
  });

  it.each([
    [301, ''],
    [302, ''],
    [307, 'there'],
    [308, 'there'],
  ])('%i %s is not followed: it may have been carried out', async (status, where) => {
    here.answer(redirect(status, where === '' ? '/y' : `${there.url}/y`));
    expect(await failure(call(post))).toMatchObject({
      kind: 'execution_error',
      status,
      classification: 'permanent',
      uncertain: true,
    });
    expect([...here.seen, ...there.seen]).toHaveLength(1);
  });

  it('what is refused or fails behind it leaves it in doubt', async () => {
    here.answer(redirect(303, 'http://169.254.169.254/'));
    expect(await failure(call(post))).toMatchObject({ kind: 'not_permitted', executed: true, uncertain: true });
  });
});
