#!/usr/bin/env node
// Before all others: libraries may look at the environment while they are loaded.
import { environment } from './environment.ts';
import type { TurnStatus } from '../contract/turn.ts';
import { VERSION } from '../contract/version.ts';
import { liveRuntime } from '../runtime.ts';
import { parseCommand, type RunCommand } from './arguments/run.ts';
import { isCommandName, type CommandName } from './command-names.ts';
import { EXIT, type CommandContext } from './context.ts';
import { PlanFileError } from './plan/file.ts';
import { Interrupted, runPlan } from './run.ts';
import { messageLines } from './show/text.ts';
import { FileError, UsageError } from './arguments/usage.ts';

const EXIT_OF_STATUS: Readonly<Record<TurnStatus, number>> = {
  completed: EXIT.fine,
  partial: EXIT.fine,
  failed: EXIT.failed,
  escalated: EXIT.failed,
};

const stop = new AbortController();
/** Nobody reads stdout any more: whoever did has what they wanted. */
let unread = false;
let interrupted = false;

const say = (text: string): void => void process.stderr.write(`${messageLines(text)}\n`);

const onSignal = (): void => {
  // The servers of a process that exits are killed with it.
  if (interrupted) process.exit(EXIT.interrupted);
  interrupted = true;
  stop.abort();
};

const onOutputError = (error: NodeJS.ErrnoException): void => {
  if (unread) return;
  unread = true;
  if (error.code !== 'EPIPE') {
    say(`spillway: cannot write to stdout: ${error.message}`);
    process.exitCode = EXIT.failed;
  }
  stop.abort();
};

const context: CommandContext = {
  stdout: process.stdout,
  stderr: process.stderr,
  env: environment,
  runtime: liveRuntime,
  signal: stop.signal,
};

const runTurn = async (command: RunCommand): Promise<number> => {
  const isElsewhere = command.engine !== undefined;
  const { status, seen } = isElsewhere
    ? { ...(await (await import('./fleet/run.ts')).runElsewhere(command, context)), seen: false }
    : await runPlan(command, context);
  // Interrupted after the turn had settled, and its page was looked at: then the turn's own end counts.
  if (interrupted && !seen) return EXIT.interrupted;
  if (unread) return process.exitCode === EXIT.failed ? EXIT.failed : EXIT.fine;
  return command.strict && status === 'partial' ? EXIT.partial : EXIT_OF_STATUS[status];
};

/** `spillway run`, and all that names no command. */
const run = async (args: readonly string[]): Promise<number> => {
  const command = parseCommand(args);
  if (command.name === 'run') return runTurn(command);
  if (command.name === 'version') process.stdout.write(`${VERSION}\n`);
  else process.stdout.write((await import('./commands.ts')).helpOf(args.slice(0, args[0] === 'run' ? 1 : 0)));
  return EXIT.fine;
};

const admin = async (args: readonly string[]): Promise<number> => {
  const code = await (await import('./admin.ts')).runAdmin(args, context);
  return interrupted ? EXIT.interrupted : code;
};

/** Each loads what it needs: a server for one, nothing for another. */
const PERFORM: Readonly<Record<CommandName, (args: readonly string[]) => Promise<number>>> = {
  run: (args) => run(['run', ...args]),
  admin,
  approve: async (args) => (await import('./approve.ts')).runApprove(args, context),
  check: async (args) => (await import('./check.ts')).runCheck(args, context),
  tools: async (args) => (await import('./list-tools.ts')).runTools(args, context),
  show: async (args) => (await import('./trace/show.ts')).runShow(args, context),
  inspect: async (args) => (await import('./trace/inspect.ts')).runInspect(args, context),
  report: async (args) => (await import('./trace/inspect.ts')).runReport(args, context),
  replay: async (args) => (await import('./trace/replay.ts')).runReplay(args, context),
  simulate: async (args) => (await import('./simulate.ts')).runSimulate(args, context),
  worker: async (args) => (await import('./fleet/worker.ts')).runWorker(args, context),
  attach: async (args) => {
    const code = await (await import('./fleet/attach.ts')).runAttach(args, context);
    return interrupted ? EXIT.interrupted : code;
  },
  fleet: async (args) => (await import('./fleet/report.ts')).runFleet(args, context),
  init: async (args) => (await import('./init.ts')).runInit(args, context),
  gateway: async (args) => (await import('./gateway.ts')).runGateway(args, context),
  mcp: async (args) => (await import('./mcp.ts')).runMcp(args, context),
  completions: async (args) => (await import('./completions.ts')).runCompletions(args, context),
  help: async (args) => {
    process.stdout.write((await import('./commands.ts')).helpOf(args));
    return EXIT.fine;
  },
};

/** Says what was asked wrongly, and where the option that was meant belongs. */
const sayUsage = async ({ message, option }: UsageError): Promise<void> => {
  const elsewhere = option === undefined ? undefined : (await import('./commands.ts')).whoHas(option);
  say(`spillway: ${message}${elsewhere === undefined ? '' : `; ${elsewhere}`}\nspillway --help says more.`);
};

const refusal = async (error: unknown): Promise<number> => {
  if (error instanceof Interrupted) {
    if (interrupted) say(`spillway: ${error.message}`);
    return interrupted ? EXIT.interrupted : EXIT.fine;
  }
  if (error instanceof UsageError) await sayUsage(error);
  else if (error instanceof PlanFileError) say(error.message);
  else if (error instanceof FileError) say(`spillway: ${error.message}`);
  else {
    // A defect. Node would print it as it is, with whatever a server has put into it.
    say(`spillway: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`);
    return EXIT.failed;
  }
  return EXIT.refused;
};

/** A runtime that is too old gets far enough to fail in the middle of something. */
const isOld = (): boolean => typeof (Map as { readonly groupBy?: unknown }).groupBy !== 'function';

const main = async (): Promise<number> => {
  const [name, ...args] = process.argv.slice(2);
  if (isOld()) {
    say(`spillway: it needs Node 22 or later, and this is ${process.version}`);
    return EXIT.refused;
  }
  try {
    return await (isCommandName(name) ? PERFORM[name](args) : run(process.argv.slice(2)));
  } catch (error) {
    return refusal(error);
  }
};

process.stdout.on('error', onOutputError);
// Progress that nobody sees is not worth a failure.
process.stderr.on('error', () => undefined);
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, onSignal);

const code = await main();
// A server that is still starting would hold the process; with the exit it is killed. What was printed is out by then.
process.stdout.write('', () => process.exit(code));
