import { Client } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { mcpConnection, mcpProvider, type McpProvider } from '../../../src/providers/mcp.ts';
import { EVERYTHING, context, failure, kill, run } from '../support.ts';

const LONG = 'everything.trigger-long-running-operation';

describe('the client of SDK 2 on a real server', () => {
  let provider: McpProvider;
  let pid: number | null = null;
  beforeAll(async () => {
    provider = await mcpProvider({
      name: 'everything',
      connect: async () => {
        const transport = new StdioClientTransport({
          command: process.execPath,
          args: [EVERYTHING, 'stdio'],
          stderr: 'ignore',
        });
        const client = new Client({ name: 'test', version: '0' });
        await client.connect(transport);
        ({ pid } = transport);
        return mcpConnection(client);
      },
    });
  });
  afterAll(() => provider.close());

  it('lists the tools', () => {
    expect(provider.tools.map(({ name }) => name)).toContain('everything.echo');
    expect(provider.leftOut.map(({ toolName }) => toolName)).toEqual(['everything.simulate-research-query']);
  });

  it('answers', async () => {
    expect(await run(provider, 'everything.echo', { message: 'hi' })).toBe('Echo: hi');
    expect(await run(provider, 'everything.get-structured-content', { location: 'New York' })).toMatchObject({
      temperature: 33,
    });
  });

  it('progress arrives: its options are where this client looks for them', async () => {
    const ctx = context();
    await run(provider, LONG, { duration: 0.8, steps: 2 }, ctx);
    // The last report may come in one piece with the answer, and is dropped then.
    expect(ctx.reports[0]).toEqual({ progress: 1, total: 2 });
  });

  it('an abort by the caller: canceled', async () => {
    const controller = new AbortController();
    const work = failure(run(provider, LONG, { duration: 5, steps: 1 }, context(controller.signal)));
    await sleep(100);
    controller.abort();
    expect(await work).toMatchObject({ kind: 'canceled', executed: true, uncertain: true });
  });

  it('bad arguments: invalid_parameters, not executed', async () => {
    expect(await failure(run(provider, 'everything.echo', {}))).toMatchObject({
      kind: 'invalid_parameters',
      executed: false,
    });
  });

  it('killed in mid-call: transport_error, uncertain; then it starts again', async () => {
    const work = failure(run(provider, LONG, { duration: 20, steps: 1 }));
    await sleep(200);
    kill(pid);
    expect(await work).toMatchObject({ kind: 'transport_error', executed: true, uncertain: true });
    expect(await run(provider, 'everything.echo', { message: 'again' })).toBe('Echo: again');
  });
});
