// Was: the 257th secret of a file's servers, one of over 4,096 characters and those of args and addresses were shown.
// Now: none is, and more than can be known are refused before anything starts, by `check` as well.
import { describe, expect, it } from 'vitest';
import { joined, secretsOf } from '../../src/cli/plan/secrets.ts';
import { withoutSecrets } from '../../src/policy/redact/known.ts';
import { secretsInWords } from '../../src/policy/redact/named.ts';
import { textRedactor } from '../../src/policy/redact/text.ts';
import { createRedactor } from '../../src/policy/redact/values.ts';
import { folder, spillway } from '../cli/support.ts';

const many = (count: number, length = 8): readonly string[] =>
  Array.from({ length: count }, (_, place) => `${place}`.padStart(8, '0').padEnd(length, 'x'));
const envOf = (values: readonly string[]): Record<string, string> =>
  Object.fromEntries(values.map((value, place) => [`API_KEY${place}_TOKEN`, value]));

describe('R-11.4 how many secrets are known', () => {
  it('R-11.4 as many as servers are given, the longest in parts', () => {
    const secrets = secretsOf({ m: { command: 'x', env: envOf([...many(1022), `${'ab c!'.repeat(1000)}.`]) } }, {});
    expect(secrets).toHaveLength(1024);
    expect(secrets.slice(-2).map(({ length }) => length)).toEqual([2501, 2500]);
  });

  it('R-11.4 one that is longer than a text may be is not printed in whole or in part', () => {
    const long = Array.from({ length: 1200 }, (_, place) => `w${place} `).join('');
    const secrets = secretsOf({ m: { command: 'x', env: { API_KEY: long } } }, {});
    expect(secrets).toHaveLength(2);
    for (const clean of [withoutSecrets(secrets), textRedactor(secrets)])
      expect(clean(`given ${long.trim()} today`)).toMatch(/^given (?:\[redacted\]){1,2} ?today…?$/);
  });

  it('R-11.4 more are refused: what was given, what is allowed and what to do', () => {
    const words = /at most 1024 secrets of 1048576 characters in all, not 1025 of 8200.*several files/;
    expect(() => joined(many(1000), many(1025))).toThrow(words);
    expect(() => joined(many(300, 4096))).toThrow(/not 300 of 1228800/);
    expect(joined(many(1024), many(10))).toHaveLength(1024);
    expect(() => createRedactor({ secrets: many(1025) })).toThrow(/at most 1024 texts.*not 1025; give/);
    expect(() => createRedactor({ secrets: many(300, 4096) })).toThrow(/1048576 in all, not 300; give/);
    expect(() => createRedactor({ secrets: many(1024, 1024) })).not.toThrow();
  });

  it('R-11.4 of run and gateway, before a server is started', async () => {
    using place = folder();
    const server = { command: process.execPath, args: ['-e', 'console.error("it began")'], env: envOf(many(1025)) };
    const plan = place.write(
      'plan.yaml',
      JSON.stringify({ servers: { m: server }, turn: { nodes: [{ id: 'n', tool: 'm.x' }] } }),
    );
    for (const command of [
      ['run', plan],
      ['gateway', 'anthropic', '--upstream', 'http://127.0.0.1:9', '--tools', plan],
    ]) {
      const { code, stderr } = await spillway(...command);
      expect(stderr).toContain('not 1025 of');
      expect(stderr).not.toContain('it began');
      expect(code).toBe(2);
    }
  });

  it('R-11.4 check finds it where run and mcp would refuse to start', async () => {
    using place = folder();
    const servers = { m: { command: process.execPath, env: envOf(many(1025)) } };
    const turn = { nodes: [{ id: 'n', tool: 'm.x' }] };
    const files = { 'plan.yaml': { servers, turn }, 'proxy.yaml': { servers, tools: { 'm.x': { effects: 'read' } } } };
    for (const [name, file] of Object.entries(files)) {
      const { code, stdout } = await spillway('check', place.write(name, JSON.stringify(file)));
      expect(stdout).toMatch(/servers: the servers may be given at most 1024 secrets .*not 1025 of/);
      expect(code).toBe(2);
    }
  });

  it('R-11.4 a megabyte of text is looked through in time, however many are known', () => {
    const secrets = Array.from({ length: 1024 }, (_, place) => `sk-${place}-${'kept '.repeat(210)}`.slice(0, 1024));
    const clean = withoutSecrets(secrets);
    clean(secrets[0] ?? '');
    for (const part of ['sk-', 'kept ', 'sk-1', 'words ', `${secrets[7]?.slice(0, 1000)}`]) {
      const text = part.repeat(2 ** 20 / part.length);
      const before = process.cpuUsage();
      clean(text);
      expect(process.cpuUsage(before).user / 1000).toBeLessThan(1_000);
    }
  });
});

