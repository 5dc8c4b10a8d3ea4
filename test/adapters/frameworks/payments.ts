import type Anthropic from '@anthropic-ai/sdk';
import { betaZodTool } from '@anthropic-ai/sdk/helpers/beta/zod';
import { Client as Client2 } from '@modelcontextprotocol/client';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { InMemoryTransport } from '@modelcontextprotocol/sdk/inMemory.js';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { Agent, run, tool, type Tool } from '@openai/agents-core';
import { dynamicTool, generateText, stepCountIs } from 'ai';
import { guardTools as guardAiSdk } from 'spillway/adapters/ai-sdk';
import { guardTools as guardAnthropic } from 'spillway/adapters/anthropic';
import { spillwayMiddleware } from 'spillway/adapters/langchain';
import { guardClient } from 'spillway/adapters/mcp';
import { guardTool, guardTools as guardOpenai } from 'spillway/adapters/openai-agents';
import { z } from 'zod';
import type { GuardLayerOptions } from '../../../src/adapters/guarded/calls.ts';
import { scriptedModel as aiSdkModel } from './ai-sdk.ts';
import { PAYING_BESIDE } from './all.ts';
import { scriptedClient } from './anthropic.ts';
import { nothingSeen, type Pay, type PayingFramework, type Script } from './kit.ts';
import { loadLangChain, scriptedModel as langChainModel } from './langchain.ts';
import { scriptedModel as openaiModel } from './openai-agents.ts';
import { openaiMcpPaying } from './openai-mcp.ts';

export type { Pay, PayingFramework } from './kit.ts';

const SCRIPT: Script = { calls: [{ id: 'c1', name: 'pay', input: {} }], guarded: true };
const parameters = z.object({});
const described = { name: 'pay', description: 'pays', parameters } as const;

const aiSdk: PayingFramework = {
  name: 'AI SDK',
  pay: (execute, options) =>
    generateText({
      model: aiSdkModel(SCRIPT, nothingSeen()),
      tools: guardAiSdk({ pay: dynamicTool({ inputSchema: parameters, execute }) }, options),
      prompt: 'go',
      stopWhen: stepCountIs(3),
      maxRetries: 0,
    }),
};

const anthropic: PayingFramework = {
  name: 'Anthropic tool runner',
  pay: (execute, options) => {
    const tools = guardAnthropic(
      [betaZodTool({ name: 'pay', description: 'pays', inputSchema: parameters, run: execute })],
      options,
    );
    const client: Anthropic = scriptedClient(SCRIPT, nothingSeen());
    return client.beta.messages
      .toolRunner({
        model: 'scripted',
        max_tokens: 10,
        thread: false,
        messages: [{ role: 'user', content: 'go' }],
        tools,
      })
      .runUntilDone();
  },
};

const openai = (name: string, toolOf: (execute: Pay, options: GuardLayerOptions) => Tool): PayingFramework => ({
  name: `OpenAI Agents, ${name}`,
  pay: async (execute, options) =>
    run(
      new Agent({ name: 'test', tools: [toolOf(execute, options)], model: openaiModel(SCRIPT, nothingSeen()) }),
      'go',
    ),
});

const only = <T>([first]: readonly T[]): T => {
  if (first === undefined) throw new Error('no tool was given');
  return first;
};

const langChain: PayingFramework = {
  name: 'LangChain',
  pay: async (execute, options) => {
    const lc = await loadLangChain();
    const middleware = [lc.createMiddleware(spillwayMiddleware({ ToolMessage: lc.ToolMessage, ...options }))];
    const tools = [lc.tool(execute, { name: 'pay', description: 'pays', schema: parameters })];
    return lc
      .createAgent({ model: langChainModel(lc, SCRIPT, nothingSeen()), tools, middleware })
      .invoke({ messages: [{ role: 'user', content: 'go' }] });
  },
};

interface McpClient {
  connect(transport: never): Promise<void>;
  callTool(params: { name: string; arguments: Record<string, unknown> }): Promise<unknown>;
}

const mcp = (name: string, made: () => McpClient): PayingFramework => ({
  name,
  pay: async (execute, options) => {
    const server = new McpServer({ name: 'test', version: '0' });
    server.registerTool('pay', { description: 'pays', inputSchema: {} }, async () => ({
      content: [{ type: 'text', text: await execute() }],
    }));
    const [ours, theirs] = InMemoryTransport.createLinkedPair();
    const client = made();
    // The transports of both generations are the same but for the types of their messages.
    await Promise.all([client.connect(ours as never), server.connect(theirs)]);
    return guardClient(client, options).callTool({ name: 'pay', arguments: {} });
  },
});

/** Every framework with its real package, and `pay` in it as one makes a tool there. */
export const PAYING: readonly PayingFramework[] = [
  aiSdk,
  anthropic,
  openai('a tool made as most are', (execute, options) =>
    only(guardOpenai<Tool>([tool({ ...described, execute })], options)),
  ),
  openai('with errorFunction: null', (execute, options) =>
    only(guardOpenai<Tool>([tool({ ...described, execute, errorFunction: null })], options)),
  ),
  openai('made by a guarded tool()', (execute, { policies, ...options }) => {
    const policy = policies?.['pay'];
    return guardTool(tool, { ...options, ...(policy === undefined ? {} : { policy }) })({ ...described, execute });
  }),
  langChain,
  mcp('MCP client 1.x', () => new Client({ name: 'test', version: '0' })),
  mcp('MCP client 2.x', () => new Client2({ name: 'test', version: '0' })),
  openaiMcpPaying,
  ...PAYING_BESIDE,
];
