import { readFileSync, readdirSync, statSync } from 'node:fs';
import { get } from 'node:http';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { parseLogin } from '../../src/cli/sign-in/arguments.ts';
import { parseMcp } from '../../src/cli/arguments/mcp.ts';
import { configured } from '../../src/cli/mcp/servers.ts';
import { proxied, textOf } from '../mcp-proxy/kit.ts';
import { behind, calls, conversation, opening, rawServer } from '../mcp-proxy/wire-kit.ts';
import { httpServer } from '../providers/mcp/http-server.ts';
import { folder, start, until, type Ended, type Folder } from './support.ts';
import { SECRET_CANARY, TOKEN_CANARY, signInServer, type SignInServer } from './sign-in-server.ts';

let place: SignInServer;
let files: Folder;
let env: { readonly SPILLWAY_SIGN_INS: string };
/** All that the command has said. */
let heard: string;
beforeEach(async () => {
  place = await signInServer();
  files = folder();
  env = { SPILLWAY_SIGN_INS: join(files.path, 'sign-ins') };
  vi.stubEnv('SPILLWAY_SIGN_INS', env.SPILLWAY_SIGN_INS);
  heard = '';
});
afterEach(async () => {
  vi.unstubAllEnvs();
  files[Symbol.dispose]();
  await place[Symbol.asyncDispose]();
});

/** The page that a person is shown. */
const PAGE = /open this page to sign in:\n(\S+)\n/;

/** Runs `spillway mcp login`, with a person who opens the page. */
const login = async (
  args: readonly string[],
  open: (page: string) => Promise<unknown> = (page) => fetch(page),
  more: Readonly<Record<string, string>> = {},
): Promise<Ended> => {
  const running = start(['mcp', 'login', ...args], { ...env, ...more });
  await Promise.race([running.ended, until(() => PAGE.test(running.progress()))]);
  const [, page] = PAGE.exec(running.progress()) ?? [];
  if (page !== undefined) await open(page);
  const ended = await running.ended;
  heard += ended.stdout + ended.stderr;
  return ended;
};

const kept = (): string[] => {
  try {
    return readdirSync(env.SPILLWAY_SIGN_INS);
  } catch {
    return [];
  }
};
const keptText = (): string => readFileSync(join(env.SPILLWAY_SIGN_INS, kept()[0] ?? ''), 'utf8');

const config = (oauth: string): string =>
  files.write('guards.yaml', `servers:\n  box: { url: "${place.server.url}", oauth: ${oauth} }\n`);

const served = async (args: readonly string[]): Promise<Awaited<ReturnType<typeof proxied>>> => {
  const parsed = parseMcp(args);
  if (parsed === undefined) throw new TypeError('it asked for help');
  return await proxied((await configured(parsed)).proxy.servers, { note: (line) => (heard += line) });
};

