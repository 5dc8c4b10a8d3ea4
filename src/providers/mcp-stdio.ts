import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { getDefaultEnvironment } from '@modelcontextprotocol/sdk/client/stdio.js';
import type { Runtime } from '../contract/runtime.ts';
import { ToolExecutionError } from '../contract/tool-error.ts';
import { checkKeys, checkNumber, integer } from '../policy/check.ts';
import { liveRuntime } from '../runtime.ts';
import type { ClientCapabilities } from '@modelcontextprotocol/sdk/types.js';
import { CLIENT_INFO, hearToolsChanged, listAllTools } from './mcp/client.ts';
import { hiddenTools } from './mcp/hidden.ts';
import { capabilitiesOf, checkHandlers, type McpHandlers } from './mcp/host/handlers.ts';
import { hearServer } from './mcp/host/hear-server.ts';
import { mcpOutputValidator } from './mcp/output.ts';
import type { LeftOutTool } from './mcp/tool-list.ts';
import { Waits } from './mcp/waits.ts';
import { mcpProvider, type McpConnection, type McpProvider, type OwnTools } from './mcp.ts';
import { MESSAGE_BYTES } from './mcp/stdio/line-reader.ts';
import { StdioTransport } from './mcp/stdio/transport.ts';

export type { McpHandlers, McpRoot } from './mcp/host/handlers.ts';

const STDERR_LINES = 20;

/** Which MCP server is started, and how. */
export interface McpStdioOptions {
  /** The provider's name; its tools are called `name.tool`. */
  readonly name: string;
  /** The server's command. On Windows a script such as `npx` needs `command: 'cmd', args: ['/c', 'npx', ...]`. */
  readonly command: string;
  /** The command's arguments, passed without a shell. Default: none. */
  readonly args?: readonly string[];
  /**
   * Variables added to the few that a server gets by default (`HOME`, `PATH`, ...: the SDK's list). The other variables
   * of this process may hold secrets and are not passed on.
   */
  readonly env?: Readonly<Record<string, string>>;
  /** The folder in which the server starts. Default: that of this process. */
  readonly cwd?: string;
  /** How many of the last lines of the server's stderr are kept for errors. It is not printed. Default 20. */
  readonly stderrLines?: number;
  /**
   * The longest message taken from the server, in bytes. A call with a longer answer fails, and is told to ask for
   * less; anything else that is longer ends the connection. Default 10 MiB, the SDK's own.
   */
  readonly maxMessageBytes?: number;
  /** Limit on starting the server and listing its tools, in milliseconds. Default 30,000. */
  readonly connectTimeoutMs?: number;
  /** What a model is shown of a failure, as in `McpProviderOptions`. */
  readonly show?: 'errors';
  /**
   * What the host answers when the server asks a person, a model, or for its folders. Default: nothing, and the server
   * may list fewer tools, see `hiddenTools()`.
   */
  readonly handlers?: McpHandlers;
  /** What you know of single tools, as in `McpProviderOptions`. */
  readonly tools?: OwnTools;
  /** Clock and timers of the connection. Default: the machine's. */
  readonly runtime?: Runtime;
}

const OF_PROCESSES = ['command', 'args', 'env', 'cwd', 'stderrLines', 'maxMessageBytes'];
const OPTION_KEYS = ['name', ...OF_PROCESSES, 'connectTimeoutMs', 'show', 'handlers', 'tools', 'runtime'];

/** The tools of an MCP server that runs as a process of its own. */
export interface McpStdioProvider extends McpProvider {
  /** The process that was started for the server, while there is one. */
  readonly pid: number | undefined;
  /**
   * The tools that the server keeps to itself since the host has no handler for what they need, with the handler to
   * give. Starts the server anew, up to five times, and stops it again; rejects where it does not start.
   */
  hiddenTools(): Promise<readonly LeftOutTool[]>;
}

/**
 * The SDK's list of harmless variables; where the environment may not be read (Deno without `--allow-env`) there are
 * none.
 */
const defaultEnvironment = (): Record<string, string> => {
  try {
    return getDefaultEnvironment();
  } catch {
    return {};
  }
};

/** What a server lists to a client with these capabilities, asked of one that is started for it. */
const namesListed = async (transport: StdioTransport, capabilities: ClientCapabilities): Promise<readonly string[]> => {
  const client = new Client(CLIENT_INFO, { capabilities });
  try {
    await client.connect(transport);
    return (await listAllTools(client)).map(({ name }) => name);
  } finally {
    await transport.close();
  }
};

/** An error of a server that ended, with what it said last. */
const withStderr = (how: Error, { stderr }: StdioTransport): ToolExecutionError =>
  new ToolExecutionError('transport_error', how.message, { cause: how, details: { stderr: stderr.lines } });

