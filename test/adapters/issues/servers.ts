import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { createSpillway, type ToolResultEnvelope } from 'spillway';
import { guardClient } from 'spillway/adapters/mcp';
import { mcpStdioProvider } from 'spillway/providers/mcp-stdio';
import { NODE, faults, ledger } from '../../mcp-proxy/kit.ts';
import { behind } from '../../mcp-proxy/wire-kit.ts';
import { EVERYTHING, kill } from '../../providers/support.ts';
import type { Issue } from './kit.ts';

const INFO = { name: 'test', version: '1' };
const connected = async (command: string, args: readonly string[]): Promise<Client> => {
  const client = new Client(INFO);
  await client.connect(new StdioClientTransport({ command, args: [...args], stderr: 'ignore' }));
  return client;
};
const pidIn = (result: unknown): number => Number(/"(\d+)"/.exec(JSON.stringify(result))?.[1]);
/** A layer gives failures as values; a client of the SDK throws them. */
const answered = async (asked: Promise<ToolResultEnvelope>): Promise<unknown> => {
  const { error, output } = await asked;
  if (error !== undefined) throw new Error(error.modelText);
  return output;
};
const said = (call: Promise<unknown>): Promise<string> =>
  call.then(
    () => 'answers',
    (error: unknown) => String(error),
  );

/** MCP servers that die, and tools that take their time. */
export const SERVERS: readonly Issue[] = [
  {
    id: 'modelcontextprotocol/typescript-sdk#1049',
    title: 'stdio client crashes with "Connection closed" when the spawned server exits unexpectedly',
    alone: 'Error: Not connected',
    solved: 'answers',
    run: async (guarded) => {
      using kept = ledger();
      const { place } = faults(kept);
      if (!('command' in place)) throw new TypeError('it is no command');
      const { command, args = [] } = place;
      let pid: () => Promise<unknown>;
      let close: () => Promise<unknown>;
      if (guarded) {
        const spillway = createSpillway({ providers: [await mcpStdioProvider({ name: 'box', command, args })] });
        pid = () => answered(spillway.execute({ toolName: 'box.pid', input: {} }));
        close = () => spillway.close();
      } else {
        const client = await connected(command, args);
        pid = () => client.callTool({ name: 'pid', arguments: {} });
        close = () => client.close();
      }
      const first = await pid();
      kill(pidIn(first));
      await pid().catch(() => undefined);
      const end = await said(pid());
      await close();
      return end;
    },
  },
  {
    id: 'anthropics/claude-code#43177',
    title: 'MCP stdio servers never auto-reconnect after disconnect',
    alone: 'Error: Not connected',
    solved: 'answers',
    run: async (guarded) => {
      using kept = ledger();
      const { place } = faults(kept);
      if (!('command' in place)) throw new TypeError('it is no command');
      let line: readonly [string, ...string[]] = [place.command, ...(place.args ?? [])];
      if (guarded) {
        line = behind(line); // "command": "npx", "args": ["-y", "spillway", "mcp", "--", ...] in its mcp.json
      }
      const [command, ...args] = line;
      const client = await connected(command, args);
      const pid = (): Promise<unknown> => client.callTool({ name: 'pid', arguments: {} });
      kill(pidIn(await pid()));
      await pid().catch(() => undefined);
      const end = await said(pid());
      await client.close();
      return end;
    },
  },
  {
    id: 'modelcontextprotocol/typescript-sdk#192',
    title: 'consider defaulting resetTimeoutOnProgress to true',
    alone: 'McpError: MCP error -32001: Request timed out',
    solved: 'answers',
    run: async (guarded) => {
      let client: Pick<Client, 'callTool'> & { close(): Promise<void> } = await connected(NODE, [EVERYTHING, 'stdio']);
      // Its tool reports four times in two seconds; a client that hears nothing for a second gives up.
      let options: { readonly timeout?: number } = { timeout: 1_000 };
      if (guarded) {
        const policy = { timeoutMs: 600_000, idleTimeoutMs: 1_000 };
        client = guardClient(client, { policies: { 'trigger-long-running-operation': policy } });
        options = {};
      }
      const name = 'trigger-long-running-operation';
      const end = await said(client.callTool({ name, arguments: { duration: 2, steps: 4 } }, undefined, options));
      await client.close();
      return end;
    },
  },
];
