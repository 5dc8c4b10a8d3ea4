import { oneFile, parseOptions } from './options.ts';
import { UsageError } from './usage.ts';

export interface InspectCommand {
  readonly path: string;
  /** Where the page is served; 0 is a free port. */
  readonly port: number;
}

export interface ReportCommand {
  readonly path: string;
  readonly out: string;
}

export const INSPECT_HELP: string = `spillway inspect TRACE.ndjson [options]

Serves a page that shows a trace, of spillway run --trace or of ndjsonSink: turns, attempts, backoffs,
breakers and deadlines, and why. What is added to the file is shown as it comes. Its address, with a
token, goes to stdout; it is served at this machine only, until it is interrupted.

  --port N        the port to listen at (0, the default: any free one)
  --help          this text

Exit codes: 0 interrupted, 2 usage, or a file that cannot be read.
`;

export const INSPECT_OPTIONS = {
  port: { type: 'string' },
  help: { type: 'boolean', short: 'h', default: false },
} as const;

export const REPORT_HELP: string = `spillway report TRACE.ndjson --out FILE.html

Writes a trace as one file of HTML: the page of spillway inspect with its data. It opens from disk,
needs no network, and can be sent on. A file that is there is overwritten.

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

/**
 * Reads what follows `spillway inspect`; `undefined` asks for help.
 * @throws UsageError
 */
export function parseInspect(args: readonly string[]): InspectCommand | undefined {
  const { values, positionals } = parseOptions(args, INSPECT_OPTIONS);
  if (values.help) return undefined;
  return {
    path: oneFile('inspect TRACE.ndjson', 'trace file', positionals),
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
  const path = oneFile('report TRACE.ndjson --out FILE.html', 'trace file', positionals);
  const { out = '' } = values;
  if (out === '') throw new UsageError('--out is missing; write spillway report TRACE.ndjson --out FILE.html');
  return { path, out };
}
