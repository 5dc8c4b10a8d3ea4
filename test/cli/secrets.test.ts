import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { secretsOf } from '../../src/cli/plan/secrets.ts';
import { messageLine } from '../../src/cli/show/text.ts';
import { withoutSecrets } from '../../src/policy/redact/known.ts';
import { secretsIn } from '../../src/policy/redact/named.ts';
import { ROOT, folder, spillway, until } from './support.ts';

/** No form gives it away: only that it is a variable's value, whose name says so. */
const VALUE = 'velvet otter cabin';
const TOKEN = 'Zq9xK7vB2mN4pL6tR8wY';
const SERVER = join(import.meta.dirname, 'leaking-server.ts');
const serverOf = (...args: readonly string[]): string => {
  const env = { API_KEY: VALUE, MODE: 'production' };
  return `servers: ${JSON.stringify({ m: { command: process.execPath, args, env } })}\n`;
};
const servers = serverOf(SERVER);
const planOf = (tool: string): string => `${servers}turn: { nodes: [{ id: n, tool: m.${tool} }] }\n`;

interface Heard {
  readonly transport: StdioClientTransport;
  readonly text: () => string;
}

/** A client of `spillway mcp`, and what that writes on stderr. */
const proxied = (config: string): { readonly client: Client; readonly stderr: Heard } => {
  const args = [join(ROOT, 'src/cli/main.ts'), 'mcp', '--config', config];
  const transport = new StdioClientTransport({ command: process.execPath, args, stderr: 'pipe' });
  let text = '';
  transport.stderr?.on('data', (chunk: Buffer) => (text += chunk.toString()));
  return { client: new Client({ name: 'test', version: '0' }), stderr: { transport, text: () => text } };
};

