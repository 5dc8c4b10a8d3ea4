import { firstValueFrom, fromEvent, lastValueFrom, of, take, takeUntil, type Observable } from 'rxjs';
import type * as StdioModule from '@modelcontextprotocol/sdk/server/stdio.js';
import type * as HttpModule from '../mcp-proxy/http/front.ts';
import type * as ProxyModule from '../mcp-proxy/proxy.ts';
import { clientLines } from '../mcp-proxy/client-lines.ts';
import { withoutSecrets } from '../policy/redact/known.ts';
import type { McpProxy, McpProxyOptions } from '../mcp-proxy/proxy.ts';
import { MCP_HELP, parseMcp, type McpCommand } from './arguments/mcp.ts';
import { UsageError } from './arguments/usage.ts';
import { openGates, tellAsked } from './store/gates.ts';
import { EXIT, type CommandContext } from './context.ts';
import { clientConfig } from './mcp/client-config.ts';
import { configured } from './mcp/servers.ts';
import { openNdjson, type NdjsonFile } from './show/ndjson.ts';
import type { Output } from './show/terminal.ts';
import { messageLine, plain } from './show/text.ts';

type Close = () => Promise<unknown>;

interface Packages {
  readonly proxy: Pick<typeof ProxyModule, 'createMcpProxy'>;
  readonly stdio: Pick<typeof StdioModule, 'StdioServerTransport'>;
  readonly http: Pick<typeof HttpModule, 'serveHttp'>;
}

/** Only this command needs them; the SDK is an optional peer. */
const load = async (): Promise<Packages> => {
  try {
    const [proxy, stdio, http] = await Promise.all([
      import('../mcp-proxy/proxy.ts'),
      import('@modelcontextprotocol/sdk/server/stdio.js'),
      import('../mcp-proxy/http/front.ts'),
    ]);
    return { proxy, stdio, http };
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ERR_MODULE_NOT_FOUND') throw error;
    throw new UsageError(
      'mcp needs @modelcontextprotocol/sdk, which is not installed; run npm install @modelcontextprotocol/sdk',
      { cause: error },
    );
  }
};

const aborted$ = (signal: AbortSignal): Observable<unknown> =>
  signal.aborted ? of(undefined) : fromEvent(signal, 'abort').pipe(take(1));

const openTrace = async ({ tracePath }: McpCommand, context: CommandContext): Promise<NdjsonFile | undefined> => {
  if (tracePath === undefined) return undefined;
  try {
    return await openNdjson(tracePath, context.runtime);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw new UsageError(`--trace ${tracePath} cannot be written (${code}); name a file in a folder that exists`, {
      cause: error,
    });
  }
};

/** Serves the one client whose pipes these are, until it closes them. */
const serveStdio = async (proxy: McpProxy, { stdio }: Packages, context: CommandContext): Promise<void> => {
  const { signal, stderr } = context;
  const input = clientLines((refusal) => void transport.send(refusal));
  const transport = new stdio.StdioServerTransport(input);
  // The SDK's transport does not look for the end of its input, and goes on after a fault of it.
  input.once('end', () => void transport.close());
  input.once('error', ({ message }) => {
    stderr.write(`spillway: ${messageLine(plain(message))}\n`);
    void transport.close();
  });
  process.stdin.on('error', (error) => input.destroy(error)).pipe(input);
  await lastValueFrom(proxy.serve$(transport, true).pipe(takeUntil(aborted$(signal))), { defaultValue: undefined });
  // Nobody reads it any more, and it would keep the process.
  process.stdin.unpipe(input).pause();
};

const serveHttp = async (
  proxy: McpProxy,
  command: McpCommand,
  packages: Packages,
  context: CommandContext,
  isOne: boolean,
): Promise<void> => {
  const { env, runtime, signal, stderr } = context;
  const { SPILLWAY_MCP_TOKEN: token } = env;
  try {
    const front = await packages.http.serveHttp(proxy, {
      host: command.host,
      port: command.httpPort ?? 0,
      modern: isOne,
      runtime,
      ...(token === undefined || token === '' ? {} : { token }),
    });
    stderr.write(`${front.url}\n`);
    await firstValueFrom(aborted$(signal));
    await front.close();
  } catch (error) {
    throw new UsageError(`--http: ${(error as Error).message}`, { cause: error });
  }
};

/** What servers say on stderr, a line each. */
const heardOn = (stderr: Output, secrets: readonly string[]): NonNullable<McpProxyOptions['heard']> => {
  const shown = withoutSecrets(secrets);
  return (server, line) => void stderr.write(`${messageLine(shown(`${server}: ${line}`))}\n`);
};

const serve = async (command: McpCommand, context: CommandContext, closers: Close[]): Promise<void> => {
  const { stderr, runtime } = context;
  const note = (text: string): void => void stderr.write(`spillway: ${messageLine(plain(text))}\n`);
  const [packages, config] = await Promise.all([load(), configured(command)]);
  const { maxOutputBytes, keyName, storeUrl = context.env['SPILLWAY_STORE'] } = command;
  const gates = await openGates({
    ...config.gates,
    storeUrl: storeUrl === '' ? undefined : storeUrl,
    hasAdmin: command.adminPort !== undefined,
  });
  closers.push(gates.close);
  const proxy = packages.proxy.createMcpProxy({
    ...config.proxy,
    ...gates.options,
    ...(maxOutputBytes === undefined ? {} : { maxOutputBytes }),
    ...(keyName === undefined ? {} : { keyName }),
    runtime,
    note,
    heard: heardOn(stderr, config.proxy.secrets),
  });
  closers.unshift(() => proxy.close());
  tellAsked(proxy.layer, gates.options.store !== undefined, note);
  const trace = await openTrace(command, context);
  if (trace !== undefined) {
    proxy.layer.trace$.subscribe((event) => trace.write(event));
    closers.push(() => trace.close());
  }
  if (command.adminPort !== undefined) {
    const { openAdmin } = await import('./admin/run.ts');
    const admin = await openAdmin(proxy.layer, command.adminPort, note, context.env, gates.options.approvals);
    closers.unshift(() => admin.close());
  }
  if (command.inspectPort !== undefined) {
    const { openInspector } = await import('./trace/inspect.ts');
    const inspector = await openInspector(proxy.layer, command.inspectPort, context, note);
    closers.unshift(() => inspector.close());
  }
  if (command.httpPort === undefined) await serveStdio(proxy, packages, context);
  else await serveHttp(proxy, command, packages, context, Object.keys(config.proxy.servers).length === 1);
};

/**
 * Stands in front of MCP servers until the client is gone or the signal is aborted.
 *
 * @param args the command line after `mcp`
 * @returns the exit code
 * @throws UsageError, PlanFileError
 */
export async function runMcp(args: readonly string[], context: CommandContext): Promise<number> {
  if (args[0] === 'login') return (await import('./login.ts')).runLogin(args.slice(1), context);
  const command = parseMcp(args);
  if (command === undefined || command.printConfig) {
    context.stdout.write(command === undefined ? MCP_HELP : clientConfig(command));
    return EXIT.fine;
  }
  const closers: Close[] = [];
  try {
    await serve(command, context, closers);
    return EXIT.fine;
  } finally {
    for (const close of closers) await close().catch(() => undefined);
  }
}