/** Why a server never came up. What it said last is the reason, so it is in the message. */
const neverStarted = (
  thrown: unknown,
  ended: Error | undefined,
  transport: StdioTransport,
  { command, cwd }: McpStdioOptions,
): unknown => {
  if (ended === undefined) return thrown;
  const { code } = ended as NodeJS.ErrnoException;
  if (code === 'ENOENT') {
    const where = cwd === undefined ? '' : `, or its directory ${cwd} does not exist`;
    return Object.assign(new Error(`the command ${command} was not found${where}`, { cause: ended }), { code });
  }
  if (code !== undefined) return ended;
  const { said } = transport.stderr;
  return withStderr(said === '' ? ended : new Error(`${ended.message}; it said: ${said}`), transport);
};

const checkOptions = (options: McpStdioOptions): void => {
  checkKeys('mcpStdioProvider', options, OPTION_KEYS);
  const { command, stderrLines = STDERR_LINES, maxMessageBytes = MESSAGE_BYTES, handlers = {} } = options;
  if (typeof command !== 'string' || command === '')
    throw new RangeError('command must be a text of at least one character');
  checkNumber('stderrLines', stderrLines, integer(0, 1_000));
  checkNumber('maxMessageBytes', maxMessageBytes, integer(1_024, 2 ** 30));
  checkHandlers('mcpStdioProvider', handlers);
};

const transportOf = (options: McpStdioOptions, runtime: Runtime): StdioTransport => {
  const { command, args = [], env, cwd, stderrLines = STDERR_LINES, maxMessageBytes = MESSAGE_BYTES } = options;
  const variables = { ...defaultEnvironment(), ...env };
  return new StdioTransport({ command, args, cwd, env: variables, stderrLines, maxMessageBytes, runtime });
};

/**
 * The tools of an MCP server that is started as a process and spoken to over its stdin and stdout, with the client of
 * `@modelcontextprotocol/sdk` 1.x (an optional peer dependency). See `mcpProvider` for how calls fail and connections
 * come back.
 *
 * The server and all that it starts form a process group of their own. `close()` ends its input, sends SIGTERM a second
 * later and SIGKILL another second later; a process that exits without `close()` kills it.
 *
 * @throws RangeError for an option that does not exist or is out of its range; `transport_error`, not executed, when
 *   the server does not start
 *
 * @example
 * const server = ['-y', '@modelcontextprotocol/server-filesystem', '/tmp'];
 * const files = await mcpStdioProvider({ name: 'files', command: 'npx', args: server });
 * const spillway = createSpillway({ providers: [files] });
 * await spillway.execute({ toolName: 'files.list_directory', input: { path: '/tmp' } });
 * await spillway.close();
 */
export async function mcpStdioProvider(options: McpStdioOptions): Promise<McpStdioProvider> {
  checkOptions(options);
  const { name, connectTimeoutMs, show, handlers = {}, tools, runtime = liveRuntime } = options;
  let current: StdioTransport | undefined;
  const waits = new Waits();

  const started = (): StdioTransport => transportOf(options, runtime);
  const listWith = (more: ClientCapabilities): Promise<readonly string[]> =>
    namesListed(started(), { ...capabilitiesOf(handlers), ...more });
  const connect = async (signal: AbortSignal): Promise<McpConnection> => {
    const transport = started();
    let ended: Error | undefined;
    const closed = transport.ended.then((how) => {
      ended = how;
      if (current === transport) current = undefined;
      return withStderr(how, transport);
    });
    const capabilities = capabilitiesOf(handlers);
    const client = new Client(CLIENT_INFO, { jsonSchemaValidator: mcpOutputValidator, capabilities });
    const heard = hearServer(client, handlers, waits);
    void closed.then(() => heard.unsubscribe());
    try {
      current = transport;
      await client.connect(transport, { signal, timeout: 2 ** 31 - 1 });
      return {
        client,
        closed,
        close: () => transport.close(),
        sdkMajor: 1,
        toolsChanged: (heard) => hearToolsChanged(client, heard),
        session: () => ({ transport: 'pipe' }),
      };
    } catch (error) {
      await transport.close();
      throw neverStarted(error, ended, transport, options);
    }
  };

  const provider = await mcpProvider({
    name,
    connect,
    runtime,
    ...(connectTimeoutMs === undefined ? {} : { connectTimeoutMs }),
    ...(show === undefined ? {} : { show }),
    ...(tools === undefined ? {} : { tools }),
    waiting: () => waits.begin(),
  });
  return {
    name,
    get tools() {
      return provider.tools;
    },
    get leftOut() {
      return provider.leftOut;
    },
    get unchecked() {
      return provider.unchecked;
    },
    get mcp() {
      return provider.mcp;
    },
    close: () => provider.close(),
    hiddenTools: () => hiddenTools(name, handlers, listWith),
    get pid() {
      return current?.pid;
    },
  };
}
