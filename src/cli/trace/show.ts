import { ndjsonLine, readNdjson, type NdjsonTrace } from '../../sinks/ndjson.ts';
import { EXIT, type CommandContext } from '../context.ts';
import { failures, overview, succeeded, turnMs, turnReport } from '../show/recorded-report.ts';
import { recorded, type Recorded, type RecordedCall, type RecordedTurn } from './recorded.ts';
import { SHOW_HELP, parseShow, type ShowCommand } from '../arguments/show.ts';
import { styleOf, type Output } from '../show/terminal.ts';
import { messageLine } from '../show/text.ts';
import { FileError, UsageError } from '../arguments/usage.ts';

const REASONS: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such file',
  EISDIR: 'is a folder; name a trace file in it',
  EACCES: 'may not be read; look at its permissions',
};

const read = async (path: string): Promise<NdjsonTrace> => {
  let trace: NdjsonTrace;
  try {
    trace = await readNdjson(path);
  } catch (error) {
    const { code = String(error) } = error as NodeJS.ErrnoException;
    throw new FileError(`${path}: ${REASONS[code] ?? `cannot be read (${code})`}`, { cause: error });
  }
  if (trace.events.length === 0)
    throw new FileError(`${path}: holds no events of spillway; name a file of spillway run --trace, or of ndjsonSink`);
  return trace;
};

/** What is not shown, since the file has it torn or not at all, and whether it can be believed. */
const tellLosses = ({ leftOut, leftOutCount, dropped, changed }: NdjsonTrace, stderr: Output): void => {
  const [first] = leftOut;
  if (first !== undefined) {
    const lines = `${leftOutCount} ${leftOutCount === 1 ? 'line is' : 'lines are'}`;
    const where = `line ${first.line} (${first.why.replaceAll('_', ' ')})`;
    stderr.write(`${messageLine(`note: ${lines} left out, the first is ${where}`)}\n`);
  }
  if (dropped > 0)
    stderr.write(`note: the file says that ${dropped} ${dropped === 1 ? 'event was' : 'events were'} lost\n`);
  if (changed === true)
    stderr.write('note: its lines are not those that were written: one was changed, moved, taken out or put in\n');
};

/** The turn that `--turn` means: a number of the list, or the only one whose id begins so. */
const picked = ({ turns }: Recorded, wanted: string): RecordedTurn => {
  const named = turns.filter(({ turnId, number }) => turnId.startsWith(wanted) || String(number) === wanted);
  const exact = named.find(({ turnId, number }) => turnId === wanted || String(number) === wanted);
  const [only, ...others] = exact === undefined ? named : [exact];
  if (only === undefined)
    throw new UsageError(
      `there is no turn ${JSON.stringify(wanted.slice(0, 64))}; there are ${turns.length}, which spillway show lists`,
    );
  if (others.length > 0)
    throw new UsageError(
      `--turn ${wanted.slice(0, 64)} is how ${named.length} turns begin; write more of its id, or its number`,
    );
  return only;
};

const turnJson = (turn: RecordedTurn): unknown => {
  const { turnId, number, status, result, timeline } = turn;
  const states = new Map(result?.nodes.map((node) => [node.id, node]));
  const nodes = timeline.nodes.map(({ nodeId, toolName, state = null, attempts }) => {
    const { result: call, reason } = states.get(nodeId) ?? {};
    return {
      id: nodeId,
      toolName,
      state,
      attempts,
      ...(call === undefined
        ? {}
        : { durationMs: call.durationMs, ...(call.error === undefined ? {} : { error: call.error }) }),
      ...(reason === undefined ? {} : { reason }),
    };
  });
  return {
    kind: 'turn',
    number,
    turnId,
    status,
    durationMs: turnMs(turn),
    ...(result === undefined ? {} : { summary: result.summary }),
    nodes,
  };
};

const callJson = ({ callId, toolName, status, result, startMs, endMs }: RecordedCall): unknown => ({
  kind: 'call',
  callId,
  toolName,
  status,
  durationMs: result?.durationMs ?? endMs - startMs,
  ...(result === undefined
    ? {}
    : { attempts: result.attempts, ...(result.error === undefined ? {} : { error: result.error }) }),
});

const json = ({ turns, calls }: Recorded, { failed }: ShowCommand): string =>
  [
    ...turns.filter((turn) => !failed || !succeeded(turn)).map((turn) => ndjsonLine(turnJson(turn))),
    ...calls.filter((call) => !failed || !succeeded(call)).map((call) => ndjsonLine(callJson(call))),
  ].join('');

const shownAs = (all: Recorded, command: ShowCommand, stdout: Output): string => {
  const shown = command.turn === undefined ? all : { turns: [picked(all, command.turn)], calls: [] };
  if (command.json) return json(shown, command);
  const style = styleOf(stdout, command);
  const [only] = shown.turns;
  if (only !== undefined && shown.turns.length + shown.calls.length === 1)
    return turnReport(only, style, command.failed);
  if (command.failed) return failures(shown, style);
  return `${overview(shown, style)}${shown.turns.length === 0 ? '' : '\n--turn shows one of them in full\n'}`;
};

/** A file is anybody's: an event in it may have anything anywhere. */
const ofEvents = <T>(path: string, work: () => T): T => {
  try {
    return work();
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    const why = messageLine(error.message);
    throw new FileError(
      `${path}: an event in it is not as spillway writes it (${why}); spillway inspect shows what it can of it`,
      { cause: error },
    );
  }
};

/**
 * Runs `spillway show`: a trace for a person, or summed up for a program.
 * @returns the exit code
 * @throws UsageError or FileError
 */
export async function runShow(args: readonly string[], { stdout, stderr }: CommandContext): Promise<number> {
  const command = parseShow(args);
  if (command === undefined) {
    stdout.write(SHOW_HELP);
    return EXIT.fine;
  }
  const trace = await read(command.path);
  const all = ofEvents(command.path, () => recorded(trace.events));
  if (all.turns.length + all.calls.length === 0) throw new FileError(`${command.path}: tells of no turn and no call`);
  stdout.write(ofEvents(command.path, () => shownAs(all, command, stdout)));
  tellLosses(trace, stderr);
  return EXIT.fine;
}
