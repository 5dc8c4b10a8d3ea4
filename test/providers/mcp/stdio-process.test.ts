import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { mcpStdioProvider } from '../../../src/providers/mcp-stdio.ts';
import { EVERYTHING, ROOT, context, everything, failure, groupOf, isAlive, kill, run, until } from '../support.ts';

const LONG = 'everything.trigger-long-running-operation';

/** A server that writes the progress of a call and its answer at once. */
const HASTY = `
const line = (message) => JSON.stringify({ jsonrpc: '2.0', ...message }) + '\\n';
const method = 'notifications/progress';
const progress = (progressToken, progress) => line({ method, params: { progressToken, progress } });
const capabilities = { tools: {} };
const answers = {
  initialize: ({ protocolVersion }) => ({ protocolVersion, capabilities, serverInfo: { name: 'hasty', version: '0' } }),
  'tools/list': () => ({ tools: [{ name: 'go', inputSchema: { type: 'object' } }] }),
  'tools/call': () => ({ content: [{ type: 'text', text: 'done' }] }),
};
require('node:readline').createInterface({ input: process.stdin }).on('line', (text) => {
  const { id, method, params } = JSON.parse(text);
  if (id === undefined) return;
  const token = params?._meta?.progressToken;
  const reports = token === undefined ? '' : progress(token, 1) + progress(token, 2);
  process.stdout.write(reports + line({ id, result: answers[method](params) }));
});`;

describe('closing', () => {
  it('twice is as once, no process is left, and a call afterwards is not executed', async () => {
    const provider = await everything();
    const pid = provider.pid ?? 0;
    await Promise.all([provider.close(), provider.close()]);
    expect(isAlive(pid)).toBe(false);
    expect(provider.pid).toBeUndefined();
    expect(await failure(run(provider, 'everything.echo', { message: 'x' }))).toMatchObject({
      kind: 'transport_error',
      executed: false,
      classification: 'permanent',
    });
  });

  it('in mid-call: the call is canceled, uncertain', async () => {
    const provider = await everything();
    const work = failure(run(provider, LONG, { duration: 20, steps: 1 }));
    await sleep(100);
    await provider.close();
    expect(await work).toMatchObject({ kind: 'canceled', executed: true, uncertain: true });
  });

  it('a server that npx wraps: the whole group is gone', async () => {
    const provider = await everything({
      command: 'npx',
      args: ['--no-install', 'mcp-server-everything', 'stdio'],
      cwd: ROOT,
    });
    const pid = provider.pid ?? 0;
    expect(groupOf(pid).length).toBeGreaterThan(1);
    await provider.close();
    expect(groupOf(pid)).toEqual([]);
  });

  it('a wrapper that is killed takes its server with it, and the call fails at once', async () => {
    const provider = await everything({
      command: 'npx',
      args: ['--no-install', 'mcp-server-everything', 'stdio'],
      cwd: ROOT,
    });
    const pid = provider.pid ?? 0;
    const work = failure(run(provider, LONG, { duration: 20, steps: 1 }));
    await sleep(200);
    kill(pid);
    expect(await work).toMatchObject({ kind: 'transport_error', uncertain: true });
    await until(() => groupOf(pid).length === 0);
    await provider.close();
  });

  it('a server that ignores the end of its input and SIGTERM is killed', async () => {
    const stubborn = `process.on('SIGTERM', () => {}); setInterval(() => {}, 1e6); await import(${JSON.stringify(EVERYTHING)});`;
    const provider = await everything({ args: ['--input-type=module', '-e', stubborn, 'stdio'] });
    const pid = provider.pid ?? 0;
    const startMs = performance.now();
    await provider.close();
    expect(isAlive(pid)).toBe(false);
    expect(performance.now() - startMs).toBeLessThan(20_000);
  });
});

describe('a server that does not start', () => {
  it('unknown command: transport_error, permanent, not executed, the command named', async () => {
    const error = await failure(mcpStdioProvider({ name: 'none', command: 'no-such-command' }));
    expect(error).toMatchObject({
      kind: 'transport_error',
      executed: false,
      classification: 'permanent',
      code: 'ENOENT',
    });
    expect(error.message).toBe('The MCP server none could not be connected: the command no-such-command was not found');
  });

  it('exits at once: the error holds what it said', async () => {
    const error = await failure(
      mcpStdioProvider({
        name: 'broken',
        command: process.execPath,
        args: ['-e', 'console.error("no API key"); process.exit(3)'],
      }),
    );
    expect(error).toMatchObject({ kind: 'transport_error', executed: false, details: { stderr: ['no API key'] } });
    expect(error.message).toBe(
      'The MCP server broken could not be connected: the server exited with code 3; it said: no API key',
    );
  });

  it('never answers: gives up in time and leaves no process', async () => {
    const dir = await mkdtemp(join(tmpdir(), 'spillway-'));
    const file = join(dir, 'pid');
    const script = `require('fs').writeFileSync(${JSON.stringify(file)}, String(process.pid)); process.on('SIGTERM', () => {}); setInterval(() => {}, 1e6)`;
    const error = await failure(
      mcpStdioProvider({ name: 'mute', command: process.execPath, args: ['-e', script], connectTimeoutMs: 400 }),
    );
    const pid = Number(await readFile(file, 'utf8'));
    expect(error.message).toContain('No answer to initialize after 400ms');
    expect(isAlive(pid)).toBe(false);
    await rm(dir, { recursive: true });
  });

  it.each([
    [{ command: '' }, 'command must be'],
    [{ name: '' }, 'name must be'],
    [{ connectTimeoutMs: 0 }, 'connectTimeoutMs must be'],
    [{ stderrLines: -1 }, 'stderrLines must be'],
    [{ maxMessageBytes: 1 }, 'maxMessageBytes must be'],
  ])('%j: a RangeError that says so', async (options, message) => {
    await expect(mcpStdioProvider({ name: 'x', command: 'x', ...options })).rejects.toThrow(new RegExp(message));
  });
});

