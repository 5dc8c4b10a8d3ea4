import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { createMCPClient } from '@ai-sdk/mcp';
import { StdioMCPTransport as AiStdioTransport } from '@ai-sdk/mcp/mcp-stdio';
import {
  Client as Client2,
  StreamableHTTPClientTransport as Http2,
  type ClientOptions,
} from '@modelcontextprotocol/client';
import { StdioClientTransport as Stdio2 } from '@modelcontextprotocol/client/stdio';
import { Client as Client1 } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport as Stdio1 } from '@modelcontextprotocol/sdk/client/stdio.js';
import { sideInstall } from '../side-install.ts';
import type { Command } from './wire-kit.ts';

/** A client of somebody else's, in front of a server that it has started. */
export interface RealClient {
  /** All that the client is told of a call, or what it throws, as one text. */
  readonly call: (name: string, input?: Record<string, unknown>) => Promise<string>;
  readonly close: () => Promise<void>;
}

export type Connect = (command: Command) => Promise<RealClient>;

interface LangChainTool {
  readonly name: string;
  invoke(input: unknown): Promise<unknown>;
}
export interface LangChainAdapters {
  readonly MultiServerMCPClient: new (servers: object) => {
    getTools(): Promise<readonly LangChainTool[]>;
    close(): Promise<void>;
  };
}

/** LangChain’s adapters are not in the main install. */
export const loadLangChainMcp = async (): Promise<LangChainAdapters> => {
  const packages = ['@langchain/mcp-adapters@1.1.4', '@langchain/core@1.4.0', '@langchain/langgraph@1.7.3'];
  const load = await sideInstall('langchain-mcp', packages);
  return (await load('@langchain/mcp-adapters')) as LangChainAdapters;
};

export const split = ([command, ...args]: Command): { command: string; args: string[]; stderr: 'ignore' } => ({
  command,
  args,
  stderr: 'ignore',
});

const INFO = { name: 'test', version: '1' };
const LIMIT = { timeout: 120_000 };
const told = (result: unknown): string => (typeof result === 'string' ? result : JSON.stringify(result));
const thrown = (error: unknown): string => String(error);

const sdk1: Connect = async (command) => {
  const client = new Client1(INFO);
  await client.connect(new Stdio1(split(command)));
  return {
    call: (name, input = {}) => client.callTool({ name, arguments: input }, undefined, LIMIT).then(told, thrown),
    close: () => client.close(),
  };
};

type Mode = NonNullable<NonNullable<ClientOptions['versionNegotiation']>['mode']>;
const connected2 = async (mode: Mode, transport: Stdio2 | Http2): Promise<RealClient> => {
  const client = new Client2(INFO, { versionNegotiation: { mode } });
  await client.connect(transport);
  return {
    call: (name, input = {}) => client.callTool({ name, arguments: input }, LIMIT).then(told, thrown),
    close: () => client.close(),
  };
};

const sdk2 =
  (mode: Mode): Connect =>
  (command) =>
    connected2(mode, new Stdio2(split(command)));

/** Starts a command that serves HTTP and says where, and is its client. */
const overHttp =
  (mode: Mode): Connect =>
  async ([command, ...args]) => {
    const child = spawn(command, args, { stdio: ['ignore', 'ignore', 'pipe'] });
    const [url] = (await once(createInterface({ input: child.stderr }), 'line')) as [string];
    const client = await connected2(mode, new Http2(new URL(url)));
    const close = async (): Promise<void> => {
      await client.close();
      child.kill();
      await once(child, 'exit');
    };
    return { ...client, close };
  };

const aiSdk: Connect = async (command) => {
  const client = await createMCPClient({ transport: new AiStdioTransport(split(command)) });
  const tools = await client.tools();
  const options = { toolCallId: '1', messages: [], context: undefined };
  return {
    call: (name, input = {}) => Promise.resolve(tools[name]?.execute?.(input, options as never)).then(told, thrown),
    close: () => client.close(),
  };
};

const langChain: Connect = async (command) => {
  const { MultiServerMCPClient } = await loadLangChainMcp();
  const client = new MultiServerMCPClient({ s: { transport: 'stdio', ...split(command) } });
  const tools = await client.getTools();
  return {
    call: async (name, input = {}) =>
      Promise.resolve(tools.find((tool) => tool.name === name)?.invoke(input)).then(told, thrown),
    close: () => client.close(),
  };
};

export const REAL_CLIENTS: Readonly<Record<string, Connect>> = {
  'SDK 1': sdk1,
  'SDK 2, of 2025': sdk2('legacy'),
  'SDK 2, of 2026 where its server is': sdk2('auto'),
  'AI SDK’s client': aiSdk,
  'LangChain’s adapters': langChain,
};

/** Where no era before will do. */
const NEWEST: Mode = { pin: '2026-07-28' };
export const NEWEST_CLIENTS: Readonly<Record<'stdio' | 'HTTP', Connect>> = {
  stdio: sdk2(NEWEST),
  HTTP: overHttp(NEWEST),
};
