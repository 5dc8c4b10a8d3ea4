import { Agent, run, type MCPServer } from '@openai/agents-core';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { InMemoryTransport } from '@modelcontextprotocol/sdk/inMemory.js';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { guardMcpServer } from 'spillway/adapters/openai-agents';
import {
  TIMEOUT_MS,
  defaultsOf,
  nothingSeen,
  type Framework,
  type PayingFramework,
  type Script,
  type Seen,
} from './kit.ts';
import { server } from './mcp.ts';
import { scriptedModel } from './openai-agents.ts';

/** A server of the SDK's kind, before a real MCP server in this process. */
export async function mcpServerOf(inner: McpServer, timeoutMs = 60_000): Promise<MCPServer> {
  const [ours, theirs] = InMemoryTransport.createLinkedPair();
  const client = new Client({ name: 'test', version: '0' });
  await Promise.all([client.connect(ours), inner.connect(theirs)]);
  return {
    name: 'test',
    cacheToolsList: false,
    connect: () => Promise.resolve(),
    close: () => client.close(),
    invalidateToolsCache: () => Promise.resolve(),
    listTools: async () => (await client.listTools()).tools as Awaited<ReturnType<MCPServer['listTools']>>,
    callTool: async (name, args, _meta, options) => {
      const { content, isError } = await client.callTool({ name, arguments: args ?? {} }, undefined, {
        timeout: timeoutMs,
        ...options,
      });
      // As the SDK's own servers do.
      return Object.defineProperty(content as [], 'isError', { value: isError });
    },
  };
}

const runWith = (script: Script, seen: Seen, mcpServer: MCPServer): Promise<unknown> => {
  const agent = new Agent({ name: 'test', mcpServers: [mcpServer], model: scriptedModel(script, seen) });
  const notFound = script.guarded ? { toolNotFoundBehavior: 'return_error_to_model' as const } : {};
  return run(agent, 'go', { ...notFound, ...(script.signal === undefined ? {} : { signal: script.signal }) });
};

export const openaiMcp: Framework = {
  name: 'OpenAI Agents 0.20 `mcpServers`',
  entry: 'openai-agents: guardMcpServer(server)',
  run: async (script, seen) => {
    const plain = await mcpServerOf(server(seen), script.guarded ? undefined : (script.timeoutMs ?? TIMEOUT_MS));
    return runWith(script, seen, script.guarded ? guardMcpServer(plain, { defaults: defaultsOf(script) }) : plain);
  },
};

export const openaiMcpPaying: PayingFramework = {
  name: 'OpenAI Agents, mcpServers',
  pay: async (execute, options) => {
    const inner = new McpServer({ name: 'test', version: '0' });
    inner.registerTool('pay', { description: 'pays', inputSchema: {} }, async () => ({
      content: [{ type: 'text', text: await execute() }],
    }));
    const guarded = guardMcpServer(await mcpServerOf(inner), options);
    return runWith({ calls: [{ id: 'c1', name: 'pay', input: {} }], guarded: true }, nothingSeen(), guarded);
  },
};
