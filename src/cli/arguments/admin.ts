import { parseOptions } from './options.ts';
import { choices } from '../show/text.ts';
import { UsageError } from './usage.ts';

export const ADMIN_ACTIONS = {
  status: undefined,
  'force-open': 'force_open',
  reset: 'reset',
  disable: 'disable',
  flush: 'flush',
} as const;

/** What `spillway admin` asks of a running layer. */
export interface AdminCommand {
  readonly url: URL;
  readonly token: string;
  /** The body of a `POST`; absent for `status`. */
  readonly order?: { readonly action: string; readonly tool?: string; readonly session?: string; readonly all?: true };
  readonly json: boolean;
}

export const ADMIN_HELP: string = `spillway admin ACTION [options]

Asks the admin endpoint of a running program, or tells it what to do.

  status          breakers, store, retries left
  force-open      the breakers of a tool, or of all: every call is refused until reset
  disable         the breakers of a tool, or of all: no call is refused until reset
  reset           the breakers of a tool, or of all: closed, with nothing remembered
  flush           what is remembered of a tool, a session, or all tools: its keys run again

  --tool T        of this tool, in every scope
  --session S     of this session (flush)
  --all           of all
  --url URL       where the endpoint is, or SPILLWAY_ADMIN_URL
  --token T       better SPILLWAY_ADMIN_TOKEN: a command line can be read by others
  --json          the answer as JSON
  --help          this text

Exit codes: 0 done, 1 refused or not reached, 2 usage.
`;

export const ADMIN_OPTIONS = {
  tool: { type: 'string' },
  session: { type: 'string' },
  all: { type: 'boolean', default: false },
  url: { type: 'string' },
  token: { type: 'string' },
  json: { type: 'boolean', default: false },
  help: { type: 'boolean', short: 'h', default: false },
} as const;

const urlOf = (text: string | undefined): URL => {
  if (text === undefined || text === '')
    throw new UsageError('the address is missing; give --url, or set SPILLWAY_ADMIN_URL');
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || !['http:', 'https:'].includes(url.protocol))
    throw new UsageError('--url must be an address that begins with http:// or https://');
  if (url.username !== '' || url.password !== '')
    throw new UsageError('--url must hold no user and no password; the token goes into SPILLWAY_ADMIN_TOKEN');
  return new URL(
    '/debug/tool-reliability',
    url.pathname === '/' || url.pathname === '/debug/tool-reliability'
      ? url
      : fail(`--url must be the server alone, such as ${url.origin}`),
  );
};

const fail = (message: string): never => {
  throw new UsageError(message);
};

const tokenOf = (given: string | undefined): string => {
  const token = given?.trim() ?? '';
  if (!/^[!-~]+$/.test(token))
    fail(`the token is ${token === '' ? 'missing' : 'not one of visible ASCII characters'}; set SPILLWAY_ADMIN_TOKEN`);
  return token;
};

/**
 * Reads what follows `spillway admin`; `undefined` asks for help.
 * @throws UsageError, which never holds the token
 */
export function parseAdmin(
  args: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
): AdminCommand | undefined {
  const { values, positionals } = parseOptions(args, ADMIN_OPTIONS);
  if (values.help) return undefined;
  const [name, ...rest] = positionals;
  const known = Object.keys(ADMIN_ACTIONS);
  if (name === undefined) return fail(`an action is missing; there is ${known.join(', ')}`);
  if (!Object.hasOwn(ADMIN_ACTIONS, name))
    return fail(`there is no action ${JSON.stringify(name.slice(0, 64))}; ${choices(name, known)}`);
  if (rest.length > 0) fail(`${name} takes options only; name a tool by --tool`);
  const { tool, session, all } = values;
  const action = ADMIN_ACTIONS[name as keyof typeof ADMIN_ACTIONS];
  const targets = [tool, session, all ? all : undefined].filter((target) => target !== undefined).length;
  if (action === undefined && targets > 0) fail('status is of everything; leave out --tool, --session and --all');
  if (action !== undefined && targets !== 1)
    fail(`${name} needs one of --tool, ${action === 'flush' ? '--session ' : ''}or --all`);
  if (action !== undefined && action !== 'flush' && session !== undefined)
    fail(`${name} is for --tool or --all: breakers know no sessions`);
  if (tool === '' || session === '') fail('--tool and --session need a name');
  const order =
    action === undefined
      ? {}
      : {
          order: {
            action,
            ...(tool === undefined ? {} : { tool }),
            ...(session === undefined ? {} : { session }),
            ...(all ? { all: true as const } : {}),
          },
        };
  return {
    url: urlOf(values.url ?? env['SPILLWAY_ADMIN_URL']),
    token: tokenOf(values.token ?? env['SPILLWAY_ADMIN_TOKEN']),
    json: values.json,
    ...order,
  };
}