const KEY = 'velvet otter cabin';
describe('R-11.4 secrets on the command line of a server and in its address', () => {
  it.each([
    [['--api-key', KEY]],
    [[`--api-key=${KEY}`]],
    [['-e', `API_KEY=${KEY}`]],
    [[`-eAPI_KEY=${KEY}`]],
    [[`--env=GH_PAT=${KEY}`]],
    [['--header', `Authorization: Bearer ${KEY}`]],
    [[`--header=Authorization:Bearer ${KEY}`]],
    [['-H', `X-Api-Key: ${KEY}`]],
    [['--header', `Authorization:${KEY}`]],
    [['--access-token', KEY]],
    [['--password', 'letmein']],
    [['--token', 'Zq9xK7vB']],
    [['--auth', 'Zq9xK7vB']],
    [['--config', JSON.stringify({ apiKey: KEY, n: 1 })]],
    [[`Server=db;Password=${KEY};Timeout=3`]],
    [[`postgres://ann:hunter2x@db.example/shop`]],
    [['https://a.example/mcp?n=1&api_key=velvet%20otter%20cabin&m=2']],
    [['https://a.example/mcp?token=Zq9xK7vB#x']],
    [['https://a.example/mcp?key=Zq9xK7vB']],
  ])('R-11.4 %j', (args) => {
    const secrets = secretsInWords(args);
    const known = [KEY, 'letmein', 'Zq9xK7vB', 'hunter2x'].filter((secret) => secrets.includes(secret));
    expect(known).toHaveLength(1);
    expect(secretsOf({ m: { command: 'x', args } }, {})).toEqual(secrets);
    expect(withoutSecrets(secrets)(`it has ${known[0]}, it says`)).toBe('it has [redacted], it says');
  });

  it('R-11.4 of a server’s url', () => {
    expect(secretsOf({ m: { url: 'https://a.example/mcp?api_key=hunter2%2Fx&n=1' } }, {})).toEqual([
      'hunter2%2Fx',
      'hunter2/x',
    ]);
  });

  it.each([
    [['--auth', 'required', '--token-type', 'bearer', '--password-stdin', 'registry']],
    [['--key-file', '/run/secrets/key', '--api-key-env', 'SEARCH_KEY', '--token-url', 'https://a.example/token']],
    [['--private-key', './keys/id.pem', '--credentials', 'creds.json', '--api-key', '$SEARCH_KEY']],
    [['--sort-key', 'createdAt', '--key', 'created', '--session', 'default', '--auth=disabled', '--token=bearer']],
    [['-y', '@modelcontextprotocol/server-everything', 'stdio', '--port=8080', '--mode', 'production']],
    [['https://a.example/mcp?sort_key=created&mode=production&token_type=bearer&max_tokens=4096']],
    [['--secret-name', 'production', '--tokens=100000', '--author', 'ann-smith', '--header', 'Accept: text/html']],
  ])('R-11.4 ordinary words of %j are none', (args) => {
    expect(secretsInWords(args)).toEqual([]);
  });

  it('R-11.4 a long word takes no time', () => {
    const before = process.cpuUsage();
    for (const part of ['a=', ';', '/', '"', '-', 'a=;', '=a', ' ', '{"a":'])
      secretsInWords([part.repeat(65_536 / part.length)]);
    expect(process.cpuUsage(before).user / 1000).toBeLessThan(2_000);
  });
});