describe('R-16.8 spillway mcp login', () => {
  it('R-16.8 has a person sign in, keeps it for nobody else, and calls are made with it', async () => {
    const { url } = place.server;
    const { origin } = new URL(url);
    expect(await login([url])).toMatchObject({ code: 0, stdout: `signed in at ${origin}\n` });
    expect(kept()).toHaveLength(1);
    expect(statSync(env.SPILLWAY_SIGN_INS).mode & 0o777).toBe(0o700);
    expect(statSync(join(env.SPILLWAY_SIGN_INS, kept()[0] ?? '')).mode & 0o777).toBe(0o600);
    await using it = await served(['--server', `box=${url}`]);
    expect(textOf(await it.call('echo', { text: 'x' }))).toBe('x');
    expect(place.authority.asked).toEqual(['register', 'authorize', 'code']);
    expect(heard).not.toContain(TOKEN_CANARY);
  });

  it('R-16.8 what has run out is renewed, for all who use it, and each refresh token is sent once', async () => {
    const { url } = place.server;
    await login([url]);
    await using one = await served(['--server', `box=${url}`]);
    await using other = await served(['--server', `box=${url}`]);
    place.authority.access.clear();
    const texts = ['a', 'b', 'c', 'd'];
    const echoed = texts.flatMap((text) => [one.call('echo', { text }), other.call('echo', { text })]);
    expect((await Promise.all(echoed)).map(textOf)).toEqual(texts.flatMap((text) => [text, text]));
    expect(place.authority.asked).toContain('refresh');
    expect(place.authority.asked.filter((what) => what === 'authorize')).toHaveLength(1);
    expect(statSync(join(env.SPILLWAY_SIGN_INS, kept()[0] ?? '')).mode & 0o777).toBe(0o600);
  });

  it('R-16.8 one that is over is told with what to do, and made again as the same client', async () => {
    const { url } = place.server;
    const path = config('{ sign_in: person }');
    await login(['box', '--config', path]);
    await using it = await served(['--config', path]);
    place.authority.access.clear();
    place.authority.refresh.clear();
    const result = await it.call('echo', { text: 'x' });
    expect(result.isError).toBe(true);
    expect(textOf(result)).not.toContain(TOKEN_CANARY);
    await expect(served(['--config', path])).rejects.toThrow('cannot be reached');
    expect(heard).toContain(
      `${new URL(url).origin} asks for a person to sign in: spillway mcp login box --config FILE`,
    );
    expect(await login(['box', '--config', path])).toMatchObject({ code: 0 });
    expect(textOf(await it.call('echo', { text: 'again' }))).toBe('again');
    expect(place.authority.asked.filter((what) => what === 'register')).toHaveLength(1);
    expect(heard).not.toContain(TOKEN_CANARY);
  });

  it('R-16.8 nobody is sent anywhere, or registered, by a program without a person', async () => {
    await expect(served(['--config', config('{ sign_in: person }')])).rejects.toThrow('cannot be reached');
    expect(heard).toContain('asks for a person to sign in: spillway mcp login box --config FILE');
    expect(place.authority.asked).toEqual([]);
  });

  it('R-16.8 nothing of a token is in what the proxy says, answers or traces', async () => {
    const { url } = place.server;
    await login([url]);
    place.authority.access.clear();
    place.authority.refresh.clear();
    const trace = join(files.path, 'trace.ndjson');
    const [command, ...args] = behind(['x'], '--trace', trace, '--server', `box=${url}`);
    const server = rawServer([command, ...args.slice(0, -2)], { env, heard: (text) => (heard += text) });
    const { answers } = await conversation(server, [...opening(), ['tools/list'], calls('echo', { text: 'x' })]);
    await server.end();
    const told = heard + JSON.stringify(answers) + readFileSync(trace, 'utf8');
    expect(told).toContain('spillway mcp login');
    expect(told).not.toContain(TOKEN_CANARY);
  });

  it('R-16.8 a client that the issuer knows is not registered, and its secret is kept in no file', async () => {
    const client = {
      client_id: 'known',
      client_secret: SECRET_CANARY,
      redirect_uris: ['http://127.0.0.1:38117/callback'],
    };
    place.authority.clients.set('known', client);
    const path = config(
      `{ sign_in: person, client_id: known, client_secret_env: BOX_SECRET, issuer: "${place.issuer}" }`,
    );
    const args = ['box', '--config', path, '--port', '38117'];
    expect(await login(args, undefined, { BOX_SECRET: SECRET_CANARY })).toMatchObject({ code: 0 });
    expect(place.authority.asked).toEqual(['authorize', 'code']);
    expect(keptText()).not.toContain(SECRET_CANARY);
    expect(heard).not.toContain(SECRET_CANARY);
    vi.stubEnv('BOX_SECRET', SECRET_CANARY);
    place.authority.access.clear();
    await using it = await served(['--config', path]);
    expect(textOf(await it.call('echo', { text: 'x' }))).toBe('x');
  });

  it('R-16.8 a person, or their server, who says no: nothing is kept', async () => {
    place.authority.says = 'no';
    const ended = await login([place.server.url]);
    expect(ended).toMatchObject({ code: 1, stdout: '' });
    expect(ended.stderr).toContain('the sign-in was refused: access_denied');
    expect(keptText()).not.toContain('tokens');
  });

  it('R-16.8 who comes back without the state of this sign-in, or by another name, is sent away', async () => {
    const statuses: number[] = [];
    const asked = (url: URL, host = url.host): Promise<number> =>
      new Promise((resolve, reject) => {
        get(url, { headers: { host } }, (response) => resolve(response.resume().statusCode ?? 0)).on('error', reject);
      });
    const ended = await login([place.server.url], async (page) => {
      const { searchParams } = new URL(page);
      expect(searchParams.get('code_challenge_method')).toBe('S256');
      const back = new URL(searchParams.get('redirect_uri') ?? '');
      expect(back.hostname).toBe('127.0.0.1');
      statuses.push(await asked(new URL('?code=x&state=guessed', back)));
      statuses.push(await asked(new URL('?code=x', back)));
      statuses.push(await asked(new URL('/elsewhere', back)));
      const state = String(searchParams.get('state'));
      statuses.push(await asked(new URL(`?code=x&state=${state}`, back), 'evil.example'));
      await fetch(page);
    });
    expect(statuses).toEqual([404, 404, 404, 404]);
    expect(ended.code).toBe(0);
  });

  it('R-16.8 nobody comes: it ends at its time', async () => {
    const ended = await login([place.server.url, '--timeout', '1000'], () => Promise.resolve());
    expect(ended.code).toBe(1);
    expect(ended.stderr).toContain('nobody signed in in time');
  });

  it('R-16.8 --forget takes it away; a server that asks for nothing is told so', async () => {
    await login([place.server.url]);
    const { origin } = new URL(place.server.url);
    expect(await login([place.server.url, '--forget'])).toMatchObject({
      code: 0,
      stdout: `the sign-in at ${origin} is forgotten\n`,
    });
    expect(kept()).toEqual([]);
    await using open = await httpServer();
    expect((await login([open.url])).stdout).toBe(`${new URL(open.url).origin} asks nobody to sign in\n`);
    expect(kept()).toEqual([]);
  });

  it.each([
    [[], 'the server is missing; write spillway mcp login https://mcp.example.com/mcp'],
    [['a', 'b'], 'login takes one server; leave out "b"'],
    [['a', '--port', '70000'], '--port must be an integer from 0 to 65535, not "70000"'],
    [['a', '--tiemout', '1'], 'there is no option --tiemout; did you mean --timeout?'],
  ])('R-16.8 %j is refused with what to do', (args, message) => {
    expect(() => parseLogin(args)).toThrow(message);
  });

  it('R-16.8 a name without a file, or that is in none, is refused', async () => {
    expect((await login(['box'])).stderr).toContain('"box" is no address; name its file with --config');
    const path = config('{ sign_in: person }');
    expect((await login(['bux', '--config', path])).stderr).toContain('did you mean box?');
    const wrong = config('{ client_id: x }');
    expect(await login(['box', '--config', wrong])).toMatchObject({ code: 2 });
    expect(heard).toContain('needs client_id, client_secret_env and issuer, or sign_in: person');
  });
});
