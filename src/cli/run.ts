import { lastValueFrom, map, tap } from 'rxjs';
import type { TurnEvent } from '../contract/event.ts';
import type { Runtime } from '../contract/runtime.ts';
import type { AnyTool } from '../contract/tool.ts';
import type { TurnResult } from '../contract/turn.ts';
import type { TurnTold } from '../inspect/model.ts';
import { followTurn } from '../inspect/model/follow-turn.ts';
import { seededRandom } from '../policy/random.ts';
import { ndjsonLine } from '../sinks/ndjson.ts';
import { createSpillway, type Spillway } from '../spillway.ts';
import type { TurnOptions } from '../turn/run.ts';
import type { Approvals } from '../gate/approvals.ts';
import { anyNeedsApproval, openGates, storeOf, tellAsked, type OpenGates } from './store/gates.ts';
import type { RunCommand } from './arguments/run.ts';
import { environment } from './environment.ts';
import { isSameFile } from './trace/same-file.ts';
import { drawMarbles } from '../inspect/share/marbles-text.ts';
import { openNdjson, type NdjsonFile } from './show/ndjson.ts';
import { loadPlan, type LoadedPlan } from './plan/file.ts';
import { lineProgress, liveProgress, type ProgressDisplay } from './show/progress.ts';
import { nodeTable, sentence } from './show/report.ts';
import { shownEvents } from './show/shown.ts';
import { secretsOf } from './plan/secrets.ts';
import { startServers } from './plan/servers.ts';
import { styleOf, type Output } from './show/terminal.ts';
import { bindTools, usedTools } from './plan/tools.ts';
import { UsageError } from './arguments/usage.ts';

/** Where a run prints, where its time comes from, and what ends it early. */
export interface RunContext {
  readonly stdout: Output;
  readonly stderr: Output;
  readonly runtime: Runtime;
  readonly signal: AbortSignal;
}

/** How a run ended. */
export interface CommandEnd {
  readonly status: TurnResult['status'];
  /** The turn had settled by itself, and its page was there until the interruption. */
  readonly seen: boolean;
}

/** The run was ended before the turn began. */
export class Interrupted extends Error {
  override readonly name: string = 'Interrupted';
}

const seeded = (runtime: Runtime, seed: number | undefined): Runtime => {
  if (seed === undefined) return runtime;
  const random = seededRandom(seed);
  const { background } = runtime;
  return { ...runtime, random, ...(background === undefined ? {} : { background: { ...background, random } }) };
};

const openTrace = async ({ tracePath, planPath }: RunCommand, runtime: Runtime): Promise<NdjsonFile | undefined> => {
  if (tracePath === undefined) return undefined;
  if (await isSameFile(tracePath, planPath))
    throw new UsageError('--trace names the plan file, which it would overwrite; name another file');
  try {
    return await openNdjson(tracePath, runtime);
  } catch (error) {
    throw new UsageError(
      `--trace ${tracePath} cannot be written (${(error as NodeJS.ErrnoException).code ?? String(error)}); ` +
        'name a file in a folder that exists',
      { cause: error },
    );
  }
};

/** Live on a terminal; where nobody looks, the terminal cannot, or events share it, a line for each event. */
const progressOn = ({ stdout, stderr, runtime }: RunContext, command: RunCommand): ProgressDisplay => {
  const dumb = environment['TERM'] === 'dumb' || (environment['CI'] ?? '') !== '';
  const shared = command.json && stdout.isTTY === true;
  return stderr.isTTY === true && !dumb && !shared
    ? liveProgress(stderr, styleOf(stderr, command), runtime)
    : lineProgress(stderr);
};

/** What was noticed about policies that the plan itself gives; those of every other tool are nobody's decision. */
const ownWarnings = ({ warnings }: Spillway, { file: { tools = [] } }: LoadedPlan): string[] =>
  warnings.filter((warning) =>
    tools.some(
      ({ id, timeout_ms, retry_policy }) =>
        (timeout_ms ?? retry_policy) !== undefined && warning.startsWith(`tool ${id}:`),
    ),
  );

const report = (result: TurnResult, timeline: TurnTold, { stdout }: RunContext, command: RunCommand): void => {
  const style = styleOf(stdout, command);
  // In one piece: a reader that goes away after the first line leaves nothing half written.
  stdout.write(`${nodeTable(result, style)}\n\n${drawMarbles(timeline, style)}\n\n${sentence(result, style)}\n`);
};

const settledTurn = (
  spillway: Spillway,
  { plan, file: { servers } }: LoadedPlan,
  options: TurnOptions,
  listen: (event: TurnEvent) => void,
): Promise<TurnResult> =>
  lastValueFrom(
    spillway.turn(plan, options).pipe(
      map(shownEvents(secretsOf(servers))),
      tap(listen),
      // The last event is the turn's own `settled`.
      map((event) => (event.source === 'turn' && event.type === 'settled' ? event.result : undefined)),
    ),
  ).then((result) => {
    if (result === undefined) throw new TypeError('the turn ended without a result');
    return result;
  });

/**
 * Waits for what comes before anything is called.
 * @throws Interrupted when the signal is aborted first
 */
export async function until<T>(work: Promise<T>, signal: AbortSignal, message: string): Promise<T> {
  const interrupted = new Promise<never>((_, reject) => {
    const end = (): void => reject(new Interrupted(message));
    if (signal.aborted) end();
    else signal.addEventListener('abort', end, { once: true });
  });
  return Promise.race([work, interrupted]);
}

type Close = () => Promise<void>;

