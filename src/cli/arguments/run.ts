import { fromTraceparent } from '../../sinks/opentelemetry/api.ts';
import { COMMAND_NAMES, isCommandName } from '../command-names.ts';
import { portOf, withPort } from './inspect.ts';
import { parseOptions } from './options.ts';
import { choices } from '../show/text.ts';
import { UsageError } from './usage.ts';

export { UsageError } from './usage.ts';

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
      /** Where the inspector of the run is served; 0 is a free port. */
      readonly inspectPort?: number;
      /** Where its report is written. */
      readonly htmlPath?: string;
      /** Where approvals are answered and budgets are kept. */
      readonly storeUrl?: string;
      /** The fleet that the turn is handed to; empty for that of the environment. */
      readonly engine?: string;
      /** The turn's id there. */
      readonly turnId?: string;
      /** The W3C trace context that the turn is part of. */
      readonly traceparent?: string;
    };

export type RunCommand = Extract<Command, { name: 'run' }>;

const SEED_MAX = 2 ** 32 - 1;

export const RUN_HELP: string = `spillway run PLAN.yaml [options]

Runs a turn of tool calls over MCP servers: retries, circuit breakers, alternatives, a deadline,
and in the end everything that completed. Progress goes to stderr, the result to stdout.

  --json          events on stdout, one JSON object a line; the last line is the settled turn
  --trace FILE    every event, also those after the deadline, to FILE, one JSON object a line
  --seed N        the same jitter and injected faults each time (0 to ${SEED_MAX})
  --strict        exit 3 when the turn is partial
  --admin PORT    an admin endpoint at this loopback port while it runs (0: a free one); its address
                  and token go to stderr
  --inspect PORT  a page at this loopback port that shows the turn as it runs, until interrupted; its
                  address goes to stderr (0, or without PORT: a free one)
  --html FILE     what happened as one file of HTML, which needs no network
  --store URL     where its approvals are answered, and its budgets kept: as for spillway approve
  --engine URL    hand the turn to a fleet (spillway worker), which goes on with it if this process
                  ends; prints its id, and shows it. --engine= takes SPILLWAY_ENGINE
  --turn-id ID    its id there: submitted again, the same plan is known (default: a new id)
  --traceparent CONTEXT  the W3C trace context that the turn is part of; servers get it with each
                  call
  --no-color      no colours (so does NO_COLOR in the environment)
  --ascii         draw with ASCII characters only
  --help          this text

Exit codes: 0 completed or partial, 1 failed or escalated, 2 usage or bad plan (nothing was called),
3 partial with --strict, 130 interrupted.
A plan starts servers, which are programs: run only plans whose commands you would run yourself.
`;

export const RUN_OPTIONS = {
  json: { type: 'boolean', default: false },
  trace: { type: 'string' },
  seed: { type: 'string' },
  admin: { type: 'string' },
  inspect: { type: 'string' },
  html: { type: 'string' },
  store: { type: 'string' },
  engine: { type: 'string' },
  'turn-id': { type: 'string' },
  traceparent: { type: 'string' },
  strict: { type: 'boolean', default: false },
  'no-color': { type: 'boolean', default: false },
  ascii: { type: 'boolean', default: false },
  help: { type: 'boolean', short: 'h', default: false },
  version: { type: 'boolean', short: 'v', default: false },
} as const;

/** What to do about a first word that is no command: the nearest one, or else all. */
const noCommand = (name: string): UsageError => {
  // Words that other programs have for what is an option here.
  const known = [...COMMAND_NAMES, '--version', '--help'];
  return new UsageError(
    `there is no command ${JSON.stringify(name.slice(0, 64))}; ${choices(name, known, known.length)}`,
  );
};

const seedOf = (text: string): number => {
  const seed = Number(text);
  if (!/^\d{1,10}$/.test(text) || seed > SEED_MAX)
    throw new UsageError(`--seed must be an integer from 0 to ${SEED_MAX}, not ${JSON.stringify(text)}`);
  return seed;
};

const traceparentOf = (text: string): string => {
  if (fromTraceparent(text) === undefined) {
    const rule =
      '--traceparent must be a W3C traceparent, such as 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
    throw new UsageError(`${rule}, not ${JSON.stringify(text.slice(0, 64))}`);
  }
  return text;
};

/** What a turn that runs elsewhere cannot have from here. */
const checkElsewhere = (values: Readonly<Record<string, string | boolean | undefined>>): void => {
  const isElsewhere = values['engine'] !== undefined;
  if (!isElsewhere && values['turn-id'] !== undefined)
    throw new UsageError('--turn-id is the id of a turn of a fleet; give --engine, too');
  const own = ['seed', 'admin', 'trace', 'inspect', 'html', 'store'].find(
    (name) => isElsewhere && values[name] !== undefined,
  );
  if (own !== undefined) throw new UsageError(`--${own} is about a turn that runs here; leave it out, or --engine`);
};

/**
 * Reads the line of `spillway run`, whose options may come first.
 * @param args without the program's own name
 * @throws UsageError
 */
export function parseCommand(args: readonly string[]): Command {
  const { values, positionals } = parseOptions(withPort(args), RUN_OPTIONS);
  if (values.help) return { name: 'help' };
  if (values.version) return { name: 'version' };
  const [name, planPath, ...rest] = positionals;
  if (name === undefined) throw new UsageError(`a command is missing; there is ${COMMAND_NAMES.join(', ')}`);
  if (name !== 'run' && isCommandName(name))
    throw new UsageError(`the command comes first; write spillway ${name} and then its options`);
  if (name !== 'run') throw noCommand(name);
  if (planPath === undefined || planPath === '')
    throw new UsageError('the plan file is missing; write spillway run PLAN.yaml');
  if (rest.length > 0)
    throw new UsageError(`run takes one plan file, not ${rest.length + 1}; leave out ${JSON.stringify(rest[0])}`);
  if (values.html === '') throw new UsageError('--html needs the name of a file');
  checkElsewhere(values);
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
    ...(values.admin === undefined ? {} : { adminPort: portOf('--admin', values.admin) }),
    ...(values.inspect === undefined ? {} : { inspectPort: portOf('--inspect', values.inspect) }),
    ...(values.html === undefined ? {} : { htmlPath: values.html }),
    ...(values.store === undefined ? {} : { storeUrl: values.store }),
    ...(values.engine === undefined ? {} : { engine: values.engine }),
    ...(values['turn-id'] === undefined ? {} : { turnId: values['turn-id'] }),
    ...(values.traceparent === undefined ? {} : { traceparent: traceparentOf(values.traceparent) }),
  };
}
