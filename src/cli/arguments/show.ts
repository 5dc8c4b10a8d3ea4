import { oneFile, parseOptions } from './options.ts';
import { UsageError } from './usage.ts';

export interface ShowCommand {
  readonly path: string;
  /** A turn's number in the file, from 1, or the beginning of its id. */
  readonly turn?: string;
  readonly failed: boolean;
  readonly json: boolean;
  readonly ascii: boolean;
  readonly color: boolean;
}

export const SHOW_HELP: string = `spillway show TRACE.ndjson [options]

Shows a trace, of spillway run --trace or of ndjsonSink: a single turn as its table, its diagram and
its sentence; several, and calls outside of turns, as lists, from which --turn picks one.

  --turn T        this turn in full: its number in the list, or how its id begins
  --failed        what did not succeed, and what happened to it, event by event
  --json          a JSON object for each turn and each call outside of turns, a line each
  --no-color      no colours (so does NO_COLOR in the environment)
  --ascii         draw with ASCII characters only
  --help          this text

Exit codes: 0 shown, 2 usage, or a file that cannot be read or holds no events.
`;

export const SHOW_OPTIONS = {
  turn: { type: 'string' },
  failed: { type: 'boolean', default: false },
  json: { type: 'boolean', default: false },
  'no-color': { type: 'boolean', default: false },
  ascii: { type: 'boolean', default: false },
  help: { type: 'boolean', short: 'h', default: false },
} as const;

/**
 * Reads what follows `spillway show`; `undefined` asks for help.
 * @throws UsageError
 */
export function parseShow(args: readonly string[]): ShowCommand | undefined {
  const { values, positionals } = parseOptions(args, SHOW_OPTIONS);
  if (values.help) return undefined;
  const { turn, failed, json, ascii } = values;
  if (turn === '') throw new UsageError('--turn needs a number, or how an id begins');
  const path = oneFile('show TRACE.ndjson', 'trace file', positionals);
  return { path, failed, json, ascii, color: !values['no-color'], ...(turn === undefined ? {} : { turn }) };
}
