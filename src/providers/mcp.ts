import { Observable, catchError, defer, firstValueFrom, from, map, of, race, switchMap, tap, throwError } from 'rxjs';
import type { ToolProvider } from '../contract/provider.ts';
import type { Runtime } from '../contract/runtime.ts';
import { ToolExecutionError } from '../contract/tool-error.ts';
import type { Tool, ToolContext } from '../contract/tool.ts';
import { mcpAborted, mcpErrorResult, mcpThrown } from '../errors/mcp.ts';
import { read } from '../errors/structure.ts';
import { abortable } from '../operators/work/abortable.ts';
import { correctable } from '../policy/advice.ts';
import { checkKeys, checkNumber, checkOneOf, positiveDuration } from '../policy/check.ts';
import { mayHaveActed } from '../policy/mcp-hints.ts';
import { confirmed, isClaim, unconfirmed } from '../policy/recovery/refusal.ts';
import { liveRuntime } from '../runtime.ts';
import { SESSION_LOST, callTool, type McpConnection, type McpSession } from './mcp/client.ts';
import type { McpInput } from './mcp/input.ts';
import { createMcpLink, type LiveConnection, type McpLink } from './mcp/link.ts';
import { checkOwnNames, checkOwnTools, type OwnTools } from './own-tools.ts';
import {
  McpToolList,
  type Execute as McpExecute,
  type LeftOutTool,
  type ListedTool,
  type UncheckedTool,
} from './mcp/tool-list.ts';

export {
  mcpConnection,
  type McpClientLike,
  type McpConnection,
  type McpSession,
  type McpToolLike,
} from './mcp/client.ts';
export type { LeftOutTool, UncheckedTool } from './mcp/tool-list.ts';
export type { OwnTool, OwnTools } from './own-tools.ts';

/** How long a connection may take; `npx` may have to fetch the server first. */
const CONNECT_TIMEOUT_MS = 30_000;

/** How a provider connects to its server, and what it shows of failures. */
export interface McpProviderOptions {
  /** The provider's name; its tools are called `name.tool`. */
  readonly name: string;
  /**
   * Connects a client. Called again after the connection was lost. When `signal` is aborted the connection is no longer
   * wanted.
   */
  readonly connect: (signal: AbortSignal) => Promise<McpConnection>;
  /** Limit on connecting and listing the tools, in milliseconds. Default 30,000. */
  readonly connectTimeoutMs?: number;
  /**
   * `errors`: a model is shown what a tool itself says of its failure, as MCP asks clients to: without what looks like
   * a secret, cut, and marked as the tool's. Default: only what happened, and whether trying again can help.
   */
  readonly show?: 'errors';
  /**
   * What you know of single tools, by their names at the server: `{ read_file: { policy: { timeoutMs: 5_000 } } }`.
   * Default: only what the server says of them.
   */
  readonly tools?: OwnTools;
  /**
   * Called when a call begins: gives whether the server waits for a person or a model to answer it. While it does, the
   * call's timeouts stand still. Default: it never does.
   */
  readonly waiting?: () => Observable<boolean>;
  /** Clock and timers of the connection. Default: the machine's. */
  readonly runtime?: Runtime;
}

/** The tools of an MCP server, as a layer takes them. */
export interface McpProvider extends ToolProvider {
  /**
   * The tools as the server lists them now. After the server said that they have changed it is another list, in which a
   * tool that stayed as it was is the same object.
   */
  readonly tools: readonly Tool[];
  /** What the server lists and the provider does not: tools that only run as tasks, and names listed twice. */
  readonly leftOut: readonly LeftOutTool[];
  /**
   * Tools whose input only their server checks, since their JSON Schema cannot be used: one with an unsafe pattern is
   * found when the tools are listed, any other when the tool is first called.
   */
  readonly unchecked: readonly UncheckedTool[];
  /** How the server is spoken to over the last connection that was made; traces show it. */
  readonly mcp: McpSession;
}

const OPTION_KEYS = ['name', 'connect', 'connectTimeoutMs', 'show', 'tools', 'waiting', 'runtime'];

