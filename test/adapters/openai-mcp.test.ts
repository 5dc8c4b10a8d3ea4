import { Agent, MCPServerStdio, getAllMcpTools, run, type MCPServer } from '@openai/agents-core';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { createHarvest, guardMcpServer, type GuardLayerOptions } from 'spillway/adapters/openai-agents';
import { describe, expect, it } from 'vitest';
import { EVERYTHING } from '../providers/support.ts';
import { CANARY, nothingSeen, type ModelCall, type Seen } from './frameworks/kit.ts';
import { server } from './frameworks/mcp.ts';
import { scriptedModel } from './frameworks/openai-agents.ts';
import { mcpServerOf } from './frameworks/openai-mcp.ts';

const once = { retry: { maxAttempts: 1 } };
const ask = async (mcpServer: MCPServer, calls: readonly ModelCall[], signal?: AbortSignal): Promise<Seen> => {
  const seen = nothingSeen();
  const agent = new Agent({
    name: 'test',
    mcpServers: [mcpServer],
    model: scriptedModel({ calls, guarded: true }, seen),
  });
  await run(agent, 'go', signal === undefined ? {} : { signal });
  return seen;
};
const guardedTools = async (options: GuardLayerOptions = {}): Promise<MCPServer> =>
  guardMcpServer(await mcpServerOf(server(nothingSeen())), options);

describe('guardMcpServer for OpenAI Agents', () => {
  it('R-12.3 R-12.4 a failure is told beside its siblings’ results, without a secret', async () => {
    const calls = ['bad', 'good', 'strict'].map((name, n) => ({ id: `c${n}`, name, input: {} }));
    const seen = await ask(await guardedTools({ defaults: once }), calls);
    expect(seen.told.get('c0')).toContain('It may have taken effect');
    expect(seen.told.get('c1')).toContain('fine');
    expect(seen.told.get('c2')).toContain("property 'n'");
    expect(seen.shown).not.toContain(CANARY);
  });

  it('R-2.5 a tool that says it only reads is tried again, unless the host says otherwise', async () => {
    const tries = async (readOnlyHint: boolean, options: GuardLayerOptions = {}): Promise<number> => {
      let ran = 0;
      const inner = new McpServer({ name: 'test', version: '0' });
      const failing = (): never => {
        throw new Error(`down ${++ran}`);
      };
      inner.registerTool('look', { description: 'd', inputSchema: {}, annotations: { readOnlyHint } }, failing);
      const guarded = guardMcpServer(await mcpServerOf(inner), {
        ...options,
        defaults: { retry: { initialDelayMs: 0, maxAttempts: 3 }, ...options.defaults },
      });
      await ask(guarded, [{ id: 'c1', name: 'look', input: {} }]);
      return ran;
    };
    expect([
      await tries(true),
      await tries(false),
      await tries(true, { defaults: { effects: 'mutating' } }),
      await tries(false, { policies: { look: { effects: 'read' } } }),
    ]).toEqual([3, 1, 1, 3]);
  });

  it('R-12.4 a server gone with a payment: its model is told; one gone without: listing fails', async () => {
    const inner = new McpServer({ name: 'test', version: '0' });
    inner.registerTool('pay', { description: 'pays', inputSchema: {} }, async () => {
      await inner.close();
      return { content: [] };
    });
    const guarded = guardMcpServer(await mcpServerOf(inner), { defaults: once });
    const seen = await ask(guarded, [{ id: 'c1', name: 'pay', input: {} }]);
    expect(seen.told.get('c1')).toContain('may have run and taken effect');

    const idle = new McpServer({ name: 'test', version: '0' });
    idle.registerTool('pay', { description: 'pays', inputSchema: {} }, () => ({ content: [] }));
    const lost = guardMcpServer(await mcpServerOf(idle));
    await lost.listTools();
    await idle.close();
    await expect(lost.listTools()).rejects.toThrow(/not connected/i);
  });

  it('R-4.2 a cancel is heard while the server goes on', async () => {
    const controller = new AbortController();
    const inner = new McpServer({ name: 'test', version: '0' });
    inner.registerTool('hang', { description: 'd', inputSchema: {} }, () => {
      controller.abort(new Error('enough'));
      return new Promise<never>(() => undefined);
    });
    const guarded = guardMcpServer(await mcpServerOf(inner));
    const harvest = createHarvest();
    await expect(
      harvest.run(() => ask(guarded, [{ id: 'c1', name: 'hang', input: {} }], controller.signal)),
    ).rejects.toThrow(/enough|abort/i);
    expect(harvest.calls).toMatchObject([
      { framework: 'openai-agents', toolName: 'hang', failure: { kind: 'canceled' } },
    ]);
  });

  it('R-3.8 a breaker opens, and the model is told that the tool rests', async () => {
    const guarded = await guardedTools({ policies: { bad: { ...once, breaker: { failureThreshold: 2 } } } });
    const calls = [{ id: 'c1', name: 'bad', input: {} }];
    for (let n = 0; n < 2; n++) await ask(guarded, calls);
    expect((await ask(guarded, calls)).told.get('c1')).toContain('it was not called');
  });

  it('R-12.2 the whole result is guarded, too, and the rest is the server’s own', async () => {
    const inner = await mcpServerOf(server(nothingSeen()));
    const whole = Object.assign(inner, {
      useStructuredContent: true,
      toolInputGuardrails: [],
      callToolResult: (name: string) =>
        name === 'good'
          ? Promise.resolve({ content: [], structuredContent: { fine: 1 } })
          : Promise.reject(Object.assign(new Error(CANARY), { code: 'ECONNRESET' })),
    });
    const guarded = guardMcpServer(whole, { defaults: once });
    expect(guarded.toolInputGuardrails).toBe(whole.toolInputGuardrails);
    const calls = ['good', 'bad'].map((name, n) => ({ id: `c${n}`, name, input: {} }));
    const seen = await ask(guarded, calls);
    expect(seen.told.get('c0')).toContain('fine');
    expect(seen.told.get('c1')).toContain('may have run');
    expect(seen.shown).not.toContain(CANARY);
  });

  it('R-8.2 the SDK’s own server over stdio works as before', async () => {
    const own = new MCPServerStdio({
      command: process.execPath,
      args: [EVERYTHING, 'stdio'],
      clientSessionTimeoutSeconds: 100,
    });
    const guarded = guardMcpServer(own, { policies: { echo: { effects: 'read' } } });
    await guarded.connect();
    try {
      expect(guarded).toBeInstanceOf(MCPServerStdio);
      expect((await getAllMcpTools([guarded])).length).toBe((await own.listTools()).length);
      const seen = await ask(guarded, [{ id: 'c1', name: 'echo', input: { message: 'hello' } }]);
      expect(seen.told.get('c1')).toContain('hello');
    } finally {
      await guarded.close();
    }
  });

  it('R-2.9 a policy for a tool that the server lacks, and what is no server, are refused', async () => {
    await expect((await guardedTools({ policies: { typo: {} } })).listTools()).rejects.toThrow(/no option "typo"/);
    expect(() => guardMcpServer({ callTool: () => 1 })).toThrow(/has no listTools method/);
  });
});
