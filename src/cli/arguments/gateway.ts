import { parseOptions } from './options.ts';
import { choices } from '../show/text.ts';
import { UsageError } from './usage.ts';

export const GATEWAY_KINDS: readonly string[] = ['anthropic'];
const PORT_MAX = 65_535;
const GRACE_MAX_MS = 3_600_000;
const DEFAULT_PORT = 8_787;
const DEFAULT_GRACE_MS = 30_000;

/** What `spillway gateway` serves. */
export interface GatewayCommand {
  readonly upstream: string;
  /** Plan files and REST manifests. */
  readonly toolPaths: readonly string[];
  /** `memory`, or the address of a Redis. */
  readonly state: string;
  readonly host: string;
  readonly port: number;
  readonly graceMs: number;
  readonly maxTurns?: number;
  /** Requests a minute of one key. */
  readonly rate?: number;
  /** Targets of manifests that may be reached though they are not public. */
  readonly allow: readonly string[];
}

export const GATEWAY_HELP: string = `spillway gateway anthropic --upstream URL [options]

An endpoint that Claude clients can point at: it passes their requests on to the upstream, and runs
the calls of its own tools itself. Its address goes to stdout, its log to stderr, one JSON object a line.

  --upstream URL  the Messages API behind it: https://api.anthropic.com
  --tools FILE    tools that run here: a plan file (those that it lists, and those that its turn uses)
                  or a REST manifest; may be given several times
  --state WHERE   what clients do not see is kept in memory (the default) or at redis://HOST:PORT
  --host HOST     where it listens: 127.0.0.1. It asks for no key of its own: whoever reaches it and
                  has a key of the upstream can use its tools
  --port N        ${DEFAULT_PORT}; 0 is a free one
  --grace MS      how long turns may go on after SIGTERM: ${DEFAULT_GRACE_MS}; then they are harvested
  --max-turns N   turns at a time: 1000
  --rate N        requests a minute of one API key: no limit
  --allow HOST    a private host that manifests may reach; may be given several times
  --help          this text

Exit codes: 0 shut down by SIGTERM or SIGINT after all turns had ended, 1 it could not start or listen,
2 usage or bad file, 130 interrupted a second time.
`;

export const GATEWAY_OPTIONS = {
  upstream: { type: 'string' },
  tools: { type: 'string', multiple: true },
  state: { type: 'string', default: 'memory' },
  host: { type: 'string', default: '127.0.0.1' },
  port: { type: 'string' },
  grace: { type: 'string' },
  'max-turns': { type: 'string' },
  rate: { type: 'string' },
  allow: { type: 'string', multiple: true },
  help: { type: 'boolean', short: 'h', default: false },
} as const;

const integerOf = (option: string, text: string | undefined, min: number, max: number): number | undefined => {
  if (text === undefined) return undefined;
  const value = Number(text);
  if (!/^\d{1,10}$/.test(text) || value < min || value > max)
    throw new UsageError(`${option} must be an integer from ${min} to ${max}, not ${JSON.stringify(text)}`);
  return value;
};

const checkUrl = (option: string, text: string, schemes: RegExp, example: string): void => {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  // What was given may hold a password: it is not repeated.
  if (url === undefined || !schemes.test(url.protocol))
    throw new UsageError(`${option} must be an address such as ${example}`);
};

/**
 * Reads a command line.
 * @param args without `gateway`
 * @returns `undefined` when help was asked for
 * @throws UsageError
 */
export function parseGateway(args: readonly string[]): GatewayCommand | undefined {
  const { values, positionals } = parseOptions(args, GATEWAY_OPTIONS);
  if (values.help) return undefined;
  const [kind, ...rest] = positionals;
  if (kind === undefined)
    throw new UsageError('the kind of gateway is missing; write spillway gateway anthropic --upstream URL');
  if (!GATEWAY_KINDS.includes(kind))
    throw new UsageError(`there is no gateway ${JSON.stringify(kind)}; ${choices(kind, GATEWAY_KINDS)}`);
  if (rest.length > 0)
    throw new UsageError(`gateway takes one kind, not ${rest.length + 1} words; leave out ${JSON.stringify(rest[0])}`);
  const { upstream, state, host, tools = [], allow = [] } = values;
  if (upstream === undefined || upstream === '')
    throw new UsageError('the upstream is missing; give --upstream https://api.anthropic.com');
  checkUrl('--upstream', upstream, /^https?:$/, 'https://api.anthropic.com');
  if (state !== 'memory') checkUrl('--state', state, /^rediss?:$/, 'redis://127.0.0.1:6379, or memory');
  if (tools.includes('')) throw new UsageError('--tools needs the name of a file');
  if (host === '') throw new UsageError('--host needs a name or an address');
  const maxTurns = integerOf('--max-turns', values['max-turns'], 1, 1_000_000);
  const rate = integerOf('--rate', values.rate, 1, 1_000_000);
  return {
    upstream,
    toolPaths: tools,
    state,
    host,
    port: integerOf('--port', values.port, 0, PORT_MAX) ?? DEFAULT_PORT,
    graceMs: integerOf('--grace', values.grace, 0, GRACE_MAX_MS) ?? DEFAULT_GRACE_MS,
    ...(maxTurns === undefined ? {} : { maxTurns }),
    ...(rate === undefined ? {} : { rate }),
    allow,
  };
}
