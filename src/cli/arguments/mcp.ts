import { portOf, withPort } from './inspect.ts';
import { parseOptions } from './options.ts';
import { UsageError } from './usage.ts';

const PORT_MAX = 65_535;
const DURATION_MAX_MS = 86_400_000;
const BYTES_MAX = 1_073_741_824;

/** What `spillway mcp` stands in front of, and how. */
export interface McpCommand {
  /** What stands after `--`: a command and its arguments. */
  readonly command?: readonly [string, ...string[]];
  readonly configPath?: string;
  /** Servers by name: an address, or a command line without quotes. */
  readonly servers: Readonly<Record<string, string>>;
  readonly name: string;
  readonly timeoutMs?: number;
  readonly maxOutputBytes?: number;
  readonly keyName?: string;
  /** Where HTTP is served; over stdio without it. */
  readonly httpPort?: number;
  readonly host: string;
  readonly tracePath?: string;
  readonly adminPort?: number;
  /** Where the inspector of the calls is served; 0 is a free port. */
  readonly inspectPort?: number;
  /** Where keys and budgets are kept, and approvals are answered; in memory without it. */
  readonly storeUrl?: string;
  readonly printConfig: boolean;
  /** The command line as it was given, but for `--print-config`. */
  readonly given: readonly string[];
}

export const MCP_HELP: string = `spillway mcp [options] -- COMMAND [ARGUMENT...]

An MCP server in front of another: put it before the command in any client's mcp.json. Calls of tools
get a hard timeout, retries where the tool only reads, a breaker and a look at their input; everything
else passes unchanged in both directions. A server that dies is started again.

  --config FILE   servers and policies from a YAML file
  --server WHAT   one of several servers, as NAME=URL or NAME=COMMAND LINE (split at spaces); the tools of
                  several are called NAME.TOOL; may be given several times
  --name NAME     what the server after -- is called in messages: server
  --timeout MS    the hard limit on an attempt of any tool: 55000, a little below what clients wait
  --max-output N  the longest result that is passed on, in bytes: 4194304
  --key NAME      the key of _meta that makes a call the same as one before: spillway/idempotencyKey
  --store URL     where keys and budgets are kept, beyond a restart and for several proxies, and approvals
                  answered (spillway approve): sqlite:FILE, redis:// or rediss://HOST:PORT/DB?prefix=NAME:.
                  Default: SPILLWAY_STORE, or the memory
  --http PORT     serve Streamable HTTP at this port in place of stdio (0: a free one); the address goes to
                  stderr
  --host HOST     where HTTP listens: 127.0.0.1. Another one needs a token, in SPILLWAY_MCP_TOKEN
  --trace FILE    every event of the calls to FILE, one JSON object a line
  --admin PORT    an admin endpoint at this loopback port (0: a free one); its address and token go to
                  stderr
  --inspect PORT  a page at this loopback port that shows the calls as they run; its address goes to stderr.
                  Any free port without a number
  --print-config  print what the usual clients want in their configuration, and start nothing
  --help          this text

Exit codes: 0 the client is gone, or it was told to stop, 1 it could not listen, 2 usage or bad file.
It starts the command, which is a program: name only what you would run yourself.

spillway mcp login NAME|URL has a person sign in at a server over HTTP (spillway mcp login --help).
`;

export const MCP_OPTIONS = {
  config: { type: 'string' },
  server: { type: 'string', multiple: true },
  name: { type: 'string' },
  timeout: { type: 'string' },
  'max-output': { type: 'string' },
  key: { type: 'string' },
  http: { type: 'string' },
  host: { type: 'string', default: '127.0.0.1' },
  trace: { type: 'string' },
  admin: { type: 'string' },
  inspect: { type: 'string' },
  store: { type: 'string' },
  'print-config': { type: 'boolean', default: false },
  help: { type: 'boolean', short: 'h', default: false },
} as const;

