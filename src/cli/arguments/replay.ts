import { portOf, withPort } from './inspect.ts';
import { oneFile, parseOptions } from './options.ts';
import { UsageError } from './usage.ts';

export interface ReplayCommand {
  readonly path: string;
  readonly policies: readonly string[];
  readonly set: readonly string[];
  readonly rank?: string;
  readonly running: boolean;
  /** A page to write. */
  readonly html?: string;
  /** Where both sides are served beside each other; 0 is a free port. */
  readonly inspectPort?: number;
  readonly json: boolean;
}

export const REPLAY_HELP: string = `spillway replay TRACE.ndjson [options]

Says what another policy would have made of a recorded trace, from the very code that runs. First the
recorded policies decide it once more, and must decide the same; else it is refused, with the first
difference. What a trace cannot tell is counted, and bounded: all of it good, all of it bad, and as
the same tool did in the same minute.

  --policy FILE   a policy file; what it leaves out stays as recorded; may be given again
  --set OPTION    one option on top, such as pay.retry.maxAttempts=2; may be given again
  --rank FILE     values by option, pay.retry.maxAttempts: [1, 2, 3]; tries all combinations, best first
  --running       the trace may have no end yet, since its process runs or was killed: what is there is
                  replayed up to the last moment at which no call was open
  --html FILE     write a page of it: of each call that is decided otherwise both sides beside each other,
                  attempt by attempt, the worst first
  --inspect PORT  a page at this loopback port with the recorded side and the other policy's, turn by turn,
                  what is decided otherwise first, until interrupted; its address goes to stderr (0, or
                  without PORT: a free one). With --rank it shows the best policy
  --json          all that was found as JSON
  --help          this text

Exit codes: 0 safe to ship, 1 worse for some calls, 2 usage, or a trace or policy that cannot be used,
3 cannot tell, since more than 20 % of the attempts are not in the trace, the bounds disagree, or no
call of it is of a tool that is changed.
With --rank they are of the best policy.
`;

export const REPLAY_OPTIONS = {
  policy: { type: 'string', multiple: true },
  set: { type: 'string', multiple: true },
  rank: { type: 'string' },
  running: { type: 'boolean', default: false },
  html: { type: 'string' },
  inspect: { type: 'string' },
  json: { type: 'boolean', default: false },
  help: { type: 'boolean', short: 'h', default: false },
} as const;

/** A page has room for two sides: the recorded one, and one other. */
const checkInspected = (policies: readonly string[], set: readonly string[], rank: string | undefined): void => {
  if (policies.length > 1 && rank === undefined)
    throw new UsageError(
      `--inspect shows one policy beside the recorded one, not ${policies.length}; leave out all --policy but one`,
    );
  if (policies.length + set.length === 0 && rank === undefined)
    throw new UsageError('--inspect shows another policy beside the recorded one; give --policy, --set or --rank, too');
};

/**
 * Reads what follows `spillway replay`; `undefined` asks for help.
 * @throws UsageError
 */
export function parseReplay(args: readonly string[]): ReplayCommand | undefined {
  const { values, positionals } = parseOptions(withPort(args), REPLAY_OPTIONS);
  if (values.help) return undefined;
  const { policy: policies = [], set = [], rank, running, html, inspect, json } = values;
  if ([...policies, rank, html].includes(''))
    throw new UsageError('--policy, --rank and --html need the name of a file');
  if (inspect !== undefined) checkInspected(policies, set, rank);
  const path = oneFile('replay TRACE.ndjson', 'trace file', positionals);
  return {
    path,
    policies,
    set,
    running,
    json,
    ...(rank === undefined ? {} : { rank }),
    ...(html === undefined ? {} : { html }),
    ...(inspect === undefined ? {} : { inspectPort: portOf('--inspect', inspect) }),
  };
}
