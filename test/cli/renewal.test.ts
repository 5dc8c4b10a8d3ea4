import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { parseMcp } from '../../src/cli/arguments/mcp.ts';
import { configured } from '../../src/cli/mcp/servers.ts';
import { SignInFile } from '../../src/cli/sign-in/file.ts';
import { KeptSignIn, PersonSignIn } from '../../src/cli/sign-in/provider.ts';
import { renewed } from '../../src/cli/sign-in/renewal.ts';
import { proxied, textOf, type Proxied } from '../mcp-proxy/kit.ts';
import { folder, start, until, type Folder } from './support.ts';
import { TOKEN_CANARY, signInServer, type Fate, type SignInServer } from './sign-in-server.ts';

let place: SignInServer;
let files: Folder;
let signIns: string;
let file: SignInFile;
/** All that a person is told. */
let heard: string;
beforeEach(async () => {
  place = await signInServer();
  files = folder();
  signIns = join(files.path, 'sign-ins');
  vi.stubEnv('SPILLWAY_SIGN_INS', signIns);
  heard = '';
  const { authority, issuer, server } = place;
  const client = { client_id: 'known', redirect_uris: ['http://127.0.0.1/callback'] };
  const [access, refresh] = [`${TOKEN_CANARY}-access`, `${TOKEN_CANARY}-refresh`];
  authority.clients.set(client.client_id, client);
  authority.access.add(access);
  authority.refresh.add(refresh);
  const tokens = { access_token: access, token_type: 'bearer', refresh_token: refresh, issuer };
  file = new SignInFile(new URL(server.url), { SPILLWAY_SIGN_INS: signIns });
  await file.write({ client: { ...client, issuer }, tokens });
});
afterEach(async () => {
  vi.unstubAllEnvs();
  files[Symbol.dispose]();
  await place[Symbol.asyncDispose]();
});

const served = async (): Promise<Proxied> => {
  const parsed = parseMcp(['--server', `box=${place.server.url}`]);
  if (parsed === undefined) throw new TypeError('it asked for help');
  const { servers } = (await configured(parsed)).proxy;
  const note = (line: string): void => void (heard += `${line}\n`);
  // A call that fails is not made again, so that each failure is seen.
  return proxied(servers, { note, defaults: { retry: { maxAttempts: 1 } } });
};
const kept = (): string[] => readdirSync(signIns);
const keptText = (): string => readFileSync(join(signIns, kept().find((name) => name.endsWith('.json')) ?? ''), 'utf8');
const forget = (): ReturnType<typeof start> =>
  start(['mcp', 'login', place.server.url, '--forget'], { SPILLWAY_SIGN_INS: signIns });

const TOKEN = '/token';
const METADATA = '/.well-known/oauth-authorization-server';
const json: Readonly<Record<string, string>> = { 'content-type': 'application/json' };
const busy = JSON.stringify({ error: 'too_many_requests', error_description: 'later' });

/** Whose requests fail, and how: each passes by itself. */
const PASSING: Readonly<Record<string, readonly [path: () => string, Fate]>> = {
  'HTTP 429 in the words of OAuth': [
    () => TOKEN,
    (response) => response.writeHead(429, { ...json, 'retry-after': '1' }).end(busy),
  ],
  'HTTP 429 of a proxy': [() => TOKEN, (response) => response.writeHead(429).end('slow down')],
  'HTTP 503': [() => TOKEN, (response) => response.writeHead(503).end()],
  'HTTP 500 in the words of OAuth': [
    () => TOKEN,
    (response) => response.writeHead(500, json).end(JSON.stringify({ error: 'server_error' })),
  ],
  'a connection that breaks': [() => TOKEN, (response) => response.destroy()],
  'HTTP 503 for its metadata': [() => METADATA, (response) => response.writeHead(503).end()],
  'metadata that break off': [() => METADATA, (response) => response.destroy()],
  'a server that cannot say whom it trusts': [() => place.metadata, (response) => response.writeHead(503).end()],
};