/** Checks a connection before its first use: it is easy to give the client alone by mistake. */
const checkedConnection = (given: McpConnection): McpConnection => {
  const client = read(given, 'client');
  const methods = [
    read(client, 'listTools'),
    read(client, 'callTool'),
    read(given, 'close'),
    read(read(given, 'closed'), 'then'),
  ];
  if (methods.every((method) => typeof method === 'function')) return given;
  const rule = 'connect must give a connection: wrap the client, as in async () => mcpConnection(client)';
  // The code says that it will be no other the next time.
  const problem = new TypeError(`${rule}; what it gave lacks client, closed or close`);
  throw Object.assign(problem, { code: 'ERR_INVALID_ARG_TYPE' });
};

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** What is wrong with its input is for the model to read. */
const invalid = (problem: string): ToolExecutionError =>
  new ToolExecutionError('invalid_parameters', problem, { safeMessage: correctable(problem) });

/** The arguments of a call. MCP has only objects. */
const argumentsOf = (input: unknown, toolName: string, check: McpInput): Record<string, unknown> => {
  const args = input === undefined ? {} : input;
  if (!isRecord(args)) throw invalid(`The input of ${toolName} must be an object`);
  const problem = check.problem(args);
  if (problem !== undefined) throw invalid(problem);
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

/** What calls of one provider have in common. */
interface Calls {
  readonly provider: string;
  readonly link: McpLink;
  readonly list: McpToolList;
  readonly waiting: McpProviderOptions['waiting'];
}

/**
 * What a call failed with, where the server may only say that it turned it away: its input was checked before it was
 * sent, so only a tool that the server does not list is known not to have run.
 */
const judged = async (
  failed: ToolExecutionError,
  name: string,
  live: LiveConnection,
  { link, list }: Calls,
): Promise<never> => {
  if (!isClaim(failed)) throw failed;
  const isListed = await link.relist(live).then(
    () => list.has(name),
    () => true,
  );
  throw isListed ? unconfirmed(failed) : confirmed(failed);
};

const UNLISTED = 'The server said that its tools changed, and does not list them';

/**
 * Checks a further attempt at a tool that only read when its call began, by its server's word alone: by now the server
 * may say that it does more, and then the attempts before may have done it.
 */
const stillReading = async (live: LiveConnection, name: string, { link, list }: Calls): Promise<void> => {
  await link.renew(live).catch((error: unknown) => {
    // The next attempt asks again.
    throw new ToolExecutionError('transport_error', UNLISTED, { uncertain: true, cause: error });
  });
  if (!list.reads(name)) throw mayHaveActed();
};

/** One call, with the first of: its answer, the caller's abort, the loss of the connection. */
const execute = (calls: Calls, tool: ListedTool, input: unknown, context: ToolContext): Promise<unknown> => {
  const { name, check } = tool;
  const isChecked = tool.reads && context.attempt > 1;
  const { link, list, provider, waiting } = calls;
  if (waiting !== undefined) context.holdWhile?.(waiting());
  let sent = false;
  const call$ = (live: LiveConnection, args: Record<string, unknown>): Observable<unknown> => {
    const { connection, lost$ } = live;
    const called$ = abortable((signal) => {
      sent = true;
      return callTool(connection, name, args, context, signal);
    });
    const answered$ = called$.pipe(
      catchError((thrown: unknown) => throwError(() => mcpThrown(thrown, name))),
      map((result) => {
        link.answered();
        return outputOf(result, name);
      }),
      catchError((error: ToolExecutionError) => judged(error, name, live, calls)),
    );
    const checked$ = isChecked ? from(stillReading(live, name, calls)) : of(undefined);
    return race(checked$.pipe(switchMap(() => answered$)), lost$).pipe(
      tap({ error: (error: ToolExecutionError) => error.code === SESSION_LOST && link.lose(live, error) }),
    );
  };
  const answer$ = defer(() => {
    const args = argumentsOf(input, name, check);
    if (isChecked && !list.reads(name)) throw mayHaveActed();
    // Whoever still holds a tool that is gone calls it here, and not through the layer.
    if (!list.has(name))
      throw new ToolExecutionError('unknown_tool', `The MCP server ${provider} lists no tool ${name} any more`);
    return from(link.acquire()).pipe(switchMap((live) => call$(live, args)));
  });
  return firstValueFrom(
    race(
      aborted$(context.signal, () => sent),
      answer$,
    ),
  );
};

const checkOptions = (options: McpProviderOptions): void => {
  checkKeys('mcpProvider', options, OPTION_KEYS);
  const { name, connect, connectTimeoutMs = CONNECT_TIMEOUT_MS, show, tools = {} } = options;
  if (typeof name !== 'string' || name === '') throw new RangeError('name must be a text of at least one character');
  if (typeof connect !== 'function') {
    const rule = 'connect must be a function that gives a connection, such as async () => mcpConnection(client)';
    throw new RangeError(`${rule}, not ${typeof connect}`);
  }
  checkNumber('connectTimeoutMs', connectTimeoutMs, positiveDuration);
  if (show !== undefined) checkOneOf('show', show, ['errors']);
  checkOwnTools('mcpProvider', tools);
};

/**
 * The tools of an MCP server, over any transport and with either SDK: `connect` gives the client.
 *
 * Connects and lists the tools before it resolves, and again after each loss and whenever the server says that they
 * have changed: new ones are guarded by the layers that have the provider, removed ones fail with `unknown_tool`, not
 * executed. A call that the server cannot answer because the connection is lost fails at once with `transport_error`,
 * uncertain. The next call connects again: at once after the first failure, then with a backoff of 1, 2, 5, 10, 30 and
 * 60 s, forgotten when a call comes back. While connecting, calls wait, each up to its own signal; during a backoff
 * they fail at once with `transport_error`, not executed, whose `retryAfterMs` says when it ends. An aborted signal
 * gives `canceled`.
 *
 * A result is its structured content, else the text of a single text content, else the list of contents; JSON text
 * stays text. Input that does not fit the schema a tool is listed with gives `invalid_parameters` and is not sent; a
 * schema that cannot be used, such as one that refers to another document, leaves the check to the server, see
 * `unchecked`. That a server turned a call away is believed where it does not list the tool; else its words are for the
 * host alone, and the tool may have run. Tools that require task support are left out, see `leftOut`.
 *
 * A tool whose server says that it only reads (`readOnlyHint`) is `read`, any other is `mutating`: also one that says
 * nothing, and whatever the layer's `defaults` say. Where you know better, give the layer `{ ...tool, name, policy: {
 * effects: 'read' } }`.
 *
 * @throws RangeError for an option that does not exist or is out of its range; `transport_error`, not executed, when
 *   the server cannot be connected
 *
 * @example
 * const provider = await mcpProvider({ name: 'files', connect: async () => mcpConnection(await connectedClient()) });
 * const spillway = createSpillway({ providers: [provider] });
 */
export async function mcpProvider(options: McpProviderOptions): Promise<McpProvider> {
  const { name, connect, connectTimeoutMs = CONNECT_TIMEOUT_MS, show, runtime = liveRuntime } = options;
  const { tools: own = {}, waiting } = options;
  checkOptions(options);
  const run: McpExecute = (tool, input, context) =>
    execute({ provider: name, link, list, waiting }, tool, input, context);
  const list = new McpToolList(name, run, show, own);
  let last: McpConnection | undefined;
  const dial = async (signal: AbortSignal): Promise<McpConnection> => (last = checkedConnection(await connect(signal)));
  const link = createMcpLink({ name, connect: dial, connectTimeoutMs, runtime, listed: (tools) => list.update(tools) });
  try {
    await link.acquire();
    checkOwnNames('mcpProvider', own, list.names);
  } catch (error) {
    // What a failed attempt started is gone before its error is thrown.
    await link.close();
    throw error;
  }
  return {
    name,
    get tools() {
      return list.tools;
    },
    get leftOut() {
      return list.leftOut;
    },
    get unchecked() {
      return list.unchecked;
    },
    get mcp() {
      return last?.session?.() ?? {};
    },
    close: () => link.close(),
  };
}
