import { oneFile, parseOptions } from './options.ts';
import { UsageError } from './usage.ts';

export interface ToolsCommand {
  readonly path: string;
  /** Of these servers only; of all when there is none. */
  readonly servers: readonly string[];
  readonly json: boolean;
  readonly ascii: boolean;
  readonly color: boolean;
  readonly allow: readonly string[];
}

export const TOOLS_HELP: string = `spillway tools PLAN.yaml [options]

Starts the servers of a plan, asks each what tools it has, and stops them again; no tool is called.
A REST manifest has its tools in itself: nothing is started or sent for one. A tool whose server does
not say that it only reads is shown as mutating, as it is treated.

  --server NAME   of this server only; may be given several times
  --json          a JSON object for each tool, with its schema, a line each
  --allow HOST    a private host that a manifest may name; may be given several times
  --no-color      no colours (so does NO_COLOR in the environment)
  --ascii         ASCII characters only
  --help          this text

Exit codes: 0 listed, 2 usage, bad file, or a server that does not start, 130 interrupted.
A plan starts servers, which are programs: name only plans whose commands you would run yourself.
`;

export const TOOLS_OPTIONS = {
  server: { type: 'string', multiple: true },
  json: { type: 'boolean', default: false },
  allow: { type: 'string', multiple: true },
  'no-color': { type: 'boolean', default: false },
  ascii: { type: 'boolean', default: false },
  help: { type: 'boolean', short: 'h', default: false },
} as const;

/**
 * Reads what follows `spillway tools`; `undefined` asks for help.
 * @throws UsageError
 */
export function parseTools(args: readonly string[]): ToolsCommand | undefined {
  const { values, positionals } = parseOptions(args, TOOLS_OPTIONS);
  if (values.help) return undefined;
  const { server: servers = [], allow = [], json, ascii } = values;
  if (servers.includes('')) throw new UsageError('--server needs a name');
  return {
    path: oneFile('tools PLAN.yaml', 'plan file', positionals),
    servers,
    allow,
    json,
    ascii,
    color: !values['no-color'],
  };
}
