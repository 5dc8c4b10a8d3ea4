import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { PassThrough } from 'node:stream';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createSpillway, tool, type Spillway } from 'spillway';
import { serveAdmin, type AdminServer } from 'spillway/gateway/admin-server';
import { runAdmin } from '../../src/cli/admin.ts';
import { UsageError } from '../../src/cli/arguments/run.ts';
import { DEMO, STACK_TRACE, start, until } from './support.ts';

const TOKEN = 'a-token-of-our-own-0123456789';

interface Said {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

let spillway: Spillway;
let server: AdminServer;

const admin = async (
  args: readonly string[],
  env: Record<string, string> = { SPILLWAY_ADMIN_URL: server.url, SPILLWAY_ADMIN_TOKEN: TOKEN },
): Promise<Said> => {
  const [stdout, stderr] = [new PassThrough(), new PassThrough()];
  const code = await runAdmin(args, { stdout, stderr, env, signal: new AbortController().signal });
  const text = (output: PassThrough): string => String(output.read() ?? '');
  return { code, stdout: text(stdout), stderr: text(stderr) };
};

beforeEach(async () => {
  spillway = createSpillway({
    tools: [
      tool({ name: 'search', policy: { retry: { maxAttempts: 1 } }, execute: () => 'found' }),
      tool({ name: 'evil\u001b[2J\nforged', execute: () => 1 }),
    ],
  });
  server = await serveAdmin(spillway, { token: TOKEN });
});
afterEach(async () => {
  await server.close();
  await spillway.close();
});

describe('R-11.3 spillway admin', () => {
  it('R-11.3 status is a table, force-open and reset say what they changed', async () => {
    expect((await admin(['status'])).stdout).toMatch(
      /^mode: on\ntools: 2\nretries left: \d+\nstore: none yet, or no answer\nno tool was called yet\n$/,
    );
    await spillway.execute({ toolName: 'search', tenant: 'acme', idempotencyKey: 'k' });
    const opened = await admin(['force-open', '--tool', 'search']);
    expect(opened).toEqual({
      code: 0,
      stderr: '',
      stdout:
        'force open: 1 breaker\n\nbreaker  scope  state        in a row  failures  probe in\nsearch   acme   forced open  0         0 of 1\n',
    });
    expect((await spillway.execute({ toolName: 'search' })).status).toBe('circuit_open');
    expect((await admin(['status'])).stdout).toMatch(
      /^store: memory, process, 1 records$[^]*^search +acme +forced open/m,
    );
    expect((await admin(['reset', '--all'])).stdout).toMatch(/^reset: 2 breakers\n/);
    expect((await spillway.execute({ toolName: 'search' })).status).toBe('success');
  });

  it('R-11.3 --json gives the answer as one line of JSON', async () => {
    const { stdout } = await admin(['disable', '--tool', 'search', '--json']);
    expect(JSON.parse(stdout)).toMatchObject({
      action: 'disable',
      changed: [{ toolName: 'search', scope: '', state: { type: 'disabled' } }],
    });
    expect(stdout.trimEnd()).not.toContain('\n');
  });

  it('R-11.3 flush counts', async () => {
    for (const key of ['1', '2', '3'])
      await spillway.execute({ toolName: 'search', session: key === '3' ? 'bob' : 'ada', idempotencyKey: key });
    expect((await admin(['flush', '--session', 'ada'])).stdout).toBe('forgotten: 2\n');
    expect((await admin(['flush', '--tool', 'search'])).stdout).toBe('forgotten: 1\n');
    expect((await admin(['flush', '--all'])).stdout).toBe('forgotten: 0\n');
  });

  it('R-11.3 a name from the server cannot drive the terminal, nor forge a line', async () => {
    const { stdout } = await admin(['force-open', '--all']);
    expect(stdout).toContain('evil forged');
    expect(stdout).not.toContain('\u001b');
    expect(stdout.split('\n')).toHaveLength(6);
  });

  it.each([
    [['force-open', '--tool', 'nothing'], {}, /^spillway: refused \(404\): there is no tool of that name/],
    [
      ['status'],
      { SPILLWAY_ADMIN_TOKEN: 'a-wrong-token-0123456789' },
      /^spillway: refused \(401\): the token is missing or wrong/,
    ],
    [
      ['status'],
      { SPILLWAY_ADMIN_URL: 'http://127.0.0.1:1' },
      /^spillway: http:\/\/127\.0\.0\.1:1 cannot be reached: /,
    ],
  ])('R-11.3 refused or not reached: %j %j exits 1 and says why', async (args, env, message) => {
    const { code, stdout, stderr } = await admin(args, {
      SPILLWAY_ADMIN_URL: server.url,
      SPILLWAY_ADMIN_TOKEN: TOKEN,
      ...env,
    });
    expect([code, stdout]).toEqual([1, '']);
    expect(stderr).toMatch(message);
    expect(stderr).not.toMatch(/token-of-our-own|a-wrong-token/);
  });

  it.each<[what: string, listener: RequestListener]>([
    ['a page of something else', (_, answer) => void answer.end('<html>hello')],
    ['JSON of something else', (_, answer) => void answer.end('{"ok":true}')],
    ['JSON of no object', (_, answer) => void answer.end('null')],
    ['an error of something else', (_, answer) => void answer.writeHead(502).end('bad gateway')],
  ])('R-11.3 %s is no answer', async (_what, listener) => {
    const other = createServer(listener).listen(0, '127.0.0.1');
    await once(other, 'listening');
    const { code, stderr } = await admin(['status'], {
      SPILLWAY_ADMIN_URL: `http://127.0.0.1:${(other.address() as AddressInfo).port}`,
      SPILLWAY_ADMIN_TOKEN: TOKEN,
    });
    expect([code, /not as an admin page does/.test(stderr)]).toEqual([1, true]);
    other.closeAllConnections();
    other.close();
  });

  it('R-11.3 the token is not carried along a redirect', async () => {
    let reached = 0;
    const target = createServer((_, answer) => void answer.end(String(++reached))).listen(0, '127.0.0.1');
    await once(target, 'listening');
    const other = createServer(
      (_, answer) =>
        void answer.writeHead(307, { location: `http://127.0.0.1:${(target.address() as AddressInfo).port}/` }).end(),
    ).listen(0, '127.0.0.1');
    await once(other, 'listening');
    expect(
      (
        await admin(['status'], {
          SPILLWAY_ADMIN_URL: `http://127.0.0.1:${(other.address() as AddressInfo).port}`,
          SPILLWAY_ADMIN_TOKEN: TOKEN,
        })
      ).code,
    ).toBe(1);
    expect(reached).toBe(0);
    for (const { closeAllConnections, close } of [target, other].map((one) => ({
      closeAllConnections: () => one.closeAllConnections(),
      close: () => one.close(),
    }))) {
      closeAllConnections();
      close();
    }
  });

  it.each([
    [[], 'an action is missing; there is status, force-open, reset, disable, flush'],
    [['forceopen', '--all'], 'there is no action "forceopen"; did you mean force-open?'],
    [['reset'], 'reset needs one of --tool, or --all'],
    [['flush'], 'flush needs one of --tool, --session or --all'],
    [['reset', '--tool', 'a', '--all'], 'reset needs one of'],
    [['reset', '--session', 's'], 'reset is for --tool or --all'],
    [['status', '--all'], 'status is of everything'],
    [['reset', 'search'], 'reset takes options only; name a tool by --tool'],
    [['reset', '--tool='], 'need a name'],
    [['status', '--tokn', 'x'], 'there is no option --tokn; did you mean --token?'],
    [['status', '--url', 'localhost:80'], '--url must be an address that begins with http:// or https://'],
    [['status', '--url', 'http://user:secret@localhost'], '--url must hold no user'],
    [['status', '--url', 'http://localhost/other'], '--url must be the server alone, such as http://localhost'],
    [['status', '--token', ''], 'the token is missing; set SPILLWAY_ADMIN_TOKEN'],
    [['status', '--token', 'sp ace'], 'the token is not one of visible ASCII characters'],
  ])('R-11.3 refuses %j before anything is sent', async (args, message) => {
    await expect(admin(args)).rejects.toThrow(UsageError);
    await expect(admin(args)).rejects.toThrow(message);
    await expect(admin(args)).rejects.not.toThrow(/secret|sp ace/);
  });

  it('R-11.3 needs an address, and takes one with the path', async () => {
    await expect(admin(['status'], { SPILLWAY_ADMIN_TOKEN: TOKEN })).rejects.toThrow(
      'the address is missing; give --url, or set SPILLWAY_ADMIN_URL',
    );
    expect((await admin(['status', '--url', `${server.url}/debug/tool-reliability`, '--token', TOKEN], {})).code).toBe(
      0,
    );
    expect((await admin(['--help'], {})).stdout).toMatch(/^spillway admin ACTION/);
  });
});

describe('R-11.3 the command', () => {
  it('R-11.3 exits 0 done, 1 refused, 2 usage, without a stack', async () => {
    const env = { SPILLWAY_ADMIN_URL: server.url, SPILLWAY_ADMIN_TOKEN: TOKEN };
    const ended = await Promise.all([
      start(['admin', 'status'], env).ended,
      start(['admin', 'reset', '--tool', 'x'], env).ended,
      start(['admin', 'open'], env).ended,
    ]);
    expect(ended.map(({ code }) => code)).toEqual([0, 1, 2]);
    expect(ended[0].stdout).toMatch(/^mode: on\n/);
    for (const { stderr } of ended) expect(stderr).not.toMatch(STACK_TRACE);
  });

  it('R-11.3 run --admin says on stderr where the page is and by which token, and the page is there', async () => {
    const { child, ended, progress } = start(['run', DEMO, '--admin', '0']);
    await until(() => /token [\da-f]{64}/.test(progress()));
    const [, url = '', token = ''] = /admin: (\S+), token ([\da-f]{64})/.exec(progress()) ?? [];
    const seen = await admin(['status'], { SPILLWAY_ADMIN_URL: url, SPILLWAY_ADMIN_TOKEN: token });
    expect(seen).toMatchObject({ code: 0, stderr: '' });
    const { code, stdout } = await ended;
    expect([code, stdout.includes(token)]).toEqual([0, false]);
    child.kill();
    await expect(fetch(url)).rejects.toThrow('fetch failed');
  });
});