describe('R-11.4 what the command prints', () => {
  it.each(['', '--json'])('R-11.4 of a failure, its progress and its trace, by run %s', async (option) => {
    const args = option === '' ? [] : [option];
    using place = folder();
    const trace = join(place.path, 'trace.ndjson');
    const plan = place.write('plan.yaml', planOf('fails'));
    const { stdout, stderr } = await spillway(
      'run',
      plan,
      '--trace',
      trace,
      '--html',
      join(place.path, 'a.html'),
      ...args,
    );
    const shown = await spillway('show', trace, '--failed');
    const files = ['trace.ndjson', 'a.html'].map((name) => readFileSync(join(place.path, name), 'utf8'));
    for (const text of [stdout, stderr, ...files, shown.stdout]) {
      expect(text).not.toContain('velvet');
      expect(text).not.toContain(TOKEN);
    }
    expect(args.length === 0 ? stderr : stdout).toContain(
      'cannot reach it with [redacted], token=[redacted] in production',
    );
    expect(shown.stdout).toContain('[redacted]');
  });

  it('R-11.4 an output is what was asked for, and is printed as it is', async () => {
    using place = folder();
    const plan = place.write('plan.yaml', planOf('gives'));
    const [table, json] = await Promise.all([spillway('run', plan), spillway('run', plan, '--json')]);
    expect(table.stdout).toContain(`the value ${VALUE}`);
    const last = JSON.parse(json.stdout.trimEnd().split('\n').at(-1) ?? '') as { result: { values: object } };
    expect(JSON.stringify(last.result.values)).toContain(`the value ${VALUE}`);
  });

  it('R-11.4 a server’s own log goes on without what the server was given', async () => {
    using place = folder();
    const config = place.write('mcp.yaml', servers);
    const { client, stderr } = proxied(config);
    await client.connect(stderr.transport);
    const result = await client.callTool({ name: 'fails', arguments: {} });
    await until(() => stderr.text().includes('log:'));
    await client.close();
    expect(stderr.text()).toContain(`log: cannot reach it with [redacted], token=${TOKEN} in production`);
    // What the server answers passes: it is the client's.
    expect(JSON.stringify(result)).toContain(VALUE);
  });

  it('R-11.4 a server that does not start is told of without what it was given, by run and by mcp', async () => {
    using place = folder();
    const script = `console.error("no start with " + process.env.API_KEY + ", token=${TOKEN}"); process.exit(1)`;
    const entry = serverOf('-e', script);
    const plan = place.write('plan.yaml', `${entry}turn: { nodes: [{ id: n, tool: m.x }] }\n`);
    const config = place.write('mcp.yaml', entry);
    const ran = await spillway('run', plan);
    expect(ran.code).toBe(2);
    expect(ran.stderr).toContain('no start with [redacted], token=[redacted]');
    expect(ran.stderr).not.toContain('velvet');
    const { client, stderr } = proxied(config);
    await client.connect(stderr.transport).catch(() => undefined);
    await until(() => stderr.text().includes('was lost'));
    await client.close();
    expect(stderr.text()).toContain('m: no start with [redacted]');
    expect(stderr.text()).not.toContain('velvet');
  });

  it('R-11.4 tools shows how a server describes its tools without what the server was given', async () => {
    using place = folder();
    const { stdout } = await spillway('tools', place.write('plan.yaml', planOf('gives')), '--json');
    expect(stdout).toContain('cannot reach it with [redacted]');
    expect(stdout).toContain('"default":"[redacted]"');
    expect(stdout).not.toContain('velvet');
  });

  it('R-11.4 which values are secrets say their names, or that they stand in a variable', () => {
    const env = { LOG_LEVEL: 'information', PWD: 'some/folder', GITHUB_TOKEN: 'abcdefgh', DB_PASSWORD: 'qwertyui' };
    expect(secretsIn({ ...env, SHORT_KEY: 'abc' })).toEqual(['abcdefgh', 'qwertyui']);
    const ends = { GH_PAT: 'abcdefg1', STRIPE_SK: 'abcdefg2', DB_PW2: 'abcdefg3', TASK: 'abcdefg4', DESK: 'abcdefg5' };
    expect(secretsIn(ends)).toEqual(['abcdefg1', 'abcdefg2', 'abcdefg3']);
    const address = 'postgres://ann:sw%40rdfish@db.example:5432/shop';
    expect(secretsIn({ DATABASE_URL: address, HOME_URL: 'http://a.example:8080/x@y' })).toEqual([
      'sw%40rdfish',
      'sw@rdfish',
    ]);
    expect(secretsIn({ URLS: ' jdbc:postgresql://ann@corp:hunter22@db.example' })).toEqual(['hunter22']);
    const entry = {
      url: 'https://a.example',
      headers: { Authorization: 'Bearer hunter2hunter2', Accept: 'text/html' },
    };
    const all = { a: { ...entry, headers_from_env: { 'x-team': 'TEAM' } }, b: { command: 'x', env } };
    expect(secretsOf(all, { TEAM: 'blue-and-white' })).toEqual([
      'hunter2hunter2',
      'blue-and-white',
      'abcdefgh',
      'qwertyui',
    ]);
    expect(withoutSecrets(['abc', 'b'])('xabcx b')).toBe('[redacted] [redacted]');
  });

  it.each([
    ['with another that begins with it', 'hunter2 and hunter2024', '[redacted] and [redacted]'],
    ['with a colour within it', 'hun\u001B[31mter2\u001B[0m', '[redacted]'],
    ['with an invisible character within it', 'hun\u200Bter2 hun\u0007ter2', '[redacted] [redacted]'],
    ['as an address has it', `?key=${encodeURIComponent('a b/c+d=')}`, '?key=[redacted]'],
    ['as JSON has it', JSON.stringify({ key: 'say "so"' }), '{"key":"[redacted]"}'],
    ['in base64', `Basic ${btoa('user:hunter2')}`, 'Basic [redacted]'],
  ])('R-11.4 a value is taken out %s', (_, text, shown) => {
    const given = ['hunter2', 'hunter2024', 'a b/c+d=', 'say "so"', 'user:hunter2'];
    expect(messageLine(withoutSecrets(given)(text))).toBe(shown);
  });
});
