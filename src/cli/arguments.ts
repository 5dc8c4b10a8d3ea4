import { parseArgs } from 'node:util';
import { choices } from './text.ts';

/** What the command line asks for. */
export type Command =
  | { readonly name: 'help' }
  | { readonly name: 'version' }
  | {
      readonly name: 'run';
      readonly planPath: string;
      readonly json: boolean;
      readonly strict: boolean;
      readonly ascii: boolean;
      readonly color: boolean;
      readonly tracePath?: string;
      readonly seed?: number;
      /** Where the admin page of the run is served; 0 is a free port. */
      readonly adminPort?: number;
    };

export type RunCommand = Extract<Command, { name: 'run' }>;

/** A command line that asks for nothing that exists. */
export class UsageError extends Error {
  override readonly name: string = 'UsageError';
}

const SEED_MAX = 2 ** 32 - 1;

export const HELP: string = `spillway run PLAN.yaml [options]

Runs a turn of tool calls over MCP servers: retries, circuit breakers, alternatives, a deadline,
and in the end everything that completed. Progress goes to stderr, the result to stdout.

  --json          events on stdout, one JSON object a line; the last line is the settled turn
  --trace FILE    every event, also those after the deadline, to FILE, one JSON object a line
  --seed N        the same jitter and injected faults each time (0 to ${SEED_MAX})
  --strict        exit 3 when the turn is partial
  --admin PORT    an admin page at this loopback port while it runs (0: a free one); its address
                  and token go to stderr
  --no-color      no colours (so does NO_COLOR in the environment)
  --ascii         draw with ASCII characters only
  --help          this text
  --version       the version

Exit codes: 0 completed or partial, 1 failed or escalated, 2 usage or bad plan (nothing was called),
3 partial with --strict, 130 interrupted.
spillway admin --help says how to ask and order about a running program.
spillway gateway --help says how to serve tools to Claude clients.
A plan starts servers, which are programs: run only plans whose commands you would run yourself.
`;

const OPTIONS = {
  json: { type: 'boolean', default: false },
  trace: { type: 'string' },
  seed: { type: 'string' },
  admin: { type: 'string' },
  strict: { type: 'boolean', default: false },
  'no-color': { type: 'boolean', default: false },
  ascii: { type: 'boolean', default: false },
  help: { type: 'boolean', short: 'h', default: false },
  version: { type: 'boolean', short: 'v', default: false },
} as const;

const parse = (args: readonly string[]): ReturnType<typeof parseArgs<{ options: typeof OPTIONS; allowPositionals: true }>> => {
  try {
    return parseArgs({ args: [...args], options: OPTIONS, allowPositionals: true });
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    const [, option] = /'(--?[^']*)'/.exec(message) ?? [];
    if (code !== 'ERR_PARSE_ARGS_UNKNOWN_OPTION' || option === undefined) throw new UsageError(message, { cause: error });
    throw new UsageError(`there is no option ${option}; ${choices(option, Object.keys(OPTIONS).map((name) => `--${name}`))}`, { cause: error });
  }
};

const portOf = (text: string): number => {
  if (!/^\d{1,5}$/.test(text) || Number(text) > 65_535) throw new UsageError(`--admin must be a port from 0 to 65535, not ${JSON.stringify(text)}`);
  return Number(text);
};

const seedOf = (text: string): number => {
  const seed = Number(text);
  if (!/^\d{1,10}$/.test(text) || seed > SEED_MAX) throw new UsageError(`--seed must be an integer from 0 to ${SEED_MAX}, not ${JSON.stringify(text)}`);
  return seed;
};

/**
 * Reads a command line.
 * @param args without the program's own name
 * @throws UsageError
 */
export function parseCommand(args: readonly string[]): Command {
  const { values, positionals } = parse(args);
  if (values.help) return { name: 'help' };
  if (values.version) return { name: 'version' };
  const [name, planPath, ...rest] = positionals;
  if (name === undefined) throw new UsageError('a command is missing; write spillway run PLAN.yaml');
  if (name !== 'run') throw new UsageError(`there is no command ${JSON.stringify(name)}; write spillway run PLAN.yaml`);
  if (planPath === undefined || planPath === '') throw new UsageError('the plan file is missing; write spillway run PLAN.yaml');
  if (rest.length > 0) throw new UsageError(`run takes one plan file, not ${rest.length + 1}; leave out ${JSON.stringify(rest[0])}`);
  if (values.trace === '') throw new UsageError('--trace needs the name of a file');
  return {
    name: 'run',
    planPath,
    json: values.json,
    strict: values.strict,
    ascii: values.ascii,
    color: !values['no-color'],
    ...(values.trace === undefined ? {} : { tracePath: values.trace }),
    ...(values.seed === undefined ? {} : { seed: seedOf(values.seed) }),
    ...(values.admin === undefined ? {} : { adminPort: portOf(values.admin) }),
  };
}