const integerOf = (option: string, text: string, min: number, max: number): number => {
  const value = Number(text);
  if (!/^\d{1,10}$/.test(text) || value < min || value > max)
    throw new UsageError(`${option} must be an integer from ${min} to ${max}, not ${JSON.stringify(text)}`);
  return value;
};

const NAME = /^[\w-]{1,64}$/;

const checkName = (option: string, name: string): string => {
  if (!NAME.test(name))
    throw new UsageError(`${option} must be made of letters, digits, _ and - only, not ${JSON.stringify(name)}`);
  return name;
};

const serversOf = (given: readonly string[]): Record<string, string> => {
  const servers = new Map<string, string>();
  for (const text of given) {
    const place = text.indexOf('=');
    if (place < 1 || text.slice(place + 1).trim() === '')
      throw new UsageError(
        '--server must be NAME=URL or NAME=COMMAND LINE, such as files="npx -y @modelcontextprotocol/server-memory"',
      );
    const name = checkName('the name of a --server', text.slice(0, place));
    if (servers.has(name)) throw new UsageError(`--server ${name} is given twice; give one of them another name`);
    servers.set(name, text.slice(place + 1).trim());
  }
  return Object.fromEntries(servers);
};

/** A file, a port and the like, where they are given. */
const optional = <T>(key: string, value: T | undefined): Readonly<Record<string, T>> =>
  value === undefined ? {} : { [key]: value };

const file = (option: string, path: string | undefined): string | undefined => {
  if (path === '') throw new UsageError(`${option} needs the name of a file`);
  return path;
};

/**
 * Reads what follows `spillway mcp`; `undefined` asks for help.
 * @throws UsageError
 */
export function parseMcp(args: readonly string[]): McpCommand | undefined {
  const end = args.indexOf('--');
  const [program, ...rest] = end === -1 ? [] : args.slice(end + 1);
  const { values, positionals } = parseOptions(withPort(end === -1 ? args : args.slice(0, end)), MCP_OPTIONS);
  if (values.help) return undefined;
  if (positionals.length > 0)
    throw new UsageError(`write -- before the command: spillway mcp -- ${positionals[0]} ...`);
  if (end !== -1 && (program === undefined || program === ''))
    throw new UsageError('after -- the command is missing; write spillway mcp -- npx some-mcp-server');
  const servers = serversOf(values.server ?? []);
  if (program !== undefined && Object.keys(servers).length > 0)
    throw new UsageError('--server is for several servers; give the command after -- as one of them, too');
  if (program === undefined && values.config === undefined && Object.keys(servers).length === 0)
    throw new UsageError('there is no server; write spillway mcp -- npx some-mcp-server');
  if (values.host === '') throw new UsageError('--host needs a name or an address');
  if (values.key === '') throw new UsageError('--key needs the name of a key');
  if (values.store === '') throw new UsageError('--store needs a URL, such as sqlite:calls.db');
  const number = (option: 'timeout' | 'max-output' | 'http' | 'admin', min: number, max: number): number | undefined =>
    values[option] === undefined ? undefined : integerOf(`--${option}`, values[option], min, max);
  return {
    ...(program === undefined ? {} : { command: [program, ...rest] }),
    ...optional('configPath', file('--config', values.config)),
    servers,
    name: checkName('--name', values.name ?? 'server'),
    ...optional('timeoutMs', number('timeout', 1, DURATION_MAX_MS)),
    ...optional('maxOutputBytes', number('max-output', 1_024, BYTES_MAX)),
    ...optional('keyName', values.key),
    ...optional('httpPort', number('http', 0, PORT_MAX)),
    host: values.host,
    ...optional('tracePath', file('--trace', values.trace)),
    ...optional('adminPort', number('admin', 0, PORT_MAX)),
    ...optional('inspectPort', values.inspect === undefined ? undefined : portOf('--inspect', values.inspect)),
    ...optional('storeUrl', values.store),
    printConfig: values['print-config'],
    given: args.filter((arg, place) => arg !== '--print-config' || (end !== -1 && place > end)),
  };
}
