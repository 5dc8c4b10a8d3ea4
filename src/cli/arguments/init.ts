import { parseOptions } from './options.ts';
import { UsageError } from './usage.ts';

export interface InitCommand {
  /** Absent: the first that is there of the usual ones. */
  readonly source?: string;
  readonly out: string;
}

/** Where programs keep their MCP servers, seen from the folder of a project. */
export const USUAL_SOURCES: readonly string[] = ['mcp.json', '.mcp.json', '.cursor/mcp.json', '.vscode/mcp.json'];

export const INIT_HELP: string = `spillway init [MCP.json] [options]

Writes a plan with the servers of an mcp.json, as Claude, Cursor and VS Code keep it, and one call to
fill in. Starts nothing, and never overwrites a file. Without a name it takes the first that is there
of ${USUAL_SOURCES.join(', ')}.

  --out FILE      the plan file: plan.yaml
  --help          this text

Exit codes: 0 written, 2 usage, bad mcp.json, or a file that is there already.
Values of env and headers are copied and may be secrets: the plan is readable by its owner only.
`;

export const INIT_OPTIONS = {
  out: { type: 'string', default: 'plan.yaml' },
  help: { type: 'boolean', short: 'h', default: false },
} as const;

/**
 * Reads what follows `spillway init`; `undefined` asks for help.
 * @throws UsageError
 */
export function parseInit(args: readonly string[]): InitCommand | undefined {
  const { values, positionals } = parseOptions(args, INIT_OPTIONS);
  if (values.help) return undefined;
  const [source, ...rest] = positionals;
  if (rest.length > 0)
    throw new UsageError(`init takes one mcp.json, not ${positionals.length}; leave out ${JSON.stringify(rest[0])}`);
  if (source === '') throw new UsageError('the name of the mcp.json is empty; leave it out, or name a file');
  if (values.out === '') throw new UsageError('--out needs the name of a file');
  return { out: values.out, ...(source === undefined ? {} : { source }) };
}