describe('R-16.8 the renewal of a sign-in', () => {
  it.each(Object.entries(PASSING))(
    'R-16.8 %s: nobody is asked to sign in, nothing is left locked, and the next renewal is made',
    async (_reason, [path, fate]) => {
      await using it = await served();
      expect(textOf(await it.call('echo', { text: 'before' }))).toBe('before');
      place.authority.access.clear();
      place.fates.set(path(), fate);
      const failed = await it.call('echo', { text: 'x' });
      expect(failed.isError).toBe(true);
      expect(textOf(failed)).toMatch(/try again/i);
      expect(heard + textOf(failed)).not.toMatch(/sign in|mcp login/);
      expect(kept()).toHaveLength(1);
      place.fates.clear();
      expect(textOf(await it.call('echo', { text: 'after' }))).toBe('after');
      expect(place.authority.asked).toEqual(['refresh']);
      expect(heard).not.toContain(TOKEN_CANARY);
    },
  );

  const HOUR_MS = 3_600_000;
  const dead: Fate = (response) => response.writeHead(500, json).end(JSON.stringify({ error: 'server_error' }));
  const refusing = async (failing: { readonly since: number; readonly times: number }): Promise<void> => {
    const { url: _url, ...rest } = (await file.read()) ?? expect.fail();
    await file.write({ ...rest, failing });
    place.authority.access.clear();
    place.fates.set(TOKEN, dead);
  };

  it('R-16.8 HTTP 500 for an hour: a person is told what to do, and the sign-in is kept', async () => {
    await using it = await served();
    await refusing({ since: Date.now() - HOUR_MS, times: 5 });
    const failed = await it.call('echo', { text: 'x' });
    expect(failed.isError).toBe(true);
    expect(textOf(failed)).not.toMatch(/you can try again/i);
    expect(heard).toMatch(/answered HTTP 500, \d+ times since .*spillway mcp login http/);
    expect((await file.read())?.tokens?.refresh_token).toContain(TOKEN_CANARY);
    place.fates.clear();
    expect(textOf(await it.call('echo', { text: 'after' }))).toBe('after');
    expect((await file.read())?.failing).toBeUndefined();
    expect(heard).not.toContain(TOKEN_CANARY);
  });

  it.each([
    ['often, and not for long', { since: 0, times: 500 }],
    ['long ago, and not often', { since: HOUR_MS, times: 1 }],
  ])('R-16.8 HTTP 500 %s: it may still pass, and is counted', async (_name, { since, times }) => {
    await using it = await served();
    await refusing({ since: Date.now() - since, times });
    expect(textOf(await it.call('echo', { text: 'x' }))).toMatch(/try again/i);
    expect(heard).not.toMatch(/mcp login/);
    expect((await file.read())?.failing?.times).toBeGreaterThan(times);
  });

  it('R-16.8 a sign-in that a person makes anew has not failed yet', async () => {
    await refusing({ since: 0, times: 9 });
    const options = { file, known: undefined, scope: undefined, redirectUrl: 'http://127.0.0.1/callback' };
    await new PersonSignIn(options, 'state').saveTokens({ access_token: 'theirs', token_type: 'bearer' });
    expect((await file.read())?.failing).toBeUndefined();
  });

  it('R-16.8 a sign-in that is forgotten while it is renewed stays forgotten', async () => {
    await using it = await served();
    place.authority.access.clear();
    let answer: (() => void) | undefined;
    place.fates.set(TOKEN, (_response, next) => (answer = next));
    const called = it.call('echo', { text: 'x' });
    await until(() => answer !== undefined);
    const forgetting = forget();
    // It may wait for the renewal, and it may not.
    await Promise.race([forgetting.ended, sleep(2_000)]);
    answer?.();
    expect(await forgetting.ended).toMatchObject({ code: 0 });
    await called;
    expect(kept()).toEqual([]);
  });

  it('R-16.8 one that its authorization server has ended is over for all, who are told what to do', async () => {
    await using one = await served();
    await using other = await served();
    place.authority.access.clear();
    place.fates.set(TOKEN, (response) => response.writeHead(400, json).end(JSON.stringify({ error: 'invalid_grant' })));
    const results = await Promise.all([one.call('echo', { text: 'x' }), other.call('echo', { text: 'x' })]);
    expect(results.map(({ isError }) => isError)).toEqual([true, true]);
    expect(keptText()).not.toContain(TOKEN_CANARY);
    expect(heard).toContain('asks for a person to sign in');
  });

  it('R-16.8 what one has renewed is used by those who waited for it, and not renewed again', async () => {
    const refresh = `${TOKEN_CANARY}-refresh`;
    const gates: ((answer: Response) => void)[] = [];
    const send = (): Promise<Response> => new Promise((resolve) => gates.push(resolve));
    const renew = (): Promise<unknown> =>
      renewed(file, send, `${place.issuer}token`, {
        method: 'POST',
        body: new URLSearchParams({ grant_type: 'refresh_token', refresh_token: refresh }),
      }).then((response) => response.json());
    const both = [renew(), renew()];
    await until(() => gates.length === 1);
    gates[0]?.(Response.json({ access_token: 'a2', token_type: 'bearer', refresh_token: 'r2' }));
    for (const tokens of await Promise.all(both))
      expect(tokens).toMatchObject({ access_token: 'a2', refresh_token: 'r2' });
    expect(gates).toHaveLength(1);
    expect((await file.read())?.tokens).toMatchObject({ access_token: 'a2', issuer: place.issuer });
  });

  it('R-16.8 a sign-in that a person makes anew waits for a renewal, and is not lost to it', async () => {
    const refresh = `${TOKEN_CANARY}-refresh`;
    const gates: ((answer: Response) => void)[] = [];
    const renewing = renewed(file, () => new Promise((resolve) => gates.push(resolve)), `${place.issuer}token`, {
      method: 'POST',
      body: new URLSearchParams({ grant_type: 'refresh_token', refresh_token: refresh }),
    });
    await until(() => gates.length === 1);
    const options = { file, known: undefined, scope: undefined, redirectUrl: 'http://127.0.0.1/callback' };
    const person = new PersonSignIn(options, 'state');
    const made = person.saveTokens({ access_token: 'theirs', token_type: 'bearer', issuer: place.issuer });
    gates[0]?.(Response.json({ access_token: 'a2', token_type: 'bearer' }));
    await Promise.all([renewing, made]);
    expect((await file.read())?.tokens?.access_token).toBe('theirs');
  });

  it('R-16.8 whose tokens they are is noted in turn: a sign-in made meanwhile is not overwritten', async () => {
    const options = { file, known: undefined, scope: undefined, redirectUrl: 'http://127.0.0.1/callback' };
    const provider = new KeptSignIn(options, () => new Error('sign in'));
    const old = { access_token: 'old', token_type: 'bearer' };
    await file.write({ tokens: old });
    let noting: Promise<void> | undefined;
    await file.alone(async () => {
      noting = provider.saveTokens({ ...old, issuer: place.issuer });
      // Long enough for a look at the file that does not wait for its turn.
      await sleep(100);
      await file.write({ tokens: { access_token: 'theirs', token_type: 'bearer' } });
    });
    await noting;
    expect((await file.read())?.tokens?.access_token).toBe('theirs');
  });

  it('R-16.8 a secret of the host that is refused costs no sign-in, and a client of ours does', async () => {
    const options = { file, scope: undefined, redirectUrl: 'http://127.0.0.1/callback' };
    const needed = (): Error => new Error('sign in');
    const known = { clientId: 'known', clientSecret: 'wrong' };
    const before = await file.read();
    await new KeptSignIn({ ...options, known }, needed).invalidateCredentials('all');
    expect(await file.read()).toEqual(before);
    await new KeptSignIn({ ...options, known: undefined }, needed).invalidateCredentials('all');
    expect((await file.read())?.tokens).toBeUndefined();
  });
});
