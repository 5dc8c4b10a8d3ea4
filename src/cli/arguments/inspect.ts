import { oneFile, parseOptions } from './options.ts';
import { UsageError } from './usage.ts';

export interface InspectCommand {
  readonly path: string;
  /** Another trace to compare with. */
  readonly other: string | undefined;
  /** Where the page is served; 0 is a free port. */
  readonly port: number;
}

export interface ReportCommand {
  readonly path: string;
  readonly other: string | undefined;
  readonly out: string;
}

export const INSPECT_HELP: string = `spillway inspect TRACE.ndjson [OTHER.ndjson] [options]

Serves a page that shows a trace, of spillway run --trace or of ndjsonSink: turns, attempts, backoffs,
breakers and deadlines, and why. What is added to the file is shown as it comes. Its address, with a
token, goes to stdout; it is served at this machine only, until it is interrupted. With another trace,
its turns can be compared with those of that one: node by node, decision by decision.

  --port N        the port to listen at (0, the default: any free one)
  --help          this text

Exit codes: 0 interrupted, 2 usage, or a file that cannot be read.
`;

export const INSPECT_OPTIONS = {
  port: { type: 'string' },
  help: { type: 'boolean', short: 'h', default: false },
} as const;

export const REPORT_HELP: string = `spillway report TRACE.ndjson [OTHER.ndjson] --out FILE.html

Writes a trace as one file of HTML: the page of spillway inspect with its data. It opens from disk,
needs no network, and can be sent on. A file that is there is overwritten. With another trace, the last
turns can be compared with those of that one.

  --out FILE      the file to write; -o for short
  --help          this text

Exit codes: 0 written, 2 usage, or a file that cannot be read or written.
`;

export const REPORT_OPTIONS = {
  out: { type: 'string', short: 'o' },
  help: { type: 'boolean', short: 'h', default: false },
} as const;

/**
 * Reads a port.
 * @throws UsageError that names the option
 */
export function portOf(option: string, text: string): number {
  if (!/^\d{1,5}$/.test(text) || Number(text) > 65_535)
    throw new UsageError(`${option} must be a port from 0 to 65535, not ${JSON.stringify(text)}`);
  return Number(text);
}

/** `--inspect` may stand alone, which `parseArgs` does not know: then any free port is meant. */
export const withPort = (args: readonly string[]): string[] =>
  args.map((arg, index) => (arg === '--inspect' && !/^\d+$/.test(args[index + 1] ?? '') ? '--inspect=0' : arg));

/** The trace, and another one to compare it with where there are two. */
const traces = (
  command: string,
  [path, other, ...rest]: readonly string[],
): { readonly path: string; readonly other: string | undefined } => {
  if (rest.length > 0)
    throw new UsageError(
      `${command.split(' ')[0]} takes two trace files at most, not ${rest.length + 2}; ` +
        `leave out ${JSON.stringify(rest[0])}`,
    );
  const own = oneFile(command, 'trace file', path === undefined ? [] : [path]);
  return { path: own, other: other === undefined ? other : oneFile(command, 'other trace file', [other]) };
};

/**
 * Reads what follows `spillway inspect`; `undefined` asks for help.
 * @throws UsageError
 */
export function parseInspect(args: readonly string[]): InspectCommand | undefined {
  const { values, positionals } = parseOptions(args, INSPECT_OPTIONS);
  if (values.help) return undefined;
  return {
    ...traces('inspect TRACE.ndjson', positionals),
    port: portOf('--port', values.port ?? '0'),
  };
}

/**
 * Reads what follows `spillway report`; `undefined` asks for help.
 * @throws UsageError
 */
export function parseReport(args: readonly string[]): ReportCommand | undefined {
  const { values, positionals } = parseOptions(args, REPORT_OPTIONS);
  if (values.help) return undefined;
  const given = traces('report TRACE.ndjson --out FILE.html', positionals);
  const { out = '' } = values;
  if (out === '') throw new UsageError('--out is missing; write spillway report TRACE.ndjson --out FILE.html');
  return { ...given, out };
}
