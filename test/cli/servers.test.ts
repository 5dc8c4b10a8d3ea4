import { delimiter, join, resolve, sep } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { PlanFileError, loadPlan } from '../../src/cli/plan/file.ts';
import { launchOf } from '../../src/cli/plan/servers.ts';
import { closedUrl } from '../errors/scripted-server.ts';
import { httpServer } from '../providers/mcp/http-server.ts';
import { STACK_TRACE, folder, spillway } from './support.ts';

const PLANS = resolve(sep, 'plans', 'trip');

describe('server of a plan', () => {
  it('starts in the folder of the plan file that cwd says', () => {
    expect(launchOf({ command: 'x', cwd: '.' }, PLANS).cwd).toBe(PLANS);
    expect(launchOf({ command: 'x', cwd: '..' }, PLANS).cwd).toBe(resolve(PLANS, '..'));
    expect(launchOf({ command: 'x', cwd: sep }, PLANS).cwd).toBe(resolve(sep));
  });

  it('without cwd starts where the command runs', () => {
    expect(launchOf({ command: 'x' }, PLANS).cwd).toBe(process.cwd());
  });

  it('has a command that is a path from the plan file, or a name from node_modules/.bin and PATH', () => {
    expect(launchOf({ command: './server.js', cwd: '..' }, PLANS).command).toBe(join(PLANS, 'server.js'));
    const { command, env } = launchOf({ command: 'server', cwd: '.' }, PLANS);
    expect(command).toBe('server');
    const folders = (env['PATH'] ?? '').split(delimiter);
    expect(folders.slice(0, 3)).toEqual([
      join(PLANS, 'node_modules', '.bin'),
      resolve(PLANS, '..', 'node_modules', '.bin'),
      resolve(sep, 'node_modules', '.bin'),
    ]);
    expect(folders.slice(3).join(delimiter)).toBe(process.env['PATH']);
  });

  it('gets the variables that the plan gives, PATH too', () => {
    expect(launchOf({ command: 'x', env: { PATH: 'mine', TOKEN: 't' } }, PLANS).env).toEqual({
      PATH: 'mine',
      TOKEN: 't',
    });
  });
});

const CANARY = 'secret-1';
const wrong = (server: string): string =>
  `servers:\n  s: ${server}\nturn: { nodes: [{ id: a, tool: s.echo, input: { text: hi } }] }\n`;

describe('server of a plan over HTTP', () => {
  const files = folder();
  afterAll(() => files[Symbol.dispose]());

  it.each<[string, string, RegExp]>([
    [
      'command and url',
      `{ command: x, url: "http://localhost" }`,
      /:2:\d+: servers\.s\.url: cannot stand beside command: .*; remove one of them$/,
    ],
    [
      'neither',
      '{ start_timeout_ms: 5 }',
      /:2:\d+: servers\.s\.command: is missing; give command for a server to start, or url for one over HTTP$/,
    ],
    ['no URL', '{ url: localhost }', /servers\.s\.url: must be an absolute URL, such as/],
    [
      'another scheme',
      `{ url: "file:///etc/${CANARY}" }`,
      /servers\.s\.url: must begin with http: or https:, not file:$/,
    ],
    [
      'a password',
      `{ url: "http://me:${CANARY}@localhost" }`,
      /servers\.s\.url: must not hold a user name or a password/,
    ],
    [
      'what is for commands',
      '{ url: "http://localhost", args: [x], cwd: "." }',
      /servers\.s\.args: is for a server that is started[^\n]*\n.*servers\.s\.cwd: is for a server/,
    ],
    [
      'headers for a command',
      '{ command: x, headers: { a: b } }',
      /servers\.s\.headers: can be given to a server over HTTP only/,
    ],
    [
      'a header that is none',
      `{ url: "http://localhost", headers: { "a b": ${CANARY} } }`,
      /servers\.s\.headers: must be names and texts that HTTP allows; "a b" is not$/,
    ],
    [
      'a header of two lines',
      `{ url: "http://localhost", headers: { a: "${CANARY}\\nb: c" } }`,
      /servers\.s\.headers: must be names and texts that HTTP allows; "a" is not$/,
    ],
    [
      'a header to be filled in',
      `{ url: "http://localhost", headers: { authorization: "${CANARY} \${env:TOKEN}" } }`,
      /servers\.s\.headers: are taken as they are written/,
    ],
    [
      'a header that is a number',
      '{ url: "http://localhost", headers: { a: 1 } }',
      /servers\.s\.headers\.a: must be a text, not 1; put it in quotes$/,
    ],
    [
      'a misspelt key',
      '{ url: "http://localhost", header: { a: b } }',
      /servers\.s\.header: .* did you mean headers\?/,
    ],
  ])('with %s is refused, naming place and rule, and no secret', async (what, server, says) => {
    const refused = loadPlan(files.write(`${what.replaceAll(' ', '-')}.yaml`, wrong(server)));
    await expect(refused).rejects.toThrow(PlanFileError);
    await expect(refused).rejects.toThrow(says);
    await expect(refused).rejects.not.toThrow(CANARY);
  });

  it('runs a plan, with its headers, and ends its session', async () => {
    await using server = await httpServer();
    const authorizations = new Set<string | undefined>();
    server.intercept = ({ headers }) => {
      authorizations.add(headers['authorization']);
      return false;
    };
    const { code, stdout } = await spillway(
      'run',
      files.write('good.yaml', wrong(`{ url: "${server.url}", headers: { authorization: "Bearer ${CANARY}" } }`)),
    );
    expect({ code, stdout }).toEqual({ code: 0, stdout: expect.stringContaining('hi') as string });
    expect([...authorizations]).toEqual([`Bearer ${CANARY}`]);
    expect(server.sessions.size).toBe(0);
  });

  it('that is not there: exit 2, naming the server and its origin', async () => {
    const { code, stdout, stderr } = await spillway(
      'run',
      files.write('gone.yaml', wrong(`{ url: "${await closedUrl()}/${CANARY}" }`)),
    );
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toMatch(
      /:2:3: servers\.s: the server s could not be reached at "http:\/\/127\.0\.0\.1:\d+": .*; check its url and headers/,
    );
    expect(stderr).not.toContain(CANARY);
    expect(stderr).not.toMatch(STACK_TRACE);
  });
});
