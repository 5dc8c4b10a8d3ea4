import { describe, expect, it } from 'vitest';
import { adminHandler, type AdminAnswer } from 'spillway/gateway/admin';
import { layerOf, page, withToken } from './admin/kit.ts';

const answerOf = ({ body }: { readonly body: Record<string, unknown> }): AdminAnswer => body as unknown as AdminAnswer;
const states = ({ changed = [] }: AdminAnswer): string[] =>
  changed.map(({ toolName, scope, state }) => `${toolName}/${scope} ${state.type}`);

describe('R-11.3 GET', () => {
  it('R-11.3 answers with breakers, store, retries left and modes, and with nothing of any call', async () => {
    const { spillway, get } = page({}, { mode: 'on' });
    await spillway.execute({
      toolName: 'search',
      input: { q: 'secret argument' },
      idempotencyKey: 'secret-key',
      session: 'secret-session',
      tenant: 'acme',
    });
    const { status, headers, body, text } = await get();
    expect(status).toBe(200);
    expect(headers.get('content-type')).toBe('application/json');
    expect(headers.get('cache-control')).toBe('no-store');
    expect([...headers.keys()].filter((name) => name.startsWith('access-control'))).toEqual([]);
    expect(body).toMatchObject({
      mode: 'on',
      breakersObserve: false,
      breakers: [{ toolName: 'search', scope: 'acme', state: { type: 'closed', measured: 1, failures: 0 } }],
      store: { kind: 'memory', records: 1 },
      retriesLeft: expect.any(Number) as number,
    });
    expect(body['tools']).toEqual([
      { name: 'search', mode: 'on', breaker: 'search' },
      { name: 'read', mode: 'on', breaker: 'files' },
      { name: 'write', mode: 'on', breaker: 'files' },
      { name: 'bare', mode: 'on' },
    ]);
    expect(text).not.toContain('secret');
  });

  it('R-11.3 HEAD is GET without the body', async () => {
    const { ask } = page();
    expect(await ask({ method: 'HEAD', headers: withToken })).toMatchObject({ status: 200, text: '' });
  });

  it('R-11.3 metrics are there where a source is given, with the same token', async () => {
    const { ask } = page({ metrics: { contentType: 'text/plain; version=0.0.4', text: async () => 'up 1\n' } });
    const scraped = await ask({ headers: withToken }, '/metrics');
    expect(scraped).toMatchObject({ status: 200, text: 'up 1\n' });
    expect(scraped.headers.get('content-type')).toBe('text/plain; version=0.0.4');
    expect(await ask({}, '/metrics')).toMatchObject({ status: 401 });
    expect(await ask({ method: 'POST', headers: withToken }, '/metrics')).toMatchObject({ status: 405 });
    expect(await page().ask({ headers: withToken }, '/metrics')).toMatchObject({ status: 404 });
  });

  it('R-11.3 metrics that fail are answered and told, without what they threw', async () => {
    const { ask, refusals } = page({
      metrics: { contentType: 'text/plain', text: () => Promise.reject(new Error('secret')) },
    });
    const { status, text } = await ask({ headers: withToken }, '/metrics');
    expect([status, text.includes('secret')]).toEqual([500, false]);
    expect(refusals).toMatchObject([{ reason: 'failed', status: 500 }]);
  });
});

