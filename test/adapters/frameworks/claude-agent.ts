import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { InMemoryTransport } from '@modelcontextprotocol/sdk/inMemory.js';
import { guardTools } from 'spillway/adapters/claude-agent';
import { z } from 'zod';
import { sideInstall } from '../../side-install.ts';
import { PACKAGES } from './packages.ts';
import { BEHAVIOUR, behave, defaultsOf, once, type Framework, type PayingFramework, type Seen } from './kit.ts';
import { runAll } from './mcp.ts';

/** As much of the SDK's types as is used here: it is not in the main install. */
export interface ClaudeTool {
  readonly name: string;
  readonly annotations?: object;
  handler(input: unknown, extra: unknown): Promise<object>;
}
interface ToolExtras {
  readonly annotations?: { readonly readOnlyHint?: boolean };
}
export interface ClaudeAgent {
  tool(
    name: string,
    description: string,
    schema: object,
    handler: (input: unknown, extra: { readonly signal: AbortSignal }) => Promise<object>,
    extras?: ToolExtras,
  ): ClaudeTool;
  createSdkMcpServer(options: { readonly name: string; readonly tools: readonly ClaudeTool[] }): {
    readonly instance: { connect(transport: unknown): Promise<void> };
  };
}

/** Without the command, which is a program of its own for each platform: Claude's side of the wire is an MCP client. */
export const loadClaudeAgent: () => Promise<ClaudeAgent> = once(async () => {
  const load = await sideInstall(...PACKAGES.claudeAgent);
  return (await load('@anthropic-ai/claude-agent-sdk')) as ClaudeAgent;
});

/** Where the command tells the id of its model's call: `claude-command.test.ts` sees it do so. */
const CALL_ID = 'claudecode/toolUseId';

/** What the command does with the server of the SDK: it calls its tools as an MCP client. */
export async function claudeOf({ createSdkMcpServer }: ClaudeAgent, tools: readonly ClaudeTool[]): Promise<Client> {
  const [ours, theirs] = InMemoryTransport.createLinkedPair();
  const client = new Client({ name: 'claude', version: '0' });
  await Promise.all([client.connect(ours), createSdkMcpServer({ name: 'test', tools }).instance.connect(theirs)]);
  return client;
}

const toolsOf = ({ tool }: ClaudeAgent, seen: Seen): ClaudeTool[] =>
  Object.keys(BEHAVIOUR).map((name) =>
    tool(name, 'a tool of the test', name === 'strict' ? { n: z.number() } : {}, async (_input, { signal }) => ({
      content: [{ type: 'text', text: await behave(name, seen, signal) }],
    })),
  );

export function claudeAgentWith(sdk: ClaudeAgent): Framework {
  return {
    name: 'Claude Agent SDK 0.3 `tool` handlers',
    entry: 'claude-agent: guardTools(tools)',
    run: async (script, seen) => {
      const own = toolsOf(sdk, seen);
      const client = await claudeOf(sdk, script.guarded ? guardTools(own, { defaults: defaultsOf(script) }) : own);
      // Its own limit, a minute, is the client's; on its own the handler has none.
      const call = (made: { id: string; name: string; input: unknown }): Promise<unknown> =>
        client.callTool(
          { name: made.name, arguments: made.input as Record<string, unknown>, _meta: { [CALL_ID]: made.id } },
          undefined,
          script.signal && { signal: script.signal },
        );
      await runAll(script.calls, script.signal === undefined ? {} : { signal: script.signal }, call, seen);
    },
  };
}

export const claudeAgentPaying: PayingFramework = {
  name: 'Claude Agent SDK',
  pay: async (execute, options) => {
    const sdk = await loadClaudeAgent();
    const pay = sdk.tool('pay', 'pays', {}, async () => ({ content: [{ type: 'text', text: await execute() }] }));
    const client = await claudeOf(sdk, guardTools([pay], options));
    return client.callTool({ name: 'pay', arguments: {}, _meta: { [CALL_ID]: 'c1' } });
  },
};
