import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import {
  restProvider,
  type RestManifest,
  type RestProviderOptions,
  type RestToolEntry,
} from '../../src/providers/rest.ts';
import { json, oneTool, restServer, type OneTool, type RestServer, type Seen } from './rest/kit.ts';
import { failure } from './support.ts';

let server: RestServer;
const open: OneTool[] = [];
beforeAll(async () => {
  server = await restServer();
});
afterAll(() => server[Symbol.asyncDispose]());
afterEach(async () => {
  server.seen.length = 0;
  server.answer(json({ ok: true }));
  await Promise.all(open.splice(0).map(({ provider }) => provider.close()));
});
const make = (tool: Partial<RestToolEntry>, options?: RestProviderOptions, more?: Partial<RestManifest>): OneTool => {
  const made = oneTool(`${server.url}/v1`, tool, options, more);
  open.push(made);
  return made;
};
const sent = async (
  tool: Partial<RestToolEntry>,
  input: unknown,
  options?: RestProviderOptions,
  more?: Partial<RestManifest>,
): Promise<Seen> => {
  await make(tool, options, more).call(input);
  return server.seen[0] as Seen;
};

describe('R-12.2 a REST tool sends', () => {
  it('path and query, percent-encoded', async () => {
    expect(
      await sent({ url: '/u/{id}{?page,tag*,ids}' }, { id: 'a/b?c#d é', page: 2, tag: ['x', 'y&z'], ids: [1, 2] }),
    ).toMatchObject({ method: 'GET', url: '/v1/u/a%2Fb%3Fc%23d%20%C3%A9?page=2&tag=x&tag=y%26z&ids=1,2', body: '' });
  });

  it('no query for what is left out or null', async () => {
    expect((await sent({ url: '/u{?a,b}' }, { a: null })).url).toBe('/v1/u');
  });

  it('a query of the template’s own, and more behind it', async () => {
    expect((await sent({ url: '/s?limit=10&q={q}{&page}' }, { q: 'a b', page: 3 })).url).toBe(
      '/v1/s?limit=10&q=a%20b&page=3',
    );
  });

  it.each(['POST', 'PUT', 'PATCH'] as const)('the rest of the input as JSON: %s', async (method) => {
    const seen = await sent(
      { method, url: '/u/{id}{?dry}', headers: { 'x-who': '${who}' } },
      { id: 7, dry: true, who: 'me', name: 'é', list: [1, { a: null }] },
    );
    expect(seen).toMatchObject({
      method,
      url: '/v1/u/7?dry=true',
      headers: { 'content-type': 'application/json', 'x-who': 'me' },
    });
    expect(JSON.parse(seen.body)).toEqual({ name: 'é', list: [1, { a: null }] });
  });

  it('no body where the method or the manifest has none', async () => {
    expect((await sent({ method: 'DELETE', url: '/u/{id}' }, { id: 1 })).headers['content-type']).toBeUndefined();
    expect((await sent({ method: 'POST', body: false, url: '/u/{id}' }, { id: 1 })).body).toBe('');
  });

  it('a body of a template: values keep their types, texts are filled, what is missing is left out', async () => {
    const body = {
      user: '${user}',
      deep: '${user.name}',
      text: 'for ${user.name}, $${ plain',
      none: '${none}',
      half: 'x${none}',
      list: ['${n}', '${none}', 2],
      nil: '${nil}',
    };
    const seen = await sent({ method: 'POST', body }, { user: { name: 'Ann', tags: ['a'] }, n: 1, nil: null });
    expect(JSON.parse(seen.body)).toEqual({
      user: { name: 'Ann', tags: ['a'] },
      deep: 'Ann',
      text: 'for Ann, ${ plain',
      list: [1, 2],
      nil: null,
    });
  });

  it('a form', async () => {
    const seen = await sent({ method: 'POST', body_type: 'form' }, { a: 'x y&z', b: [1, 2] });
    expect(seen).toMatchObject({
      body: 'a=x+y%26z&b=1&b=2',
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
    });
  });

  it('headers of the manifest and of the tool, which win, with variables in them', async () => {
    const headers = { Authorization: 'Bearer ${env:TOKEN}', 'X-A': 'shared' };
    const seen = await sent(
      { headers: { 'x-a': 'own ${n}', 'x-left-out': '${none}' }, url: '/x{?n,none}' },
      { n: 1 },
      { env: { TOKEN: 't0ken' } },
      { headers },
    );
    expect(seen.headers).toMatchObject({ authorization: 'Bearer t0ken', 'x-a': 'own 1' });
    expect(seen.headers).not.toHaveProperty('x-left-out');
  });
});

describe('R-8.3 a call’s own', () => {
  it('traceparent and baggage go out as headers', async () => {
    const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
    await make({}).call({}, { traceparent, baggage: { user: 'Ann, é;=', 'bad name': 'x' } });
    expect(server.seen[0]?.headers).toMatchObject({ traceparent, baggage: 'user=Ann%2C%20%C3%A9%3B%3D' });
  });

  it('R-9.6 key goes out in the header that the server checks, the same for each attempt', async () => {
    const tool = make({ method: 'POST', idempotency_header: 'Idempotency-Key' });
    await tool.call({}, { callKey: 'order-1', attempt: 1 });
    await tool.call({}, { callKey: 'order-1', attempt: 2 });
    await tool.call({}, { callKey: 'a b\r\nx: y%', attempt: 1 });
    expect(server.seen.map(({ headers }) => headers['idempotency-key'])).toEqual([
      'order-1',
      'order-1',
      'a%20b%0D%0Ax%3A%20y%25',
    ]);
    expect(tool.provider.tools[0]?.policy).toMatchObject({ enforcesKey: true, effects: 'mutating' });
  });

  it('headers that no wire can hold are left out, and split nothing', async () => {
    await make({}).call({}, { traceparent: '00\r\nx-evil: 1', baggage: { a: '1\r\n2' } });
    expect(server.seen[0]?.headers).not.toHaveProperty('traceparent');
    expect(server.seen[0]?.headers).not.toHaveProperty('x-evil');
    expect(server.seen[0]?.headers['baggage']).toBe('a=1%0D%0A2');
  });
});