describe('R-11.3 POST', () => {
  it('R-11.3 force_open refuses a tool in every scope, those to come included, until reset', async () => {
    const { spillway, order } = page();
    for (const tenant of ['acme', 'initech']) await spillway.execute({ toolName: 'search', tenant });
    const opened = await order({ action: 'force_open', tool: 'search' });
    expect(states(answerOf(opened))).toEqual(['search/acme forced_open', 'search/initech forced_open']);
    const statusOf = async (tenant?: string): Promise<string> =>
      (await spillway.execute({ toolName: 'search', ...(tenant === undefined ? {} : { tenant }) })).status;
    for (const tenant of ['acme', 'initech', 'new', undefined]) expect(await statusOf(tenant)).toBe('circuit_open');
    expect((await spillway.execute({ toolName: 'read' })).status).toBe('success');
    const reset = await order({ action: 'reset', tool: 'search' });
    expect(answerOf(reset).changed).toHaveLength(4);
    for (const tenant of ['acme', 'new', 'newer', undefined]) expect(await statusOf(tenant)).toBe('success');
  });

  it('R-11.3 a tool that was never called is forced open all the same, and the answer shows it', async () => {
    const { spillway, order } = page();
    expect(states(answerOf(await order({ action: 'force_open', tool: 'search' })))).toEqual(['search/ forced_open']);
    expect((await spillway.execute({ toolName: 'search', tenant: 'first' })).status).toBe('circuit_open');
  });

  it('R-11.3 tools that share a breaker are named in the answer by it, and it can be asked for by its own name', async () => {
    const { spillway, order } = page();
    expect(states(answerOf(await order({ action: 'force_open', tool: 'read' })))).toEqual(['files/ forced_open']);
    expect((await spillway.execute({ toolName: 'write' })).status).toBe('circuit_open');
    expect(states(answerOf(await order({ action: 'reset', tool: 'files' })))).toEqual(['files/ closed']);
    expect((await spillway.execute({ toolName: 'write' })).status).toBe('success');
  });

  it('R-11.3 disable admits everything; all means every breaker there is and will be, until the next order', async () => {
    const { spillway, order } = page();
    await spillway.execute({ toolName: 'search' });
    expect(states(answerOf(await order({ action: 'force_open', all: true })))).toEqual([
      'search/ forced_open',
      'files/ forced_open',
    ]);
    expect((await spillway.execute({ toolName: 'read', tenant: 'new' })).status).toBe('circuit_open');
    await order({ action: 'disable', tool: 'search' });
    expect(spillway.breakers.get('search', 'later').state.type).toBe('disabled');
    expect((await spillway.execute({ toolName: 'search', tenant: 'new' })).status).toBe('success');
    await order({ action: 'reset', tool: 'read' });
    expect((await spillway.execute({ toolName: 'write', tenant: 'newest' })).status).toBe('success');
    await order({ action: 'reset', all: true });
    for (const { breaker } of spillway.breakers.list()) expect(breaker.state.type).toBe('closed');
    expect(spillway.breakers.get('search', 'last').state.type).toBe('closed');
  });

  it('R-11.3 flush by tool, by session and of all counts what it forgot, and those keys run again', async () => {
    const { spillway, order } = page();
    const call = async (toolName: string, session: string, key: string): Promise<boolean> =>
      (await spillway.execute({ toolName, session, idempotencyKey: key })).fromCache ?? false;
    const fill = async (): Promise<void> => {
      for (const [toolName, session, key] of [
        ['search', 'ada', '1'],
        ['search', 'bob', '2'],
        ['read', 'ada', '3'],
        ['write', 'eve', '4'],
      ] as const)
        await call(toolName, session, key);
    };
    await fill();
    expect(answerOf(await order({ action: 'flush', tool: 'search' }))).toEqual({ action: 'flush', flushed: 2 });
    expect([await call('search', 'ada', '1'), await call('read', 'ada', '3')]).toEqual([false, true]);
    expect(answerOf(await order({ action: 'flush', session: 'ada' })).flushed).toBe(2);
    expect(answerOf(await order({ action: 'flush', session: 'nobody' })).flushed).toBe(0);
    await fill();
    expect(answerOf(await order({ action: 'flush', all: true })).flushed).toBe(4);
    expect(await call('write', 'eve', '4')).toBe(false);
  });

  it('R-11.3 says so where a switch keeps an order from acting', async () => {
    const { order } = page({}, { mode: 'shadow' });
    expect(answerOf(await order({ action: 'force_open', tool: 'search' })).warnings).toEqual([
      'breakers refuse nothing in the modes off and shadow, in which search run',
    ]);
    process.env['TOOL_RELIABILITY_OPEN_MODE'] = 'off';
    try {
      expect(answerOf(await page().order({ action: 'force_open', all: true })).warnings).toEqual([
        'breakers refuse nothing while TOOL_RELIABILITY_OPEN_MODE is off',
      ]);
    } finally {
      delete process.env['TOOL_RELIABILITY_OPEN_MODE'];
    }
  });
});

describe('R-11.3 options', () => {
  it('R-11.3 without a token one of 256 bits is made, another each time', () => {
    const tokens = new Set(Array.from({ length: 50 }, () => adminHandler(layerOf()).token));
    expect(tokens.size).toBe(50);
    for (const token of tokens) expect(token).toMatch(/^[\da-f]{64}$/);
  });

  it.each([
    [{ token: '' }, /^token must be 16 to 512 visible ASCII characters, not one of 0 characters/],
    [{ token: 'hunter2' }, /^token must be 16/],
    [{ token: 'sixteen letters, with spaces' }, /^token must be 16/],
    [{ allowedHosts: ['*'] }, /^allowedHosts must hold host names without a port/],
    [{ allowedHosts: ['ops.example:8080'] }, /^allowedHosts must hold host names without a port/],
    [{ allowedOrigins: ['https://ops.example/'] }, /^allowedOrigins must hold origins/],
    [{ allowedOrigins: ['*'] }, /^allowedOrigins must hold origins/],
    [{ maxBodyBytes: 0 }, /^maxBodyBytes must be an integer from 256/],
    [{ metrics: { contentType: 'text/plain' } as never }, /^metrics must have a contentType and a function text/],
    [{ tokens: 'x' } as never, /^adminHandler has no option "tokens"/],
  ])('R-11.3 refuses the options %j, naming rule and remedy but no token', (options, message) => {
    expect(() => adminHandler(layerOf(), options)).toThrow(message);
    expect(() => adminHandler(layerOf(), options)).toThrow(RangeError);
    expect(() => adminHandler(layerOf(), options)).not.toThrow(/hunter2|letters, with spaces/);
  });
});
