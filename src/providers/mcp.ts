import { Observable, catchError, defer, firstValueFrom, from, map, race, switchMap, tap, throwError } from 'rxjs';
import type { Effects } from '../contract/policy.ts';
import type { ToolProvider } from '../contract/provider.ts';
import type { Runtime } from '../contract/runtime.ts';
import { ToolExecutionError } from '../contract/tool-error.ts';
import type { Tool, ToolContext } from '../contract/tool.ts';
import { mcpAborted, mcpErrorResult, mcpThrown } from '../entrance/mcp.ts';
import { read } from '../entrance/structure.ts';
import { abortable } from '../operators/abortable.ts';
import { checkNumber, positiveDuration } from '../policy/check.ts';
import { liveRuntime } from '../runtime.ts';
import { SESSION_LOST, callTool, type McpConnection, type McpToolLike } from './mcp-client.ts';
import { mcpInput, type McpInput } from './mcp-input.ts';
import { createMcpLink, type LiveConnection, type McpLink } from './mcp-link.ts';

export { mcpConnection, type McpClientLike, type McpConnection, type McpToolLike } from './mcp-client.ts';

/** How long a connection may take; `npx` may have to fetch the server first. */
const CONNECT_TIMEOUT_MS = 30_000;

export interface McpProviderOptions {
  /** The provider's name; its tools are called `name.tool`. */
  readonly name: string;
  /** Connects a client. Called again after the connection was lost. When `signal` is aborted the connection is no longer wanted. */
  readonly connect: (signal: AbortSignal) => Promise<McpConnection>;
  /** Limit on connecting and listing the tools. Default 30,000. */
  readonly connectTimeoutMs?: number;
  readonly runtime?: Runtime;
}

/** A tool that a server has and that cannot be called through the provider. */
export interface LeftOutTool {
  readonly toolName: string;
  /** A sentence. */
  readonly reason: string;
}

/** A tool whose input is checked by its server alone. */
export interface UncheckedTool {
  readonly toolName: string;
  /** Why its schema cannot be used here. */
  readonly reason: string;
}

export interface McpProvider extends ToolProvider {
  readonly tools: readonly Tool[];
  /** What the server lists and the provider does not: tools that only run as tasks, and names listed twice. */
  readonly leftOut: readonly LeftOutTool[];
  /** Tools whose JSON Schema turned out to be unusable when they were first called: none yet, as long as none was. */
  readonly unchecked: readonly UncheckedTool[];
}

/**
 * What a tool says it does to the world. Hints of a server are not to be trusted, so none makes the layer less careful than its own
 * default, which is `read`: a server that says nothing gets the layer's `defaults.effects`, one that admits to changing or destroying gets `mutating`.
 * `idempotentHint` is not asked: it does not make a writer a reader, and servers leave it out of their read tools.
 */
const effectsOf = ({ annotations }: McpToolLike): Effects | undefined => {
  if (annotations?.readOnlyHint === true) return 'read';
  return annotations?.readOnlyHint === false || annotations?.destructiveHint === true ? 'mutating' : undefined;
};

const isRecord = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null && !Array.isArray(value);

/** What is wrong with its input is for the model to read. */
const invalid = (misfit: string): ToolExecutionError => new ToolExecutionError('invalid_parameters', misfit, { safeMessage: misfit });

/** The arguments of a call. MCP has only objects. */
const argumentsOf = (input: unknown, toolName: string, check: McpInput): Record<string, unknown> => {
  const args = input === undefined ? {} : input;
  if (!isRecord(args)) throw invalid(`The input of ${toolName} must be an object`);
  const misfit = check.misfit(args);
  if (misfit !== undefined) throw invalid(misfit);
  return args;
};

/** Structured content if there is any, else the text of a result that is one text, else the list of contents. */
const outputOf = (result: unknown, toolName: string): unknown => {
  if (read(result, 'isError') === true) throw mcpErrorResult(result, toolName);
  const structured = read(result, 'structuredContent');
  if (structured !== undefined && structured !== null) return structured;
  const content = read(result, 'content');
  const only: unknown = Array.isArray(content) && content.length === 1 ? content[0] : undefined;
  return read(only, 'type') === 'text' ? read(only, 'text') : content;
};

/** Errors when the signal is aborted, and takes its listener with it when it is no longer wanted. */
const aborted$ = (signal: AbortSignal, wasSent: () => boolean): Observable<never> =>
  new Observable((subscriber) => {
    const fail = (): void => subscriber.error(mcpAborted(signal, wasSent()));
    if (signal.aborted) return fail();
    signal.addEventListener('abort', fail);
    return () => signal.removeEventListener('abort', fail);
  });

