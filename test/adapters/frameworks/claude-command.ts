import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { from, lastValueFrom } from 'rxjs';
import {
  messagesServer,
  streamed,
  type Block,
  type MessagesServer,
  type WireRequest,
} from '../../agent/messages-server.ts';
import { sideInstall } from '../../side-install.ts';
import type { ClaudeAgent, ClaudeTool } from './claude-agent.ts';
import { once, type ModelCall } from './kit.ts';
import { PACKAGES } from './packages.ts';

/** A person's answer, as `canUseTool` gives it. */
export type Permission =
  | { readonly behavior: 'allow'; readonly updatedInput: Record<string, unknown> }
  | { readonly behavior: 'deny'; readonly message: string };
export type CanUseTool = (
  toolName: string,
  input: Record<string, unknown>,
  options: { readonly toolUseID: string },
) => Promise<Permission>;

interface ClaudeCommand extends ClaudeAgent {
  query(asked: { readonly prompt: string; readonly options: object }): AsyncIterable<unknown>;
}

const [NAME, WANTED] = PACKAGES.claudeAgent;

/** With the command, a program of 381 MB for each platform: what is optional is installed, too. */
export const loadClaudeCommand: () => Promise<ClaudeCommand> = once(async () => {
  const load = await sideInstall(`${NAME}-command`, WANTED);
  return (await load('@anthropic-ai/claude-agent-sdk')) as ClaudeCommand;
});

const resultsIn = ({ messages }: WireRequest): Block[] =>
  messages.flatMap(({ content }) =>
    typeof content === 'string' ? [] : content.filter(({ type }) => type === 'tool_result'),
  );

/** The model makes all its calls in its first step, of tools of the server `bank`, and answers in its second. */
const scripted = (server: MessagesServer, calls: readonly ModelCall[], told: Map<string, string>): void =>
  server.answer((request) => {
    const results = resultsIn(request);
    for (const { tool_use_id: id, ...result } of results) told.set(String(id), JSON.stringify(result));
    if (results.length > 0) return streamed([{ type: 'text', text: 'done' }], 'end_turn');
    const uses = calls.map(({ id, name, input }) => ({ type: 'tool_use', id, name: `mcp__bank__${name}`, input }));
    return streamed(uses, 'tool_use');
  });

/**
 * Runs the real command over the real SDK, as a host does: its model is scripted, and nothing of this machine's own
 * settings is read. Gives the results that the model was sent, by the ids of its calls.
 */
export async function askClaude(
  tools: readonly ClaudeTool[],
  calls: readonly ModelCall[],
  canUseTool: CanUseTool,
): Promise<ReadonlyMap<string, string>> {
  const { createSdkMcpServer, query } = await loadClaudeCommand();
  const home = mkdtempSync(join(tmpdir(), 'claude-home-'));
  const server = await messagesServer();
  const results = new Map<string, string>();
  scripted(server, calls, results);
  const env = {
    PATH: process.env['PATH'],
    HOME: home,
    CLAUDE_CONFIG_DIR: home,
    ANTHROPIC_BASE_URL: server.url,
    ANTHROPIC_API_KEY: 'none',
    // The model is given the tools themselves, and not one that looks for them.
    ENABLE_TOOL_SEARCH: 'false',
    DISABLE_TELEMETRY: '1',
    CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
  };
  const mcpServers = { bank: createSdkMcpServer({ name: 'bank', tools }) };
  const options = { mcpServers, canUseTool, env, cwd: home, tools: [], settingSources: [], model: 'm', maxTurns: 4 };
  try {
    await lastValueFrom(from(query({ prompt: 'go', options })));
    return results;
  } finally {
    await server.close();
    rmSync(home, { recursive: true, force: true });
  }
}