/** Serves the admin page where it is asked for, and closes it before the rest. */
const withAdmin = async (
  { adminPort }: RunCommand,
  spillway: Spillway,
  approvals: Approvals | undefined,
  progress: ProgressDisplay,
  close: Close,
): Promise<Close> => {
  if (adminPort === undefined) return close;
  // A server and its packages, which other runs need not load.
  const { openAdmin } = await import('./admin/run.ts');
  const admin = await openAdmin(spillway, adminPort, (text) => progress.note(text), environment, approvals);
  return async () => {
    await admin.close();
    await close();
  };
};

/** Serves the inspector where it is asked for, and closes it before the rest. */
const withInspector = async (
  { inspectPort }: RunCommand,
  context: RunContext,
  spillway: Spillway,
  progress: ProgressDisplay,
  close: Close,
): Promise<Close> => {
  if (inspectPort === undefined) return close;
  const { openInspector } = await import('./trace/inspect.ts');
  const inspector = await openInspector(spillway, inspectPort, context, (text) => progress.note(text));
  return async () => {
    await inspector.close();
    await close();
  };
};

/** Collects the trace for a report where it is asked for. */
const openHtml = async ({ htmlPath }: RunCommand, spillway: Spillway, progress: ProgressDisplay): Promise<Close> => {
  if (htmlPath === undefined) return () => Promise.resolve();
  const { write } = (await import('./trace/inspect.ts')).reportOf(spillway, htmlPath);
  return async () => {
    const unwritten = await write();
    if (unwritten !== undefined) progress.note(`warning: the report is not written: ${unwritten.message}`);
  };
};

/** Keeps the page of a turn that has settled until the interruption; whether there was one to keep. */
const isSeen = async (
  { inspectPort }: RunCommand,
  { signal }: RunContext,
  progress: ProgressDisplay,
): Promise<boolean> => {
  if (inspectPort === undefined || signal.aborted) return false;
  await (await import('./trace/inspect.ts')).untilSeen(signal, (text) => progress.note(text));
  return true;
};

const gatesOf = (command: RunCommand, { file: { tools = [], turn, budget } }: LoadedPlan): Promise<OpenGates> => {
  const asked = { needsApproval: anyNeedsApproval([...tools, ...turn.nodes]), budget };
  return openGates({
    ...asked,
    storeUrl: storeOf(command, asked, environment),
    hasAdmin: command.adminPort !== undefined,
  });
};

/**
 * Runs a plan file: starts its servers, runs its turn, prints what happens and what came of it, stops the servers.
 * Aborting the signal ends the turn with its harvest, which is printed all the same.
 *
 * @throws UsageError, PlanFileError or Interrupted, before anything was called
 */
export async function runPlan(command: RunCommand, context: RunContext): Promise<CommandEnd> {
  const loaded = await loadPlan(command.planPath);
  const gates = await gatesOf(command, loaded);
  try {
    return await runLoaded(command, context, loaded, gates);
  } finally {
    await gates.close();
  }
}

const layerOf = (
  tools: readonly AnyTool[],
  { file: { profile, servers } }: LoadedPlan,
  { options }: OpenGates,
  runtime: Runtime,
): Spillway => {
  const redact = { secrets: secretsOf(servers) };
  return createSpillway({ tools, runtime, redact, ...options, ...(profile === undefined ? {} : { profile }) });
};

/** The trace that the turn is part of. */
const traceOf = ({ traceparent }: RunCommand): Pick<TurnOptions, 'traceContext'> =>
  traceparent === undefined ? {} : { traceContext: { traceparent } };

const runLoaded = async (
  command: RunCommand,
  context: RunContext,
  loaded: LoadedPlan,
  gates: OpenGates,
): Promise<CommandEnd> => {
  const { stdout, signal } = context;
  const runtime = seeded(context.runtime, command.seed);
  const used = usedTools(loaded.file);
  const trace = await openTrace(command, runtime);
  const progress = progressOn(context, command);
  const serverNames = [...new Set(used.map(({ server }) => server))];
  progress.note(`starting ${serverNames.join(', ')}`);
  const servers = await until(
    startServers(serverNames, loaded, runtime),
    signal,
    'interrupted before the turn began; nothing was called',
  );
  let close = servers.close;
  try {
    const { tools, problems } = bindTools(used, servers.providers, runtime);
    if (problems.length > 0) throw loaded.refuse(problems);
    const spillway = layerOf(tools, loaded, gates, runtime);
    tellAsked(spillway, gates.options.store !== undefined, (text) => progress.note(text));
    close = async () => {
      await spillway.close();
      await servers.close();
    };
    close = await withAdmin(command, spillway, gates.options.approvals, progress, close);
    close = await withInspector(command, context, spillway, progress, close);
    const writeHtml = await openHtml(command, spillway, progress);
    for (const warning of ownWarnings(spillway, loaded)) progress.note(`warning: ${warning}`);
    if (trace !== undefined) spillway.trace$.subscribe((event) => trace.write(event));
    const turn = followTurn();
    const result = await settledTurn(spillway, loaded, { signal, ...traceOf(command) }, (event) => {
      turn.add(event);
      progress.event(event);
      if (command.json) stdout.write(ndjsonLine(event));
    });
    progress.end();
    if (!command.json) report(result, turn.turn, context, command);
    await writeHtml();
    return { status: result.status, seen: await isSeen(command, context, progress) };
  } finally {
    progress.end();
    await close();
    const lost = await trace?.close();
    if (lost !== undefined) progress.note(`warning: the trace is not complete: ${lost.message}`);
  }
};