describe('what a server writes', () => {
  it('lines on stdout that are no messages are passed over', async () => {
    const chatty = `console.log('hello'); console.log('{"not": "a message"}'); await import(${JSON.stringify(EVERYTHING)});`;
    const provider = await everything({ args: ['--input-type=module', '-e', chatty, 'stdio'] });
    expect(await run(provider, 'everything.echo', { message: 'x' })).toBe('Echo: x');
    await provider.close();
  });

  it('the last lines of stderr are kept, and no more', async () => {
    const noisy = 'for (let line = 1; line <= 50; line++) console.error(`line ${line}`); process.exit(1);';
    const error = await failure(
      mcpStdioProvider({ name: 'noisy', command: process.execPath, args: ['-e', noisy], stderrLines: 2 }),
    );
    expect(error.details).toEqual({ stderr: ['line 49', 'line 50'] });
  });

  it('the version it is told is this package’s', async () => {
    const curious =
      'process.stdin.once("data", (line) => { console.error(JSON.parse(line).params.clientInfo.version); process.exit(1); });';
    const error = await failure(
      mcpStdioProvider({ name: 'curious', command: process.execPath, args: ['-e', curious] }),
    );
    const { version } = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8')) as { version: string };
    expect(error.details).toEqual({ stderr: [version] });
  });

  it('a process that left its group and holds its output keeps nobody waiting', async () => {
    const leaver =
      'require("child_process").spawn(process.execPath, ["-e", "setTimeout(() => {}, 40000)"], { detached: true, stdio: "inherit" }); setTimeout(() => process.exit(3), 100);';
    const startMs = performance.now();
    const error = await failure(mcpStdioProvider({ name: 'leaver', command: process.execPath, args: ['-e', leaver] }));
    expect(error.message).toContain('exited with code 3');
    expect(performance.now() - startMs).toBeLessThan(20_000);
  });
});

describe('an answer over the limit', () => {
  it('R-12.2 fails its own call, which is told to ask for less, and no other', async () => {
    const provider = await everything({ maxMessageBytes: 64 * 1024 });
    const { pid } = provider;
    const beside = run(provider, LONG, { duration: 1, steps: 1 });
    const error = await failure(run(provider, 'everything.echo', { message: 'x'.repeat(100_000) }));
    expect(error).toMatchObject({ kind: 'execution_error', classification: 'permanent', uncertain: true });
    expect(error.safeMessage).toMatch(/^The tool ran\. Its answer has 1000\d\d bytes, and 65536 are read at most; ask/);
    expect(JSON.stringify(await beside)).toContain('completed');
    expect(provider.pid).toBe(pid);
    await provider.close();
  });

  it('R-12.2 what is no answer and over the limit ends the connection, which says so', async () => {
    const printer = `console.log('x'.repeat(100_000)); setTimeout(() => {}, 60_000)`;
    const args = ['-e', printer];
    const error = await failure(
      mcpStdioProvider({ name: 'printer', command: process.execPath, args, maxMessageBytes: 64 * 1024 }),
    );
    expect(error).toMatchObject({ kind: 'transport_error' });
    expect(error.message).toContain('a message of 100000 bytes, over the maximum of 65536');
  });

  it('R-12.2 a line without an end ends the connection', async () => {
    const writer = `setInterval(() => process.stdout.write('x'.repeat(10_000)), 1)`;
    const error = await failure(
      mcpStdioProvider({ name: 'writer', command: process.execPath, args: ['-e', writer], maxMessageBytes: 1_024 }),
    );
    expect(error.message).toContain('a line without an end: more than 10240 bytes');
  });
});

describe('what comes in one piece', () => {
  // Was: reports that were read at once with the answer, as by a busy reader, were lost. Now: none is.
  it('R-4.3 progress beside the answer is reported', async () => {
    const provider = await mcpStdioProvider({ name: 'hasty', command: process.execPath, args: ['-e', HASTY] });
    const ctx = context();
    expect(await run(provider, 'hasty.go', {}, ctx)).toBe('done');
    expect(ctx.reports).toEqual([{ progress: 1 }, { progress: 2 }]);
    await provider.close();
  });

  it('R-12.2 an answer before a line without an end counts', async () => {
    const say = HASTY.replace('reports + line(', "params?.name === 'go' ? line(").replace(
      'answers[method](params) })',
      "answers[method](params) }) + 'x'.repeat(20_000) : line({ id, result: answers[method](params) })",
    );
    const provider = await mcpStdioProvider({
      name: 'hasty',
      command: process.execPath,
      args: ['-e', say],
      maxMessageBytes: 1_024,
    });
    expect(await run(provider, 'hasty.go', {})).toBe('done');
    await provider.close();
  });
});
