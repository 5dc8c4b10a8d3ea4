import { mkdtemp, realpath, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { mcpStdioProvider, type McpStdioProvider } from '../../../src/providers/mcp-stdio.ts';
import { FILESYSTEM, context, everything, failure, kill, run, toolOf, until } from '../support.ts';

const LONG = 'everything.trigger-long-running-operation';

describe('a real server, used by many calls', () => {
  let provider: McpStdioProvider;
  beforeAll(async () => {
    provider = await everything();
  });
  afterAll(() => provider.close());

  it('lists its tools under its name, with schema, dependency and effects', () => {
    const echo = toolOf(provider, 'everything.echo');
    expect(echo).toMatchObject({
      dependency: 'everything',
      policy: { effects: 'read' },
      inputJsonSchema: { type: 'object', required: ['message'] },
    });
    expect(echo.description).toContain('Echoes');
    expect(toolOf(provider, 'everything.toggle-simulated-logging').policy).toEqual({ effects: 'mutating' });
  });

  it('R-7.6 says that it is spoken to through a pipe, for traces', () => {
    expect(provider.mcp).toEqual({ transport: 'pipe' });
  });

  it('leaves a tool out that only runs as a task, and says so', () => {
    expect(provider.leftOut.map(({ toolName }) => toolName)).toEqual(['everything.simulate-research-query']);
    expect(provider.tools.map(({ name }) => name)).not.toContain('everything.simulate-research-query');
  });

  it('a single text is the output as it is', async () => {
    expect(await run(provider, 'everything.echo', { message: '{"a": 1}' })).toBe('Echo: {"a": 1}');
  });

  it('structured content is the output where there is some', async () => {
    expect(await run(provider, 'everything.get-structured-content', { location: 'New York' })).toEqual({
      temperature: 33,
      conditions: 'Cloudy',
      humidity: 82,
    });
  });

  it('several contents are the output as a list', async () => {
    const output = await run(provider, 'everything.get-tiny-image', undefined);
    expect(output).toMatchObject([{ type: 'text' }, { type: 'image' }, { type: 'text' }]);
  });

  it('progress is reported while the tool runs', async () => {
    const ctx = context();
    await run(provider, LONG, { duration: 0.9, steps: 3 }, ctx);
    expect(ctx.reports).toEqual([
      { progress: 1, total: 3 },
      { progress: 2, total: 3 },
      { progress: 3, total: 3 },
    ]);
  });

  it('bad arguments: invalid_parameters, not executed, the text safe to show', async () => {
    const error = await failure(run(provider, 'everything.echo', {}));
    expect(error).toMatchObject({ kind: 'invalid_parameters', executed: false, uncertain: false });
    expect(error.safeMessage).toContain("must have required property 'message'");
  });

  it('an input that is no object: invalid_parameters, and the server is not asked', async () => {
    expect(await failure(run(provider, 'everything.echo', ['x']))).toMatchObject({
      kind: 'invalid_parameters',
      executed: false,
    });
  });

  it('an abort by the caller in mid-call: canceled, uncertain, at once', async () => {
    const controller = new AbortController();
    const work = failure(run(provider, LONG, { duration: 30, steps: 1 }, context(controller.signal)));
    await sleep(100);
    const startMs = performance.now();
    controller.abort(new Error('caller abort'));
    expect(await work).toMatchObject({ kind: 'canceled', executed: true, uncertain: true });
    expect(performance.now() - startMs).toBeLessThan(15_000);
  });

  it('a signal of AbortSignal.timeout: timeout', async () => {
    const error = await failure(run(provider, LONG, { duration: 5, steps: 1 }, context(AbortSignal.timeout(100))));
    expect(error).toMatchObject({ kind: 'timeout', executed: true, uncertain: true });
  });

  it('a signal aborted before the call: canceled, not executed', async () => {
    expect(
      await failure(run(provider, 'everything.echo', { message: 'x' }, context(AbortSignal.abort()))),
    ).toMatchObject({ kind: 'canceled', executed: false, uncertain: false });
  });

  it('50 calls on one signal leave no listener on it', async () => {
    const warnings: Error[] = [];
    const onWarning = (warning: Error): void => void warnings.push(warning);
    process.on('warning', onWarning);
    const { signal } = new AbortController();
    let listeners = 0;
    const add = signal.addEventListener.bind(signal);
    const remove = signal.removeEventListener.bind(signal);
    signal.addEventListener = (...args: Parameters<typeof add>) => (listeners++, add(...args));
    signal.removeEventListener = (...args: Parameters<typeof remove>) => (listeners--, remove(...args));
    for (let call = 0; call < 50; call++) await run(provider, 'everything.echo', { message: 'x' }, context(signal));
    await sleep(10);
    process.off('warning', onWarning);
    expect(listeners).toBe(0);
    expect(warnings).toEqual([]);
  });

  it('20 calls at once each get their own answer', async () => {
    const inputs = Array.from({ length: 20 }, (_, index) => `message ${index}`);
    expect(await Promise.all(inputs.map((message) => run(provider, 'everything.echo', { message })))).toEqual(
      inputs.map((message) => `Echo: ${message}`),
    );
  });
});

describe('the environment of a server', () => {
  let provider: McpStdioProvider | undefined;
  afterEach(() => provider?.close());

  it('a secret of ours is not in it; what was given is', async () => {
    process.env['SPILLWAY_TEST_SECRET'] = 'do not pass on';
    provider = await everything({ env: { GIVEN: 'passed on' } });
    delete process.env['SPILLWAY_TEST_SECRET'];
    const env: unknown = JSON.parse(String(await run(provider, 'everything.get-env', {})));
    expect(env).toMatchObject({ GIVEN: 'passed on', PATH: process.env['PATH'] });
    expect(env).not.toHaveProperty('SPILLWAY_TEST_SECRET');
  });
});

describe('a server that is killed', () => {
  let provider: McpStdioProvider;
  afterEach(() => provider.close());

  it('in mid-call: transport_error, uncertain, within a moment, and the next call starts it again', async () => {
    provider = await everything();
    const { pid } = provider;
    const work = failure(run(provider, LONG, { duration: 20, steps: 1 }));
    await sleep(200);
    const startMs = performance.now();
    kill(pid);
    const error = await work;
    expect(performance.now() - startMs).toBeLessThan(15_000);
    expect(error).toMatchObject({ kind: 'transport_error', executed: true, uncertain: true });
    expect(error.message).toContain('ended by SIGKILL');
    expect(error.details).toEqual({ stderr: ['Starting default (STDIO) server...'] });
    expect(await run(provider, 'everything.echo', { message: 'again' })).toBe('Echo: again');
    expect(provider.pid).not.toBe(pid);
  });

  it('between calls, twice in a row: the second restart waits, and calls fail at once until then, not executed', async () => {
    provider = await everything();
    kill(provider.pid);
    await until(() => provider.pid === undefined);
    const work = failure(run(provider, LONG, { duration: 20, steps: 1 }));
    await until(() => provider.pid !== undefined);
    kill(provider.pid);
    expect(await work).toMatchObject({ kind: 'transport_error' });
    const refused = await failure(run(provider, 'everything.echo', { message: 'x' }));
    expect(refused).toMatchObject({ kind: 'transport_error', executed: false, uncertain: false });
    expect(refused.retryAfterMs).toBeGreaterThan(0);
    expect(refused.retryAfterMs).toBeLessThanOrEqual(1_000);
    await sleep(refused.retryAfterMs ?? 0);
    expect(await run(provider, 'everything.echo', { message: 'back' })).toBe('Echo: back');
  });
});

describe('the filesystem server', () => {
  let provider: McpStdioProvider;
  let dir: string;
  beforeAll(async () => {
    dir = await realpath(await mkdtemp(join(tmpdir(), 'spillway-')));
    await writeFile(join(dir, 'a.txt'), 'hello');
    provider = await mcpStdioProvider({ name: 'files', command: process.execPath, args: [FILESYSTEM, dir] });
  });
  afterAll(async () => {
    await provider.close();
    await rm(dir, { recursive: true });
  });

  it('reading is read, writing is mutating', () => {
    expect(toolOf(provider, 'files.read_text_file').policy).toEqual({ effects: 'read' });
    expect(toolOf(provider, 'files.write_file').policy).toEqual({ effects: 'mutating' });
  });

  it('a file that is there is read', async () => {
    expect(await run(provider, 'files.read_text_file', { path: join(dir, 'a.txt') })).toEqual({ content: 'hello' });
  });

  it('a missing file: execution_error, executed, permanent', async () => {
    expect(await failure(run(provider, 'files.read_text_file', { path: join(dir, 'none.txt') }))).toMatchObject({
      kind: 'execution_error',
      executed: true,
      classification: 'permanent',
    });
  });

  it('a path outside: execution_error, permanent', async () => {
    expect(await failure(run(provider, 'files.read_text_file', { path: '/etc/hostname' }))).toMatchObject({
      kind: 'execution_error',
      executed: true,
      classification: 'permanent',
    });
  });
});
