import { once } from 'node:events';
import type { TraceEvent } from '../../contract/event.ts';
import { serveInspector, serveTraceFile, type InspectorServer } from '../../gateway/inspector-server.ts';
import { htmlReportSink } from '../../sinks/html-report.ts';
import { readNdjson } from '../../sinks/ndjson.ts';
import type { Spillway } from '../../spillway.ts';
import { INSPECT_HELP, REPORT_HELP, parseInspect, parseReport } from '../arguments/inspect.ts';
import { FileError, UsageError } from '../arguments/usage.ts';
import { EXIT, type CommandContext } from '../context.ts';
import { isOneOf } from './same-file.ts';

const REASONS: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such file',
  EISDIR: 'is a folder; name a file in it',
  EACCES: 'may not be used; look at its permissions',
};

const fileError = (file: string, error: unknown): FileError => {
  const { code = String(error) } = error as NodeJS.ErrnoException;
  return new FileError(`${file}: ${REASONS[code] ?? `cannot be used (${code})`}`, { cause: error });
};

/** A port that may not be used has a code, too, and no path. */
const isFileError = (error: unknown): boolean => (error as NodeJS.ErrnoException).path !== undefined;

/** Waits for the interruption. */
export const untilAborted = async (signal: AbortSignal): Promise<void> => {
  if (!signal.aborted) await once(signal, 'abort');
};

/**
 * Runs `spillway inspect`: serves the page of a trace file until it is interrupted.
 * @returns the exit code
 * @throws UsageError or FileError
 */
export async function runInspect(
  args: readonly string[],
  { stdout, runtime, signal }: CommandContext,
): Promise<number> {
  const command = parseInspect(args);
  if (command === undefined) {
    stdout.write(INSPECT_HELP);
    return EXIT.fine;
  }
  const { path: file, other, port } = command;
  let server: InspectorServer;
  try {
    server = await serveTraceFile(file, { port, runtime, ...(other === undefined ? {} : { compareWith: other }) });
  } catch (error) {
    if (isFileError(error)) throw fileError((error as NodeJS.ErrnoException).path ?? file, error);
    throw new UsageError((error as Error).message, { cause: error });
  }
  stdout.write(`${server.page}\n`);
  await untilAborted(signal);
  await server.close();
  return EXIT.fine;
}

const eventsIn = async (file: string): Promise<readonly TraceEvent[]> => {
  const { events } = await readNdjson(file).catch((error: unknown) => {
    throw fileError(file, error);
  });
  if (events.length === 0)
    throw new FileError(`${file}: holds no events of spillway; name a file of spillway run --trace, or of ndjsonSink`);
  return events;
};

/**
 * Runs `spillway report`: a trace as one file of HTML.
 * @returns the exit code
 * @throws UsageError or FileError
 */
export async function runReport(args: readonly string[], { stdout }: CommandContext): Promise<number> {
  const command = parseReport(args);
  if (command === undefined) {
    stdout.write(REPORT_HELP);
    return EXIT.fine;
  }
  const { other } = command;
  if (await isOneOf(command.out, [command.path, ...(other === undefined ? [] : [other])]))
    throw new UsageError('--out names the trace itself, which it would overwrite; name another file');
  const events = await eventsIn(command.path);
  const compareWith = other === undefined ? [] : await eventsIn(other);
  const report = htmlReportSink({ maxEvents: 1_000_000, compareWith });
  for (const event of events) report.next(event);
  await report.write(command.out).catch((error: unknown) => {
    throw fileError(command.out, error);
  });
  return EXIT.fine;
}

/** @throws UsageError when the port of `--inspect` cannot be used */
export async function orUsage(serving: Promise<InspectorServer>): Promise<InspectorServer> {
  try {
    return await serving;
  } catch (error) {
    throw new UsageError(`--inspect: ${(error as Error).message}`, { cause: error });
  }
}

/**
 * Serves the inspector of a run, and says where.
 * @throws UsageError when the port cannot be used
 */
export async function openInspector(
  layer: Spillway,
  port: number,
  { runtime }: Pick<CommandContext, 'runtime'>,
  note: (text: string) => void,
): Promise<InspectorServer> {
  const server = await orUsage(serveInspector(layer, { port, runtime }));
  note(`inspect: ${server.page}`);
  return server;
}

/** Waits until a person has seen enough of it: the interruption. */
export async function untilSeen(signal: AbortSignal, note: (text: string) => void): Promise<void> {
  if (signal.aborted) return;
  note('inspect: the turn is over; the page stays until this is interrupted (Ctrl-C)');
  await untilAborted(signal);
}

/** Collects the trace of a run for a report, and writes it. */
export function reportOf(layer: Spillway, file: string): { readonly write: () => Promise<Error | undefined> } {
  const report = htmlReportSink();
  layer.trace$.subscribe(report);
  return {
    write: () =>
      report.write(file).then(
        () => undefined,
        (error: unknown) => fileError(file, error),
      ),
  };
}