describe('R-12.2 input that does not fit', () => {
  const input = {
    type: 'object',
    properties: { id: { type: 'string', format: 'uuid' }, n: { type: 'integer' } },
    required: ['id'],
    additionalProperties: false,
  };
  it.each<[string, Partial<RestToolEntry>, unknown, RegExp]>([
    ['is missing', { url: '/u/{id}{?n}', input }, {}, /the value: must have required property 'id'/],
    [
      'has the wrong type',
      { url: '/u/{id}{?n}', input },
      { id: '00000000-0000-4000-8000-000000000000', n: '1' },
      /n: must be integer/,
    ],
    ['has the wrong format', { url: '/u/{id}{?n}', input }, { id: 'x' }, /id: must match format "uuid"/],
    [
      'is not known',
      { url: '/u/{id}{?n}', input },
      { id: '00000000-0000-4000-8000-000000000000', z: 1 },
      /additional properties: z/,
    ],
    ['is no object', { url: '/u/{id}' }, 'x', /must be object/],
    ['climbs', { url: '/u/{id}' }, { id: '../admin' }, /id: must not be \. or \.\./],
    ['climbs backwards', { url: '/u/{id}' }, { id: 'a\\..\\b' }, /id: must not be/],
    ['climbs with its neighbour', { url: '/u/{a}{b}' }, { a: '.', b: '.' }, /must not be \./],
    ['climbs together with text', { url: '/u/.{a}/x' }, { a: '.' }, /a: must not be \./],
    ['is empty in a path', { url: '/u/{id}/x' }, { id: '' }, /id: must not be empty/],
    ['has a control character in a path', { url: '/u/{id}' }, { id: 'a\0' }, /control characters/],
    ['is half a character', { url: '/u/{id}' }, { id: '\ud800' }, /well-formed/],
    ['is a list in a path', { url: '/u/{id}' }, { id: ['a'] }, /id: must be a text, a number/],
    ['is an object in a query', { url: '/u{?q}' }, { q: {} }, /q: must be a text, a number/],
    [
      'splits a header',
      { headers: { 'x-a': '${a}' } },
      { a: '1\r\nx-evil: 1' },
      /a: must hold printable ASCII only, no line breaks, to stand in the header x-a/,
    ],
    [
      'fills a header with more than it holds',
      { headers: { 'x-a': '${a}' } },
      { a: 'x'.repeat(9_000) },
      /must be shorter/,
    ],
    ['cannot be written as JSON', { method: 'POST' }, { n: 1n }, /cannot be written as JSON/],
    ['is inherited', { url: '/u/{constructor}' }, {}, /required property 'constructor'/],
  ])('%s: invalid_parameters, and nothing is sent', async (_what, tool, value, says) => {
    const error = await failure(make(tool).call(value));
    expect(error).toMatchObject({ kind: 'invalid_parameters', executed: false, uncertain: false });
    expect(error.message).toMatch(says);
    expect(server.seen).toHaveLength(0);
  });

  it('only looks like climbing: it is encoded once more, and a text like any other', async () => {
    expect((await sent({ url: '/u/.{a}' }, { a: '%2e' })).url).toBe('/v1/u/.%252e');
  });

  it('is refused by the layer’s own check, too, with the path', () => {
    const schema = make({ url: '/u/{id}{?n}', input }).provider.tools[0]?.input;
    const parsed = schema?.safeParse({ id: '00000000-0000-4000-8000-000000000000', n: 'x' });
    expect(parsed?.error?.issues).toMatchObject([{ path: ['n'], message: 'must be integer' }]);
    expect(schema?.safeParse(undefined).error?.issues[0]?.message).toMatch(/required/);
  });
});

it('R-12.2 effects are read for GET and HEAD, else mutating, unless the manifest says otherwise; policies are those of a plan file', () => {
  const tools = (['GET', 'HEAD', 'POST', 'DELETE'] as const).map((method): RestToolEntry => ({
    id: method,
    method,
    url: '/x',
  }));
  const more: RestToolEntry = {
    id: 'more',
    method: 'POST',
    url: '/q',
    effects: 'read',
    timeout_ms: 5,
    retry_policy: { strategy: 'exponential_backoff', max_attempts: 3 },
    circuit_breaker: { timeout_ms: 7, failure_rate: 'off' },
    classification: { 503: 'permanent' },
    alternatives: ['GET', 'other.tool'],
    safety_critical: true,
    cost: 2,
  };
  const provider = restProvider({ name: 'api', base_url: 'https://api.example.com', tools: [...tools, more] });
  expect(provider.tools.map(({ name, policy }) => [name, policy?.effects])).toEqual([
    ['api.GET', 'read'],
    ['api.HEAD', 'read'],
    ['api.POST', 'mutating'],
    ['api.DELETE', 'mutating'],
    ['api.more', 'read'],
  ]);
  expect(provider.tools[4]?.policy).toEqual({
    effects: 'read',
    timeoutMs: 5,
    retry: { strategy: 'exponential', maxAttempts: 3 },
    breaker: { cooldownMs: 7, failureRate: Infinity },
    classification: { 503: 'permanent' },
    alternatives: ['api.GET', 'other.tool'],
    safetyCritical: true,
    cost: 2,
  });
});
