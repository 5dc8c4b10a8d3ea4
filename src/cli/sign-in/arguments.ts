import { parseOptions } from '../arguments/options.ts';
import { UsageError } from '../arguments/usage.ts';

/** `spillway mcp login`: where a person signs in, or what sign-in is forgotten. */
export interface LoginCommand {
  /** The name of a server in the file, or an address. */
  readonly server: string;
  readonly configPath?: string;
  /** Where the browser comes back to; 0 is a free port. */
  readonly port?: number;
  readonly scope?: string;
  readonly timeoutMs: number;
  readonly forget: boolean;
}

export const LOGIN_HELP: string = `spillway mcp login NAME|URL [options]

Has a person sign in at an MCP server over HTTP, by OAuth in their browser, and keeps what the server's
authorization server gives: spillway mcp, run and tools use it from then on, and have it renewed.

  --config FILE   the file in which NAME is a server, with sign_in: person in its oauth
  --scope TEXT    what to ask for, where the server does not say
  --port N        the port of this machine that the browser comes back to, where the client of the
                  authorization server names one: any free one
  --timeout MS    how long it waits for the person: 300000
  --forget        forget the sign-in, and sign in nowhere
  --help          this text

It is kept in a file that only you can read, under SPILLWAY_SIGN_INS, or spillway/sign-ins in XDG_STATE_HOME
(~/.local/state). The page to open goes to stderr. Exit codes: 0 signed in, 1 not, 2 usage or bad file.
`;

export const LOGIN_OPTIONS = {
  config: { type: 'string' },
  scope: { type: 'string' },
  port: { type: 'string' },
  timeout: { type: 'string' },
  forget: { type: 'boolean', default: false },
  help: { type: 'boolean', short: 'h', default: false },
} as const;

const TIMEOUT_MS = 300_000;

const integerOf = (option: string, text: string, min: number, max: number): number => {
  const value = Number(text);
  if (!/^\d{1,8}$/.test(text) || value < min || value > max)
    throw new UsageError(`${option} must be an integer from ${min} to ${max}, not ${JSON.stringify(text)}`);
  return value;
};

/**
 * Reads what follows `spillway mcp login`; `undefined` asks for help.
 * @throws UsageError
 */
export function parseLogin(args: readonly string[]): LoginCommand | undefined {
  const { values, positionals } = parseOptions(args, LOGIN_OPTIONS);
  if (values.help) return undefined;
  const [server, ...rest] = positionals;
  if (server === undefined || server === '')
    throw new UsageError('the server is missing; write spillway mcp login https://mcp.example.com/mcp');
  if (rest.length > 0)
    throw new UsageError(`login takes one server; leave out ${JSON.stringify(rest[0]?.slice(0, 64))}`);
  if (values.config === '') throw new UsageError('--config needs the name of a file');
  const { config, scope, port, timeout, forget } = values;
  return {
    server,
    forget,
    timeoutMs: timeout === undefined ? TIMEOUT_MS : integerOf('--timeout', timeout, 1_000, 86_400_000),
    ...(config === undefined ? {} : { configPath: config }),
    ...(scope === undefined ? {} : { scope }),
    ...(port === undefined ? {} : { port: integerOf('--port', port, 0, 65_535) }),
  };
}
