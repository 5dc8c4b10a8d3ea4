import { readFile } from 'node:fs/promises';
import type { Runtime } from '../contract/runtime.ts';
import type { AnyTool } from '../contract/tool.ts';
import {
  anthropicGateway,
  memoryConversationState,
  type ConversationState,
  type GatewayLogger,
} from '../gateway/anthropic.ts';
import { serveAnthropicGateway, type GatewayServer } from '../gateway/anthropic-server.ts';
import { redisConversationState, type ConversationRedisLike } from '../gateway/conversation-redis.ts';
import { ndjsonLine } from '../sinks/ndjson.ts';
import { createSpillway } from '../spillway.ts';
import { isManifest } from './plan/file-kind.ts';
import { GATEWAY_HELP, parseGateway, type GatewayCommand } from './arguments/gateway.ts';
import { loadPlan, type LoadedPlan } from './plan/file.ts';
import { Interrupted } from './run.ts';
import { joined, secretsOf } from './plan/secrets.ts';
import { startServers } from './plan/servers.ts';
import type { Output } from './show/terminal.ts';
import { messageLine, plain } from './show/text.ts';
import { bindTools, usedTools } from './plan/tools.ts';
import { UsageError } from './arguments/usage.ts';

/** Where the command prints, and what ends it. */
export interface GatewayContext {
  readonly stdout: Output;
  readonly stderr: Output;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly runtime: Runtime;
  readonly signal: AbortSignal;
}

const EXIT = { done: 0, failed: 1 } as const;

/** Something that ends with the gateway. */
type Close = () => Promise<unknown>;

interface LoadedTools {
  readonly tools: readonly AnyTool[];
  readonly close: Close;
}

/** A file that has been read. Nothing has been started. */
interface ToolFile {
  /** What its servers are given as secrets. */
  readonly secrets: readonly string[];
  readonly load: () => Promise<LoadedTools>;
}

const messageOf = (thrown: unknown): string => plain(thrown instanceof Error ? thrown.message : String(thrown));

const planTools = async (loaded: LoadedPlan, runtime: Runtime): Promise<LoadedTools> => {
  const { file } = loaded;
  // All that it lists, beside what its turn uses.
  const nodes = [...(file.tools ?? []).map(({ id }) => ({ id: `tool:${id}`, tool: id })), ...file.turn.nodes];
  const used = usedTools({ ...file, turn: { ...file.turn, nodes } });
  const servers = await startServers([...new Set(used.map(({ server }) => server))], loaded, runtime);
  const { tools, problems } = bindTools(used, servers.providers, runtime);
  if (problems.length === 0) return { tools, close: servers.close };
  await servers.close();
  throw loaded.refuse(problems);
};

const manifestTools = async (
  path: string,
  text: string,
  { allow }: GatewayCommand,
  { env, runtime }: GatewayContext,
): Promise<LoadedTools> => {
  // A manifest needs packages that a plan does not.
  const { readRestManifest, restProvider } = await import('../providers/rest.ts');
  try {
    const provider = restProvider(readRestManifest(text), { env, allow, runtime });
    return { tools: provider.tools, close: () => provider.close() };
  } catch (error) {
    if (error instanceof RangeError) throw new UsageError(`${path}: ${messageOf(error)}`, { cause: error });
    throw error;
  }
};

const toolFile = async (path: string, command: GatewayCommand, context: GatewayContext): Promise<ToolFile> => {
  const text = await readFile(path, 'utf8').catch(() => '');
  // Its provider takes out its own secrets.
  if (isManifest(text)) return { secrets: [], load: () => manifestTools(path, text, command, context) };
  // What cannot be read is a plan that cannot.
  const loaded = await loadPlan(path);
  return { secrets: secretsOf(loaded.file.servers), load: () => planTools(loaded, context.runtime) };
};

