import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, vi } from 'vitest';
import { parseMcp } from '../../src/cli/arguments/mcp.ts';
import { configured } from '../../src/cli/mcp/servers.ts';
import { ledger } from '../mcp-proxy/kit.ts';
import { until } from '../providers/support.ts';
import { behind, calls, conversation, opening, rawServer, type Command, type Json } from '../mcp-proxy/wire-kit.ts';
import { ROOT, folder, spillway } from './support.ts';

const FAULTS = join(import.meta.dirname, '../mcp-proxy/fault-server.ts');
const faulty = (path: string): Command => [process.execPath, FAULTS, path];

describe('R-16.8 the line of spillway mcp', () => {
  it.each([
    [[], 'there is no server; write spillway mcp -- npx some-mcp-server'],
    [['npx', 'x'], 'write -- before the command: spillway mcp -- npx ...'],
    [['--'], 'after -- the command is missing; write spillway mcp -- npx some-mcp-server'],
    [['--timeout', '0', '--', 'x'], '--timeout must be an integer from 1 to 86400000, not "0"'],
    [['--server', 'files', '--config', 'x'], '--server must be NAME=URL or NAME=COMMAND LINE'],
    [['--server', 'a=x', '--server', 'a=y'], '--server a is given twice; give one of them another name'],
    [['--server', 'a=x', '--', 'y'], '--server is for several servers'],
    [['--name', 'a b', '--', 'y'], '--name must be made of letters, digits, _ and - only, not "a b"'],
    [['--timeot', '5', '--', 'x'], 'there is no option --timeot; did you mean --timeout?'],
  ])('R-16.8 %j is refused with what to do', (args, message) => {
    expect(() => parseMcp(args)).toThrow(message);
  });

  it('R-16.8 what stands after -- is the server’s own, options included', () => {
    expect(parseMcp(['--timeout', '5', '--', 'npx', '--help', '--timeout'])).toMatchObject({
      command: ['npx', '--help', '--timeout'],
      timeoutMs: 5,
    });
  });

  it('R-16.8 a file is read with its places, and says what is wrong with it', async () => {
    using files = folder();
    const good = files.write(
      'good.yaml',
      [
        'servers: { a: { command: x }, b: { url: "http://localhost:1/mcp" } }',
        'tools: { a.read: { timeout_ms: 5, check_input: false } }',
      ].join('\n'),
    );
    const parsed = parseMcp(['--config', good, '--timeout', '9']);
    if (parsed === undefined) throw new TypeError('it asked for help');
    expect((await configured(parsed)).proxy).toMatchObject({
      servers: {
        a: { tools: { read: { timeoutMs: 5, checkInput: false } } },
        b: { place: { url: 'http://localhost:1/mcp' } },
      },
      defaults: { timeoutMs: 9 },
    });
    const bad = files.write(
      'bad.yaml',
      'servers: { a: { command: x }, b: { command: y } }\ntools:\n  c.read: { timeout_ms: 5 }\n',
    );
    const wrong = await spillway('mcp', '--config', bad);
    expect(wrong).toMatchObject({ code: 2, stdout: '' });
    expect(wrong.stderr).toMatch(/bad\.yaml:3:3: tools\.c\.read: names no server; there is a, b/);
    const worse = files.write('worse.yaml', 'servers: { a: { command: x } }\ntools: { read: { timeout: 5 } }\n');
    expect((await spillway('mcp', '--config', worse)).stderr).toMatch(/worse\.yaml:2:\d+: .*timeout/);
  });

  it('R-16.8 the file of the page is fine', async () => {
    using files = folder();
    const page = readFileSync(join(ROOT, 'src/mcp-proxy/README.md'), 'utf8');
    const [, text = ''] = /^```yml\n([\s\S]*?)^```$/m.exec(page) ?? [];
    const parsed = parseMcp(['--config', files.write('guards.yaml', text)]);
    if (parsed === undefined) throw new TypeError('it asked for help');
    vi.stubEnv('SEARCH_AUTHORIZATION', 'Bearer x');
    const { servers } = (await configured(parsed)).proxy;
    vi.unstubAllEnvs();
    expect(Object.keys(servers)).toEqual(['files', 'search']);
    expect(servers['search']?.tools?.['query']).toMatchObject({ effects: 'read', breaker: { cooldownMs: 10_000 } });
  });

  it('R-16.8 --print-config starts nothing, and names the command for each client', async () => {
    const { stdout, code } = await spillway('mcp', '--print-config', '--name', 'x', '--', 'no-such-program', 'a b');
    expect(code).toBe(0);
    expect(stdout).toContain("claude mcp add x -- npx -y spillway mcp --name x -- no-such-program 'a b'");
    const [json = ''] = /\{\n {2}"mcpServers"[\s\S]*?\n\}\n/.exec(stdout) ?? [];
    expect(JSON.parse(json)).toEqual({
      mcpServers: {
        x: { command: 'npx', args: ['-y', 'spillway', 'mcp', '--name', 'x', '--', 'no-such-program', 'a b'] },
      },
    });
  });
});