/** One call, with the first of: its answer, the caller's abort, the loss of the connection. */
const execute = (link: McpLink, toolName: string, check: McpInput, input: unknown, context: ToolContext): Promise<unknown> => {
  let sent = false;
  const call$ = (live: LiveConnection, args: Record<string, unknown>): Observable<unknown> => {
    const { connection, lost$ } = live;
    const called$ = abortable((signal) => {
      sent = true;
      return callTool(connection, toolName, args, context, signal);
    });
    return race(called$.pipe(catchError((thrown: unknown) => throwError(() => mcpThrown(thrown, toolName)))), lost$).pipe(
      tap({ error: (error: ToolExecutionError) => error.code === SESSION_LOST && link.lose(live, error) }),
    );
  };
  const answer$ = defer(() => {
    const args = argumentsOf(input, toolName, check);
    return from(link.acquire()).pipe(switchMap((live) => call$(live, args)));
  }).pipe(
    map((result) => {
      link.answered();
      return outputOf(result, toolName);
    }),
  );
  return firstValueFrom(race(aborted$(context.signal, () => sent), answer$));
};

const toolOf = (link: McpLink, provider: string, tool: McpToolLike, unchecked: UncheckedTool[]): Tool => {
  const effects = effectsOf(tool);
  const name = `${provider}.${tool.name}`;
  const check = mcpInput(tool, (reason) => unchecked.push({ toolName: name, reason }));
  return {
    name,
    input: check.schema,
    ...(tool.description === undefined ? {} : { description: tool.description }),
    ...(tool.inputSchema === undefined ? {} : { inputJsonSchema: tool.inputSchema }),
    ...(effects === undefined ? {} : { policy: { effects } }),
    dependency: provider,
    execute: (input, context) => execute(link, tool.name, check, input, context),
  };
};

const leftOutReason = (tool: McpToolLike, seen: ReadonlySet<string>): string | undefined => {
  if (seen.has(tool.name)) return 'the server lists this name more than once; the first one counts';
  return tool.execution?.taskSupport === 'required' ? 'it only runs as a task, which is not supported' : undefined;
};

/**
 * The tools of an MCP server, over any transport and with either SDK: `connect` gives the client.
 *
 * Connects and lists the tools once, before it resolves; the list is fixed from then on. A call that the server cannot answer because the
 * connection is lost fails at once with `transport_error`, uncertain. The next call connects again: at once after the first failure, then with
 * a backoff of 1, 2, 5, 10, 30 and 60 s, forgotten when a call comes back. While connecting, calls wait, each up to its own signal; during
 * a backoff they fail at once with `transport_error`, not executed, whose `retryAfterMs` says when it ends. An aborted signal gives `canceled`.
 *
 * A result is its structured content, else the text of a single text content, else the list of contents; JSON text stays text. Input that
 * does not fit the schema a tool is listed with gives `invalid_parameters` and is not sent; a schema that cannot be used, such as one that
 * refers to another document, leaves the check to the server, see `unchecked`. Tools that require task support are left out, see `leftOut`.
 *
 * @throws RangeError for an option out of its range; `transport_error`, not executed, when the server cannot be connected
 *
 * @example
 * const provider = await mcpProvider({ name: 'files', connect: async () => mcpConnection(await connectedClient()) });
 * const spillway = createSpillway({ providers: [provider] });
 */
export async function mcpProvider({ name, connect, connectTimeoutMs = CONNECT_TIMEOUT_MS, runtime = liveRuntime }: McpProviderOptions): Promise<McpProvider> {
  if (typeof name !== 'string' || name === '') throw new RangeError('name must be a text of at least one character');
  checkNumber('connectTimeoutMs', connectTimeoutMs, positiveDuration);
  const link = createMcpLink({ name, connect, connectTimeoutMs, runtime });
  try {
    const { tools: listed } = await link.acquire();
    const seen = new Set<string>();
    const tools: Tool[] = [];
    const leftOut: LeftOutTool[] = [];
    const unchecked: UncheckedTool[] = [];
    for (const tool of listed) {
      const reason = leftOutReason(tool, seen);
      seen.add(tool.name);
      if (reason === undefined) tools.push(toolOf(link, name, tool, unchecked));
      else leftOut.push({ toolName: `${name}.${tool.name}`, reason });
    }
    return { name, tools, leftOut, unchecked, close: () => link.close() };
  } catch (error) {
    // What a failed attempt started is gone before its error is told.
    await link.close();
    throw error;
  }
}