interface RedisPackage {
  createClient(options: { readonly url: string }): ConversationRedisLike & {
    on(event: 'error', listener: () => void): unknown;
    connect(): Promise<unknown>;
    close(): Promise<unknown>;
  };
}

const redisState = async (url: string): Promise<{ readonly state: ConversationState; readonly close: Close }> => {
  // Not a dependency: only who wants it installs it.
  const name: string = 'redis';
  let redis: RedisPackage;
  try {
    redis = (await import(name)) as RedisPackage;
  } catch (error) {
    throw new UsageError('--state redis://... needs the package redis, which is not installed; run npm install redis', {
      cause: error,
    });
  }
  const client = redis.createClient({ url });
  // A lost connection is reported by each operation that fails.
  client.on('error', () => undefined);
  await client.connect();
  return { state: redisConversationState(client), close: () => client.close() };
};

const loggerOn = (stderr: Output, runtime: Runtime): GatewayLogger => {
  const write =
    (level: string) =>
    (fields: Readonly<Record<string, unknown>>, message: string): void =>
      void stderr.write(ndjsonLine({ level, time: runtime.wallNow(), ...fields, msg: message }));
  return { debug: () => undefined, info: write('info'), warn: write('warn'), error: write('error') };
};

const aborted = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });

const serve = async (command: GatewayCommand, context: GatewayContext, closers: Close[]): Promise<number> => {
  const { stdout, stderr, runtime, signal } = context;
  const { upstream, toolPaths, maxTurns, rate, host, port, graceMs } = command;
  const files = await Promise.all(toolPaths.map((path) => toolFile(path, command, context)));
  const secrets = joined(...files.map((file) => file.secrets));
  const loaded: LoadedTools[] = [];
  for (const file of files) {
    const one = await file.load();
    loaded.push(one);
    closers.unshift(one.close);
    if (signal.aborted) throw new Interrupted('interrupted before the gateway listened');
  }
  const tools = loaded.flatMap((one) => one.tools);
  let state: ConversationState = memoryConversationState({ runtime });
  if (command.state !== 'memory') {
    const redis = await redisState(command.state);
    closers.unshift(redis.close);
    state = redis.state;
  }
  const spillway = createSpillway({ tools, runtime, redact: { secrets } });
  closers.unshift(() => spillway.close());
  const logger = loggerOn(stderr, runtime);
  const limits = {
    ...(maxTurns === undefined ? {} : { maxTurns }),
    ...(rate === undefined ? {} : { rate: { requests: rate, windowMs: 60_000 } }),
  };
  const server: GatewayServer = await serveAnthropicGateway(
    anthropicGateway({ upstream, tools, spillway, state, limits, logger, runtime }),
    { host, port },
  );
  stdout.write(`${server.url}\n`);
  logger.info(
    { event: 'gateway_listening', url: server.url, tools: tools.map(({ name }) => name) },
    'The gateway listens.',
  );
  await aborted(signal);
  logger.info({ event: 'gateway_draining', grace_ms: graceMs }, 'The gateway is shut down when what runs has ended.');
  await server.close(graceMs);
  return EXIT.done;
};

/**
 * Serves a gateway until the signal is aborted; then what runs may end first.
 *
 * @param args the command line after `gateway`
 * @returns the exit code
 * @throws UsageError, PlanFileError or Interrupted, before it listens
 */
export async function runGateway(args: readonly string[], context: GatewayContext): Promise<number> {
  const command = parseGateway(args);
  if (command === undefined) {
    context.stdout.write(GATEWAY_HELP);
    return EXIT.done;
  }
  const closers: Close[] = [];
  try {
    return await serve(command, context, closers);
  } catch (error) {
    if (
      error instanceof UsageError ||
      error instanceof Interrupted ||
      (error instanceof Error && error.name === 'PlanFileError')
    )
      throw error;
    context.stderr.write(`spillway: ${messageLine(messageOf(error))}\n`);
    return EXIT.failed;
  } finally {
    for (const close of closers) await close().catch(() => undefined);
  }
}
