import { spawn, type ChildProcess } from 'node:child_process';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { mcpHttpProvider } from '../../../src/providers/mcp-http.ts';
import type { McpProvider } from '../../../src/providers/mcp.ts';
import { freePort } from '../../free-port.ts';
import { EVERYTHING, context, failure, run, until } from '../support.ts';

const LONG = 'everything.trigger-long-running-operation';

const start = async (port: number): Promise<ChildProcess> => {
  const child = spawn(process.execPath, [EVERYTHING, 'streamableHttp'], {
    env: { ...process.env, PORT: String(port) },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let said = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => (said += text));
  await until(() => said.includes('listening') || child.exitCode !== null);
  if (child.exitCode !== null) throw new Error(`the server did not start: ${said}`);
  return child;
};

const stop = async (child: ChildProcess): Promise<void> => {
  child.kill('SIGKILL');
  await until(() => child.exitCode !== null || child.signalCode !== null);
};

describe('the everything server over HTTP', () => {
  let port = 0;
  let child: ChildProcess;
  let provider: McpProvider;
  beforeAll(async () => {
    port = await freePort();
    child = await start(port);
    provider = await mcpHttpProvider({ name: 'everything', url: `http://127.0.0.1:${port}/mcp` });
  });
  afterAll(async () => {
    await provider.close();
    await stop(child);
  });

  it('R-12.2 lists its tools, and answers', async () => {
    expect(provider.tools.map(({ name }) => name)).toContain('everything.echo');
    expect(provider.leftOut.map(({ toolName }) => toolName)).toEqual(['everything.simulate-research-query']);
    expect(await run(provider, 'everything.echo', { message: 'hi' })).toBe('Echo: hi');
    expect(await run(provider, 'everything.get-structured-content', { location: 'New York' })).toMatchObject({
      temperature: 33,
    });
  });

  it('R-7.6 says over which session it is spoken to, for traces', async () => {
    const before = provider.mcp;
    expect(before).toEqual({ transport: 'tcp', id: expect.stringMatching(/^[\da-f-]{36}$/) as string });
    await run(provider, 'everything.echo', { message: 'hi' });
    expect(provider.mcp).toEqual(before);
  });

  it('R-12.2 checks input before it is sent', async () => {
    const error = await failure(run(provider, 'everything.echo', {}));
    expect(error).toMatchObject({
      kind: 'invalid_parameters',
      executed: false,
      safeMessage: `${error.message}. Do not try again with the same input: correct it first.`,
    });
    expect(error.message).toContain("must have required property 'message'");
    expect(provider.unchecked).toEqual([]);
  });

  it('progress arrives, an abort cancels', async () => {
    const ctx = context();
    await run(provider, LONG, { duration: 0.6, steps: 3 }, ctx);
    expect(ctx.reports[0]).toMatchObject({ progress: 1, total: 3 });
    const controller = new AbortController();
    const work = failure(
      run(
        provider,
        LONG,
        { duration: 20, steps: 20 },
        { ...context(controller.signal), progress: () => controller.abort() },
      ),
    );
    expect(await work).toMatchObject({ kind: 'canceled', executed: true, uncertain: true });
  });

  it('killed in mid-call and started again: transport_error, uncertain; the old session is refused; then a new one', async () => {
    const work = failure(run(provider, LONG, { duration: 30, steps: 1 }));
    // Sent after it, and answered: so it has begun.
    await run(provider, LONG, { duration: 0.2, steps: 1 });
    await stop(child);
    expect(await work).toMatchObject({ kind: 'transport_error', executed: true, uncertain: true });
    child = await start(port);
    expect(await failure(run(provider, 'everything.echo', { message: 'old' }))).toMatchObject({
      kind: 'transport_error',
      executed: false,
    });
    expect(await run(provider, 'everything.echo', { message: 'new' })).toBe('Echo: new');
  });
});
