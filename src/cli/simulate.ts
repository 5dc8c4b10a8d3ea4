import { dirname, resolve } from 'node:path';
import type { PolicyFile } from '../contract/formats/policy-file.ts';
import type { LatencyEntry, ScenarioFile } from '../contract/formats/scenario-entry.ts';
import { readPolicyFile } from '../simulate/policy-file.ts';
import { chartsSvg, stormPage } from '../simulate/charts.ts';
import { readScenarioFile } from '../simulate/storm/scenario/check.ts';
import { expectationLines, stormText, tableOf } from '../simulate/storm/report.ts';
import { simulate, type StormReport } from '../simulate/storm/simulate.ts';
import { ndjsonLine, readNdjson } from '../sinks/ndjson.ts';
import { SIMULATE_HELP, parseSimulate, type SimulateCommand } from './arguments/simulate.ts';
import { FileError, UsageError } from './arguments/usage.ts';
import { isOneOf } from './trace/same-file.ts';
import { EXIT, type CommandContext } from './context.ts';
import { asFileError, fromFile, textOf, writeTo } from './trace/replay.ts';
import { messageLine } from './show/text.ts';

const policiesOf = async (paths: readonly string[]): Promise<Record<string, PolicyFile>> => {
  const files = await Promise.all(
    paths.map(async (path) => {
      const file = readPolicyFile(await textOf(path), path);
      return { path, name: file.name ?? path, file };
    }),
  );
  for (const [index, { path, name }] of files.entries()) {
    const other = files.slice(0, index).find((before) => before.name === name);
    if (other !== undefined)
      throw new FileError(`${path}: ${other.path} is called ${JSON.stringify(name)}, too; give each a name of its own`);
  }
  return Object.fromEntries(files.map(({ name, file }) => [name, file]));
};

/** The traces that servers take their times from. */
const tracesOf = ({ servers }: ScenarioFile, folder: string): string[] =>
  Object.values(servers).flatMap((entry) =>
    'latency' in entry && 'trace' in entry.latency ? [resolve(folder, entry.latency.trace)] : [],
  );

/** What is written may not take the place of what is read, the scenario's own traces too, nor of each other. */
const checkWritten = async (
  { path, policies, html, svg }: SimulateCommand,
  traces: readonly string[],
): Promise<void> => {
  const taken = [path, ...policies, ...traces];
  for (const [option, file] of [
    ['--html', html],
    ['--svg', svg],
  ] as const) {
    if (file === undefined) continue;
    if (await isOneOf(file, taken))
      throw new UsageError(`${option} names ${file}, which is read or written, too; name another file`);
    taken.push(file);
  }
};

/** How long a tool's attempts took in a trace, those that succeeded. */
const durationsIn = async (path: string, tool: string): Promise<number[]> => {
  const { events } = await fromFile(path, (name) => readNdjson(name));
  const values = events.flatMap((event) =>
    event.type === 'attempt_succeeded' && event.toolName === tool ? [event.durationMs] : [],
  );
  if (values.length === 0) throw new FileError(`${path}: no attempt of ${messageLine(tool)} succeeds in it`);
  return values;
};

/** A scenario whose servers take as long as they did in a trace, with those times in it. */
const withTraces = async (scenario: ScenarioFile, folder: string): Promise<ScenarioFile> => {
  const latencyOf = async (latency: LatencyEntry): Promise<LatencyEntry> =>
    'trace' in latency ? { values_ms: await durationsIn(resolve(folder, latency.trace), latency.tool) } : latency;
  const servers = await Promise.all(
    Object.entries(scenario.servers).map(
      async ([name, entry]) =>
        [name, 'row' in entry ? entry : { ...entry, latency: await latencyOf(entry.latency) }] as const,
    ),
  );
  return { ...scenario, servers: Object.fromEntries(servers) };
};

const run = async (command: SimulateCommand): Promise<StormReport> => {
  const { path, policies, seeds, engine, maxCalls } = command;
  const allowed = maxCalls === undefined ? {} : { maxCalls };
  try {
    const file = readScenarioFile(await textOf(path), path, allowed);
    await checkWritten(command, tracesOf(file, dirname(path)));
    const scenario = await withTraces(file, dirname(path));
    return simulate(scenario, {
      ...(policies.length === 0 ? {} : { policies: await policiesOf(policies) }),
      ...(seeds === undefined ? {} : { seeds }),
      ...(engine === undefined ? {} : { engine }),
      ...allowed,
    });
  } catch (error) {
    throw asFileError(error);
  }
};

/**
 * Runs `spillway simulate`.
 * @returns the exit code
 * @throws UsageError or FileError
 */
export async function runSimulate(args: readonly string[], { stdout }: CommandContext): Promise<number> {
  const command = parseSimulate(args);
  if (command === undefined) {
    stdout.write(SIMULATE_HELP);
    return EXIT.fine;
  }
  const report = await run(command);
  if (command.html !== undefined)
    await writeTo(command.html, stormPage(report, tableOf(report), report.policies.flatMap(expectationLines)));
  if (command.svg !== undefined) await writeTo(command.svg, chartsSvg(report));
  // Columns are told apart by spaces, which a message's line has only one of; names are cut to 100 by the schema.
  stdout.write(command.json ? ndjsonLine(report) : plainLines(stormText(report)));
  return report.holds ? EXIT.fine : EXIT.failed;
}

/** The text without what could drive a terminal; a name of a file may hold such. */
const plainLines = (text: string): string => text.replaceAll(/[^\P{C}\n]/gu, '?');
