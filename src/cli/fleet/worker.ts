import { createSpillway } from '../../spillway.ts';
import { secretsOf } from '../plan/secrets.ts';
import { sha256 } from '../../policy/key/sha256.ts';
import { WORKER_HELP, parseWorker, type WorkerCommand } from '../arguments/fleet.ts';
import { UsageError } from '../arguments/usage.ts';
import { EXIT, type CommandContext } from '../context.ts';
import { Interrupted, until } from '../run.ts';
import { loadPlan, type LoadedPlan } from '../plan/file.ts';
import { startServers } from '../plan/servers.ts';
import { bindTools, usedTools } from '../plan/tools.ts';
import { messageLine } from '../show/text.ts';
import { openEngine } from './engine.ts';
import { openProbes } from './probes.ts';

const VERSION_LENGTH = 12;

/** Of what a worker's tools are made of: another file has other tools. */
const versionOf = ({ file: { servers, tools, profile } }: LoadedPlan): string =>
  sha256(JSON.stringify({ servers, tools, profile })).slice(0, VERSION_LENGTH);

const aborted = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });

type Close = () => Promise<unknown>;

const serve = async (command: WorkerCommand, context: CommandContext, closers: Close[]): Promise<number> => {
  const { stderr, runtime, signal, env } = context;
  const say = (text: string): void => void stderr.write(`${messageLine(text)}\n`);
  const loaded = await loadPlan(command.planPath);
  const opened = await openEngine(command.engine, env, (port) => say(`Restate calls it at port ${port}`));
  const { fleet, store, place } = opened;
  closers.unshift(() => opened.close());
  const used = usedTools(loaded.file);
  const names = [...new Set(used.map(({ server }) => server))];
  const starting = startServers(names, loaded, runtime);
  const servers = await until(starting, signal, 'interrupted before the worker served');
  closers.unshift(servers.close);
  const { tools, problems } = bindTools(used, servers.providers, runtime);
  if (problems.length > 0) throw loaded.refuse(problems);
  const { profile, servers: entries } = loaded.file;
  const redact = { secrets: secretsOf(entries) };
  const spillway = createSpillway({ tools, store, runtime, redact, ...(profile === undefined ? {} : { profile }) });
  closers.unshift(() => spillway.close());
  const { worker = runtime.id(), version = versionOf(loaded), concurrency, drainMs } = command;
  let serving: ReturnType<typeof fleet.serve>;
  try {
    serving = fleet.serve({ layer: spillway, worker, version, concurrency, drainMs });
  } catch (error) {
    throw error instanceof RangeError ? new UsageError(error.message) : error;
  }
  closers.unshift(() => serving.close());
  await serving.ready;
  if (command.metricsPort !== undefined) {
    const probes = await openProbes(fleet, spillway, command.metricsPort, () => !signal.aborted);
    closers.unshift(() => probes.close());
    say(`metrics at port ${probes.port}`);
  }
  say(`worker ${worker} of version ${version} serves ${tools.map(({ name }) => name).join(', ')} at ${place}`);
  await aborted(signal);
  say('draining');
  await serving.close();
  return EXIT.fine;
};

/**
 * Runs `spillway worker` until the signal is aborted, and then drains it.
 * @returns the exit code
 * @throws UsageError, PlanFileError or Interrupted, before it serves
 */
export async function runWorker(args: readonly string[], context: CommandContext): Promise<number> {
  const command = parseWorker(args);
  if (command === undefined) {
    context.stdout.write(WORKER_HELP);
    return EXIT.fine;
  }
  const closers: Close[] = [];
  try {
    return await serve(command, context, closers);
  } catch (error) {
    if (error instanceof Interrupted) return EXIT.interrupted;
    throw error;
  } finally {
    for (const close of closers) await close().catch(() => undefined);
  }
}
