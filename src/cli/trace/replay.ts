import { readFile, writeFile } from 'node:fs/promises';
import * as z from 'zod';
import { SimulationInputError, readPolicyFile, readYamlAs } from '../../simulate/policy-file.ts';
import { inspectedSides } from '../../simulate/replay/page/inspected.ts';
import { replayPage } from '../../simulate/replay/page/page.ts';
import { ReplayRefusal } from '../../simulate/replay/refusal.ts';
import { replayTrace, type ReplayOptions, type ReplayReport } from '../../simulate/replay/replay.ts';
import { replayJson, replayText } from '../../simulate/replay/report.ts';
import type { WhatIf } from '../../simulate/replay/what-if.ts';
import { ndjsonLine, readNdjson } from '../../sinks/ndjson.ts';
import { REPLAY_HELP, parseReplay, type ReplayCommand } from '../arguments/replay.ts';
import { FileError, UsageError } from '../arguments/usage.ts';
import { EXIT, type CommandContext } from '../context.ts';
import { isOneOf } from './same-file.ts';
import { messageLines } from '../show/text.ts';

const REASONS: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such file',
  EISDIR: 'is a folder; name a file in it',
  EACCES: 'may not be read; look at its permissions',
};

/** @throws FileError for a file that cannot be read */
export const fromFile = async <T>(path: string, read: (path: string) => Promise<T>): Promise<T> => {
  try {
    return await read(path);
  } catch (error) {
    const { code = '' } = error as NodeJS.ErrnoException;
    const reason = REASONS[code] ?? (code === '' ? String(error) : `cannot be read (${code})`);
    throw new FileError(`${path}: ${reason}`, { cause: error });
  }
};

/** @throws FileError for a file that cannot be read, or holds another thing */
export const textOf = (path: string): Promise<string> => fromFile(path, (name) => readFile(name, 'utf8'));

/**
 * Writes a file.
 * @throws FileError for one that cannot be written
 */
export const writeTo = async (path: string, text: string, mode = 0o666): Promise<void> => {
  try {
    await writeFile(path, text, { mode });
  } catch (error) {
    throw new FileError(`${path}: cannot be written (${(error as NodeJS.ErrnoException).code ?? String(error)})`, {
      cause: error,
    });
  }
};

/** What cannot be used as a person gave it, with the name of what it was given for. */
export const asFileError = (error: unknown, path?: string): unknown =>
  error instanceof SimulationInputError || error instanceof ReplayRefusal
    ? new FileError(path === undefined ? error.message : `${path}: ${error.message}`, { cause: error })
    : error;

const GRID: z.ZodType<Record<string, unknown[]>> = z.record(z.string(), z.array(z.unknown()).min(1));

const optionsOf = async ({ policies, set, rank, running }: ReplayCommand): Promise<ReplayOptions> => {
  const files = await Promise.all(
    policies.map(async (path) => {
      const file = readPolicyFile(await textOf(path), path);
      return { ...file, name: file.name ?? path };
    }),
  );
  const grid = rank === undefined ? {} : { rank: readYamlAs(GRID, await textOf(rank), rank, 'grid') };
  return { policies: files, set, running, ...grid };
};

const EXIT_OF = { safe: EXIT.fine, worse: EXIT.failed, cannot_tell: EXIT.partial } as const;

const exitOf = ({ candidates }: ReplayReport, { rank }: ReplayCommand): number => {
  const codes = candidates.map(({ verdict }) => verdict.code);
  const [best] = codes;
  if (rank !== undefined && best !== undefined) return EXIT_OF[best];
  // What is worse is known to be; what nobody can tell may be fine.
  return codes.includes('worse') ? EXIT.failed : codes.includes('cannot_tell') ? EXIT.partial : EXIT.fine;
};

/** What a trace told stands in it. */
const OWNER_ONLY = 0o600;

/** The page may not take the place of what it is made from. */
const checkPage = async ({ path, policies, rank, html }: ReplayCommand): Promise<void> => {
  if (html === undefined) return;
  const read = [path, ...policies, ...(rank === undefined ? [] : [rank])];
  if (await isOneOf(html, read))
    throw new UsageError(`--html names ${html}, which is read, and which it would overwrite; name another file`);
};

/** Serves both sides beside each other until it is interrupted. */
const inspected = async (shown: WhatIf, port: number, { runtime, signal, stderr }: CommandContext): Promise<void> => {
  const [{ serveTrace }, { orUsage, untilAborted }] = await Promise.all([
    import('../../gateway/inspector-server.ts'),
    import('./inspect.ts'),
  ]);
  const [recorded, replayed] = inspectedSides(shown);
  const server = await orUsage(serveTrace(recorded, { compareWith: replayed, port, runtime }));
  stderr.write(`inspect: ${server.page}\n`);
  await untilAborted(signal);
  await server.close();
};

/**
 * Runs `spillway replay`.
 * @returns the exit code
 * @throws UsageError or FileError
 */
export async function runReplay(args: readonly string[], context: CommandContext): Promise<number> {
  const { stdout } = context;
  const command = parseReplay(args);
  if (command === undefined) {
    stdout.write(REPLAY_HELP);
    return EXIT.fine;
  }
  await checkPage(command);
  const trace = await fromFile(command.path, (path) => readNdjson(path));
  try {
    const options = await optionsOf(command);
    const report = replayTrace(trace, options);
    if (command.html !== undefined) await writeTo(command.html, replayPage(report), OWNER_ONLY);
    stdout.write(command.json ? ndjsonLine(replayJson(report)) : messageLines(replayText(report)));
    const [shown] = report.candidates;
    if (command.inspectPort !== undefined && shown !== undefined) await inspected(shown, command.inspectPort, context);
    return exitOf(report, command);
  } catch (error) {
    throw asFileError(error, error instanceof ReplayRefusal ? command.path : undefined);
  }
}