describe('R-16.1 the command', () => {
  it('R-16.1 keeps a trace without arguments, and ends with its client', async () => {
    using kept = ledger();
    using files = folder();
    const trace = join(files.path, 'trace.ndjson');
    const server = rawServer(behind(faulty(kept.path), '--trace', trace));
    const { answers } = await conversation(server, [...opening(), ['tools/list'], calls('pay', { amount: 31_337 })]);
    expect(answers).toHaveLength(3);
    expect(await server.end()).toBe(0);
    const events = readFileSync(trace, 'utf8');
    expect(events).toContain('"type":"settled"');
    expect(events).not.toContain('31337');
  });

  it('R-16.1 a request that is too long to be read is refused, and one of 9 MB is made', async () => {
    using kept = ledger();
    const server = rawServer(behind(faulty(kept.path)));
    const padded = (amount: number, bytes: number): Promise<Json> =>
      server.ask('tools/call', { name: 'pay', arguments: { amount, pad: 'x'.repeat(bytes) } });
    const [[initialize, given] = ['initialize']] = opening();
    await server.ask(initialize, given);
    server.say({ method: 'notifications/initialized' });
    const { error } = await padded(1, 12_000_000);
    expect(error).toMatchObject({ code: -32_600 });
    expect(JSON.stringify(error)).toMatch(/"The request has 12000\d{3} bytes, and 10485759 are read at most"/);
    expect(await padded(2, 9_000_000)).toMatchObject({ result: { content: [{ text: 'paid 2' }] } });
    expect([kept.count('pay 1'), kept.count('pay 2')]).toEqual([0, 1]);
    expect(await server.end()).toBe(0);
  });

  it('R-16.1 what is too long and no request ends the client, and the command says so', async () => {
    using kept = ledger();
    let heard = '';
    const server = rawServer(behind(faulty(kept.path)), { heard: (text) => (heard += text) });
    server.say({ method: 'notifications/message', params: { pad: 'x'.repeat(12_000_000) } });
    await until(() => heard.includes('spillway: The client sent a message of 12000'));
    await server.end();
  });

  it('R-16.1 --inspect serves a page that is told each call, and nobody else is', async () => {
    using kept = ledger();
    let heard = '';
    const server = rawServer(behind(faulty(kept.path), '--inspect'), { heard: (text) => (heard += text) });
    for (const [method, params] of opening()) {
      if (method.startsWith('notifications/')) server.say({ method, ...(params === undefined ? {} : { params }) });
      else await server.ask(method, params);
    }
    await until(() => /inspect: http\S+\n/.test(heard));
    const page = new URL(/inspect: (\S+)/.exec(heard)?.[1] ?? '');
    await server.ask(...calls('pay', { amount: 31_337 }));
    const stream = await fetch(new URL(`/events${page.search}`, page));
    let told = '';
    const reader = stream.body?.pipeThrough(new TextDecoderStream()).getReader();
    while (!told.includes('"settled"')) told += (await reader?.read())?.value ?? '';
    expect(told).toContain('pay');
    expect(told).not.toContain('31337');
    expect((await fetch(new URL('/events', page))).status).toBe(403);
    await reader?.cancel();
    expect(await server.end()).toBe(0);
  });

  it('R-16.1 gives its server the variables that it was given, but for its own', async () => {
    const code = 'console.log(JSON.stringify({jsonrpc:"2.0",method:"x",params:process.env}));setInterval(()=>{},1000)';
    const env = { GIVEN: 'yes', SPILLWAY_MCP_TOKEN: 'no' };
    const server = rawServer(behind([process.execPath, '-e', code]), { env });
    void server.ask('tools/list');
    await until(() => server.said.length > 0);
    const [{ params } = {}] = server.said;
    expect(params).toMatchObject({ GIVEN: 'yes' });
    expect(params).not.toHaveProperty('SPILLWAY_MCP_TOKEN');
    await server.end();
  });
});
