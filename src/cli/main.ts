#!/usr/bin/env node
import { readFile } from 'node:fs/promises';
import type { TurnStatus } from '../contract/turn.ts';
import { liveRuntime } from '../runtime.ts';
import { runAdmin } from './admin.ts';
import { HELP, UsageError, parseCommand, type Command, type RunCommand } from './arguments.ts';
import { PlanFileError } from './plan-file.ts';
import { Interrupted, runPlan } from './run.ts';
import { messageLines } from './text.ts';

/** What the process ends with; nothing else decides it. */
const EXIT = { fine: 0, failed: 1, refused: 2, partial: 3, interrupted: 130 } as const;
const EXIT_OF_STATUS: Readonly<Record<TurnStatus, number>> = { completed: EXIT.fine, partial: EXIT.fine, failed: EXIT.failed, escalated: EXIT.failed };

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

const version = async (): Promise<string> => {
  const { version: text } = JSON.parse(await readFile(new URL('../../package.json', import.meta.url), 'utf8')) as { readonly version: string };
  return text;
};

const run = async (command: RunCommand): Promise<number> => {
  const { status } = await runPlan(command, { stdout: process.stdout, stderr: process.stderr, runtime: liveRuntime, signal: stop.signal });
  if (interrupted) return EXIT.interrupted;
  if (unread) return process.exitCode === EXIT.failed ? EXIT.failed : EXIT.fine;
  return command.strict && status === 'partial' ? EXIT.partial : EXIT_OF_STATUS[status];
};

const perform = async (command: Command): Promise<number> => {
  if (command.name === 'run') return run(command);
  process.stdout.write(command.name === 'help' ? HELP : `${await version()}\n`);
  return EXIT.fine;
};

const main = async (): Promise<number> => {
  try {
    const [name, ...args] = process.argv.slice(2);
    if (name === 'admin') {
      const code = await runAdmin(args, { stdout: process.stdout, stderr: process.stderr, env: process.env, signal: stop.signal });
      return interrupted ? EXIT.interrupted : code;
    }
    if (name === 'gateway') {
      // It loads a server, which other commands need not.
      const { runGateway } = await import('./gateway.ts');
      return await runGateway(args, { stdout: process.stdout, stderr: process.stderr, env: process.env, runtime: liveRuntime, signal: stop.signal });
    }
    return await perform(parseCommand(process.argv.slice(2)));
  } catch (error) {
    if (error instanceof Interrupted) {
      if (interrupted) say(`spillway: ${error.message}`);
      return interrupted ? EXIT.interrupted : EXIT.fine;
    }
    if (error instanceof UsageError) say(`spillway: ${error.message}\nspillway --help says more.`);
    else if (error instanceof PlanFileError) say(error.message);
    else {
      // A defect. Node would print it as it is, with whatever a server has put into it.
      say(`spillway: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`);
      return EXIT.failed;
    }
    return EXIT.refused;
  }
};

process.stdout.on('error', onOutputError);
// Progress that nobody sees is not worth a failure.
process.stderr.on('error', () => undefined);
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, onSignal);

const code = await main();
// A server that is still starting would hold the process; with the exit it is killed. What was printed is out by then.
process.stdout.write('', () => process.exit(code));
