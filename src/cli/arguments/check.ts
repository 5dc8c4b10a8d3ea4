import { parseOptions } from './options.ts';
import { UsageError } from './usage.ts';

export interface CheckCommand {
  readonly paths: readonly string[];
  readonly json: boolean;
}

export const CHECK_HELP: string = `spillway check FILE... [options]

Reads plan files, REST manifests, files of spillway mcp, and policies and scenarios of spillway
replay and simulate, and says all that is wrong with them: keys, policies, names, references,
circles. Starts nothing, connects to nothing. What the servers themselves would have to say is
asked by spillway tools.

  --json          a JSON object for each file, a line each
  --help          this text

Exit codes: 0 nothing is wrong (there may be warnings), 2 usage, or something is wrong.
`;

export const CHECK_OPTIONS = {
  json: { type: 'boolean', default: false },
  help: { type: 'boolean', short: 'h', default: false },
} as const;

/**
 * Reads what follows `spillway check`; `undefined` asks for help.
 * @throws UsageError
 */
export function parseCheck(args: readonly string[]): CheckCommand | undefined {
  const { values, positionals } = parseOptions(args, CHECK_OPTIONS);
  if (values.help) return undefined;
  if (positionals.length === 0 || positionals.includes(''))
    throw new UsageError('the file is missing; write spillway check PLAN.yaml');
  return { paths: positionals, json: values.json };
}
