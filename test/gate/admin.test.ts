import { adminHandler, type AdminRefusal } from 'spillway/gateway/admin';
import { describe, expect, it } from 'vitest';
import { scene, typed } from './kit.ts';

const TOKEN = 'a-token-of-our-own-0123456789';
const PATH = '/debug/tool-reliability/approvals';

const page = () => {
  const at = scene({ redact: { secrets: ['hunter2!'] } });
  const refusals: AdminRefusal[] = [];
  const admin = adminHandler(at.spillway, {
    token: TOKEN,
    approvals: at.approvals,
    onRefused: (one) => refusals.push(one),
  });
  const ask = async (
    init: { readonly method?: string; readonly body?: unknown; readonly headers?: Record<string, string> } = {},
    host = 'localhost',
  ): Promise<{ status: number; body: Record<string, unknown> }> => {
    const { method = 'GET', body, headers = { authorization: `Bearer ${TOKEN}` } } = init;
    const request = new Request(`http://${host}${PATH}`, {
      method,
      headers: { host, ...(body === undefined ? {} : { 'content-type': 'application/json' }), ...headers },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const response = await admin.fetch(request);
    return { status: response.status, body: (await response.json()) as Record<string, unknown> };
  };
  return { ...at, ask, refusals };
};

const pendingOf = ({ body }: { readonly body: Record<string, unknown> }): ReadonlyArray<Record<string, unknown>> =>
  body['pending'] as ReadonlyArray<Record<string, unknown>>;

describe('approvals over the admin endpoint', () => {
  it('R-22.5 are listed without secrets, and answered by their id', async () => {
    const { ask, pay, pass, runs, trace } = page();
    expect((await ask()).body).toEqual({ pending: [] });
    const call = pay({ input: { amount: 7, note: 'hunter2!' } });
    await pass(0);
    const [asked] = pendingOf(await ask());
    expect(asked).toMatchObject({ toolName: 'pay', input: { amount: 7, note: '[redacted]' } });
    const answer = { id: asked?.['id'], approved: true, by: 'grace' };
    expect(await ask({ method: 'POST', body: answer })).toMatchObject({
      status: 200,
      body: { counts: true, state: 'approved' },
    });
    await pass(1_000);
    expect([call.result?.status, runs.length]).toEqual(['success', 1]);
    expect(typed(trace, 'approval').at(-1)).toMatchObject({ step: 'approved', by: 'grace' });
    expect(await ask({ method: 'POST', body: answer })).toMatchObject({
      status: 409,
      body: { error: { reason: 'answered' } },
    });
    const unknown = { ...answer, id: 'nonsense' };
    expect(await ask({ method: 'POST', body: unknown })).toMatchObject({ status: 404 });
  });

  it('R-22.5 never without the token, from a strange page, or to a host that is not ours', async () => {
    const { ask, pay, pass, runs, refusals, approvals } = page();
    pay();
    await pass(0);
    const [{ id } = { id: '' }] = await approvals.pending();
    const body = { id, approved: true };
    const withToken = { authorization: `Bearer ${TOKEN}` };
    expect((await ask({ method: 'POST', body, headers: {} })).status).toBe(401);
    expect((await ask({ headers: {} })).status).toBe(401);
    expect((await ask({ method: 'POST', body, headers: { authorization: `Bearer ${TOKEN}x` } })).status).toBe(401);
    expect(
      (await ask({ method: 'POST', body, headers: { ...withToken, origin: 'https://evil.example' } })).status,
    ).toBe(403);
    expect((await ask({ method: 'POST', body }, 'evil.example')).status).toBe(403);
    expect((await ask({ method: 'POST', body, headers: { ...withToken, 'content-type': 'text/plain' } })).status).toBe(
      415,
    );
    expect((await ask({ method: 'DELETE' })).status).toBe(405);
    await pass(5_000);
    expect(runs).toEqual([]);
    expect(await approvals.pending()).toHaveLength(1);
    expect(refusals.map(({ reason }) => reason)).toEqual([
      'token',
      'token',
      'token',
      'origin',
      'host',
      'content_type',
      'method',
    ]);
  });

  it.each([
    ['a word', { approved: 'true' }],
    ['nothing', {}],
    ['more than that', { approved: true, amount: 9 }],
    ['a long reason', { approved: false, reason: 'x'.repeat(1_001) }],
  ])('R-22.5 %s is no answer', async (_what, answer) => {
    const { ask, pay, pass, approvals } = page();
    pay();
    await pass(0);
    const [{ id } = { id: '' }] = await approvals.pending();
    expect(await ask({ method: 'POST', body: { id, ...answer } })).toMatchObject({ status: 400 });
    expect(await approvals.pending()).toHaveLength(1);
  });

  it('R-22.5 are not there where none were given', async () => {
    const { spillway } = scene();
    const { fetch } = adminHandler(spillway, { token: TOKEN });
    const request = new Request(`http://localhost${PATH}`, {
      headers: { host: 'localhost', authorization: `Bearer ${TOKEN}` },
    });
    expect((await fetch(request)).status).toBe(404);
  });
});
