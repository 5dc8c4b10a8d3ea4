import { parseOptions } from './options.ts';
import { UsageError } from './usage.ts';

/** `spillway approve`: which question, what is said to it, and where it is. */
export interface ApproveCommand {
  /** Absent: the questions that nobody has answered are listed. */
  readonly id?: string;
  readonly approved: boolean;
  readonly by?: string;
  readonly reason?: string;
  readonly store: string | undefined;
  readonly json: boolean;
}

export const APPROVE_HELP: string = `spillway approve [ID] [options]

Lists the calls that wait for a person, or approves one of them. It runs once, with the input shown.

  --deny          say no to it
  --reason TEXT   why: a model is told of a no
  --by NAME       who says so, for the trace (default: USER of the environment)
  --store URL     where the program keeps its keys: redis://HOST:PORT/DB?prefix=spillway:, rediss://
                  over TLS, or sqlite:FILE; or SPILLWAY_STORE, which others cannot read
  --json          as JSON, one object a line
  --help          this text

Whoever can write to the store can approve. Exit codes: 0 done, 1 no such question or too late, 2 usage.
`;

export const APPROVE_OPTIONS = {
  deny: { type: 'boolean', default: false },
  reason: { type: 'string' },
  by: { type: 'string' },
  store: { type: 'string' },
  json: { type: 'boolean', default: false },
  help: { type: 'boolean', short: 'h', default: false },
} as const;

const BY_MAX = 256;
const REASON_MAX = 1_000;

const checkText = (option: string, text: string | undefined, max: number): void => {
  if (text !== undefined && (text === '' || text.length > max))
    throw new UsageError(`--${option} must be a text of 1 to ${max} characters`);
};

/**
 * Reads what follows `spillway approve`; `undefined` asks for help.
 * @throws UsageError
 */
export function parseApprove(
  args: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
): ApproveCommand | undefined {
  const { values, positionals } = parseOptions(args, APPROVE_OPTIONS);
  if (values.help) return undefined;
  const [id, ...rest] = positionals;
  if (rest.length > 0)
    throw new UsageError(`approve takes one id at a time; leave out ${JSON.stringify(rest[0]?.slice(0, 64))}`);
  const { deny, reason, by = env['USER'], store = env['SPILLWAY_STORE'], json } = values;
  if (id === undefined && (deny || reason !== undefined))
    throw new UsageError('--deny and --reason are of one question; write its id: spillway approve ID --deny');
  if (id === '') throw new UsageError('an id has characters; spillway approve lists the ids there are');
  checkText('reason', reason, REASON_MAX);
  checkText('by', by === '' ? undefined : by, BY_MAX);
  return {
    approved: !deny,
    store,
    json,
    ...(id === undefined ? {} : { id }),
    ...(by === undefined || by === '' ? {} : { by }),
    ...(reason === undefined ? {} : { reason }),
  };
}
