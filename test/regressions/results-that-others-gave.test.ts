// Was: what an earlier call of a key had given, or an alternative, ended LangChain's and Strands' runs, was told as
// JSON of a message, or went to another call of Genkit's; and a tool that had paused under a key was taken for done.
// Now: the model is told it as a result of its own call, and a tool that paused runs once it is called again. A harvest
// took a pause for a success, too.
import { betaZodTool } from '@anthropic-ai/sdk/helpers/beta/zod';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { createSpillway, tool, type Spillway } from 'spillway';
import { guardTools as guardAnthropic } from 'spillway/adapters/anthropic';
import { createHarvest } from 'spillway/adapters/function';
import { guardTools as guardClaude } from 'spillway/adapters/claude-agent';
import { spillwayMiddleware as genkitMiddleware } from 'spillway/adapters/genkit';
import { guardTools as guardLangChain, spillwayMiddleware } from 'spillway/adapters/langchain';
import { guardMcpServer } from 'spillway/adapters/openai-agents';
import { guardTools as guardStrands } from 'spillway/adapters/strands';
import { Agent, run } from '@openai/agents-core';
import { beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import type { GuardLayerOptions } from '../../src/adapters/guarded/calls.ts';
import { loadAll } from '../adapters/frameworks/all.ts';
import { scriptedClient } from '../adapters/frameworks/anthropic.ts';
import { APPROVING } from '../adapters/frameworks/approvals.ts';
import { claudeOf, loadClaudeAgent } from '../adapters/frameworks/claude-agent.ts';
import { loadGenkit, scriptedAi } from '../adapters/frameworks/genkit.ts';
import { nothingSeen, type Pay, type Script, type Seen } from '../adapters/frameworks/kit.ts';
import { loadLangChain, scriptedModel, type LangChain } from '../adapters/frameworks/langchain.ts';
import { runAll } from '../adapters/frameworks/mcp.ts';
import { scriptedModel as openaiModel } from '../adapters/frameworks/openai-agents.ts';
import { mcpServerOf } from '../adapters/frameworks/openai-mcp.ts';
import { loadStrands, scriptedStrands } from '../adapters/frameworks/strands.ts';
import { graphOf } from '../adapters/frameworks/tool-node.ts';
import { SIDE_INSTALL_TIMEOUT_MS } from '../side-install.ts';

beforeAll(loadAll, SIDE_INSTALL_TIMEOUT_MS);

const SCRIPT: Script = { calls: ['c1', 'c2'].map((id) => ({ id, name: 'pay', input: {} })), guarded: true };
const GO = { messages: [{ role: 'user', content: 'go' }] };
const schema = z.object({});

/** A model of the framework calls `pay` twice, and is told what came of it. */
type Telling = (pay: Pay, guard: GuardLayerOptions, seen: Seen) => Promise<unknown>;

const langChainTool = (lc: LangChain, pay: Pay): object => lc.tool(pay, { name: 'pay', description: 'pays', schema });
const toolNode =
  (withClass: boolean): Telling =>
  async (pay, guard, seen) => {
    const lc = await loadLangChain();
    const options = withClass ? { ToolMessage: lc.ToolMessage, ...guard } : guard;
    return graphOf(lc, SCRIPT, seen, guardLangChain([langChainTool(lc, pay)], options)).invoke(GO);
  };

const TELLING: Readonly<Record<string, Telling>> = {
  'LangChain `createAgent`': async (pay, guard, seen) => {
    const lc = await loadLangChain();
    const middleware = [lc.createMiddleware(spillwayMiddleware({ ToolMessage: lc.ToolMessage, ...guard }))];
    const model = scriptedModel(lc, SCRIPT, seen);
    return lc.createAgent({ model, tools: [langChainTool(lc, pay)], middleware }).invoke(GO);
  },
  'LangGraph `ToolNode`': toolNode(true),
  'LangGraph `ToolNode`, without ToolMessage': toolNode(false),
  Genkit: async (pay, guard, seen) => {
    const genkit = await loadGenkit();
    const ai = scriptedAi(genkit, SCRIPT, seen);
    const own = ai.defineTool({ name: 'pay', description: 'pays', inputSchema: genkit.z.object({}) }, pay);
    const use = [genkitMiddleware({ generateMiddleware: genkit.generateMiddleware, ...guard })()];
    return ai.generate({ model: ai.model, prompt: 'go', tools: [own], use });
  },
  'Strands, a finished tool': async (pay, guard, seen) => {
    const strands = await loadStrands();
    const own = strands.tool({ name: 'pay', description: 'pays', inputSchema: schema, callback: pay });
    const model = scriptedStrands(strands, SCRIPT, seen);
    return new strands.Agent({ model, tools: guardStrands([own], guard), printer: false }).invoke('go');
  },
  'Claude Agent SDK': async (pay, guard, seen) => {
    const sdk = await loadClaudeAgent();
    const own = sdk.tool('pay', 'pays', {}, async () => ({ content: [{ type: 'text', text: await pay() }] }));
    const client = await claudeOf(sdk, guardClaude([own], guard));
    return runAll(SCRIPT.calls, {}, () => client.callTool({ name: 'pay', arguments: {} }), seen);
  },
  'OpenAI Agents, `mcpServers`': async (pay, guard, seen) => {
    const bank = new McpServer({ name: 'bank', version: '0' });
    const paid = async (): Promise<object> => ({ content: [{ type: 'text', text: await pay() }] });
    bank.registerTool('pay', { inputSchema: {} }, paid as never);
    const mcpServers = [guardMcpServer(await mcpServerOf(bank), guard)];
    return run(new Agent({ name: 'test', mcpServers, model: openaiModel(SCRIPT, seen) }), 'go');
  },
  'Anthropic tool runner': (pay, guard, seen) => {
    const own = betaZodTool({ name: 'pay', description: 'pays', inputSchema: schema, run: pay });
    const given = { model: 'scripted', max_tokens: 10, thread: false } as const;
    const messages = [{ role: 'user' as const, content: 'go' }];
    return scriptedClient(SCRIPT, seen)
      .beta.messages.toolRunner({ ...given, messages, tools: guardAnthropic([own], guard) })
      .runUntilDone();
  },
};

/** Its host names each call by a hook: one that comes twice is made once. */
const keyed = (keyOf: (toolName: string, toolCallId: string | undefined) => string): Spillway =>
  createSpillway({
    hooks: { prepareCall: ({ toolName, toolCallId }) => ({ idempotencyKey: keyOf(toolName, toolCallId) }) },
  });

/** An object, of which no framework knows what it is. */
const BACKUP = tool({ name: 'backup', policy: { effects: 'read' }, execute: () => ({ by: 'backup' }) });

describe.each(Object.entries(TELLING))('%s', (name, telling) => {
  it('R-9.4 R-12.3 two calls of one key pay once, and both are answered with what that gave', async () => {
    const seen = nothingSeen();
    let paid = 0;
    await telling(() => Promise.resolve(`paid ${++paid}`), { spillway: keyed((toolName) => toolName) }, seen);
    expect(paid).toBe(1);
    expect([...seen.told.keys()].toSorted()).toEqual(['c1', 'c2']);
    expect(new Set(seen.told.values()).size).toBe(1);
    expect(seen.told.get('c2')).toContain('paid 1');
    expect(seen.told.get('c2')).not.toContain('kwargs');
  });

  it('R-6.2 R-12.3 what an alternative gave is told as the tool’s result', async () => {
    const seen = nothingSeen();
    const down = (): Promise<string> =>
      Promise.reject(Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' }));
    const pay = { effects: 'read', retry: { maxAttempts: 1 }, alternatives: ['backup'] } as const;
    await telling(down, { spillway: createSpillway({ tools: [BACKUP] }), policies: { pay } }, seen);
    // Of Genkit's results any value is one; all others take texts.
    const told = name === 'Genkit' ? '{"by":"backup"}' : String.raw`{\"by\":\"backup\"}`;
    expect([...seen.told.values()].map((text) => text.includes(told))).toEqual([true, true]);
  });
});

describe('a tool that paused', () => {
  it.each(APPROVING)('R-12.3 %s: a harvest keeps no success of it', async (_name, approving) => {
    const harvest = createHarvest();
    await harvest.run(() => approving(() => Promise.resolve('paid'), {}));
    expect(harvest.calls.filter(({ state }) => state === 'succeeded')).toEqual([]);
  });

  it.each(APPROVING)('R-9.4 R-22.1 %s: asked once, and paid once it was approved', async (_name, approving) => {
    let paid = 0;
    const { asked, approve } = await approving(() => Promise.resolve(`paid ${++paid}`), {
      spillway: keyed((name) => name),
    });
    expect([asked, paid]).toEqual([1, 0]);
    await approve();
    expect(paid).toBe(1);
  });

  it('R-9.4 LangGraph: a node that runs again after an interrupt pays once where its calls have keys', async () => {
    const lc = (await loadLangChain()) as LangChain & { readonly MemorySaver: new () => object };
    for (const spillway of [undefined, keyed((name, id = '') => `${name} ${id}`)]) {
      let paid = 0;
      const ask = (): unknown => lc.interrupt('may I?');
      const own = [
        langChainTool(lc, () => Promise.resolve(`paid ${++paid}`)),
        lc.tool(ask, { name: 'ask', description: 'asks', schema }),
      ];
      const tools = spillway === undefined ? own : guardLangChain(own, { ToolMessage: lc.ToolMessage, spillway });
      const calls = ['pay', 'ask'].map((name) => ({ id: `of ${name}`, name, input: {} }));
      const seen = nothingSeen();
      const compile = { checkpointer: new lc.MemorySaver() };
      const graph = graphOf(lc, { calls, guarded: true }, seen, tools, { compile });
      const config = { configurable: { thread_id: 't1' } };
      await graph.invoke(GO, config);
      await graph.invoke(new lc.Command({ resume: 'yes' }), config);
      // Alone, and without keys, LangGraph makes all calls of the node once more.
      expect(paid).toBe(spillway === undefined ? 2 : 1);
      expect([...seen.told]).toEqual([
        ['of pay', `"paid ${paid}"`],
        ['of ask', '"yes"'],
      ]);
    }
  });
});
