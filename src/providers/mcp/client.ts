import * as z from 'zod';
import { ToolExecutionError } from '../../contract/tool-error.ts';
import type { ToolContext } from '../../contract/tool.ts';
import { VERSION } from '../../contract/version.ts';
import { httpThrown } from '../../errors/http.ts';

/** How spillway introduces itself to servers; the version is the package's. */
export const CLIENT_INFO: { readonly name: 'spillway'; readonly version: string } = {
  name: 'spillway',
  version: VERSION,
};
/** The longest timeout a client's `setTimeout` can hold, about 24.8 days: ours decides, theirs never fires. */
const CLIENT_TIMEOUT_MS = 2 ** 31 - 1;
/**
 * Pages of `tools/list` that are read; SDK 2's own limit. A server whose cursor never ends is not listened to for ever.
 */
const PAGES_MAX = 64;

/** A tool as `tools/list` gives it. */
export interface McpToolLike {
  /** The tool's name at its server. */
  readonly name: string;
  /** What the tool does, in words for a model. */
  readonly description?: string | undefined;
  /** The JSON Schema of the input; without one, any object is taken. */
  readonly inputSchema?: Readonly<Record<string, unknown>> | undefined;
  /** What the server says of the tool's effects. */
  readonly annotations?:
    | {
        /** `true`: the tool changes nothing, and may be retried. Default `false`, MCP's own: it counts as mutating. */
        readonly readOnlyHint?: boolean | undefined;
      }
    | undefined;
  /** How the server runs the tool. */
  readonly execution?:
    | {
        /** A tool that says `required` only runs as a task, and is left out. */
        readonly taskSupport?: string | undefined;
      }
    | undefined;
}

/**
 * An MCP client, as far as it is used: `Client` of `@modelcontextprotocol/sdk` 1.x and of
 * `@modelcontextprotocol/client` 2.x both are one. SDK 1 takes `callTool(params, resultSchema, options)`, SDK 2
 * `callTool(params, options)`.
 */
export interface McpClientLike {
  /** Reads one page of the server's tools; at most 64 pages are read. */
  listTools(params?: {
    /** The page's cursor; without one it is the first page. */
    cursor?: string;
  }): Promise<{
    /** The tools of the page. */
    readonly tools: readonly McpToolLike[];
    /** The cursor of the next page; absent on the last one. */
    readonly nextCursor?: string | undefined;
  }>;
  /**
   * Calls a tool. Gives MCP's result, with `isError` where the tool failed; rejects where protocol or transport did.
   */
  callTool(
    params: {
      /** The tool's name at its server. */
      name: string;
      /** The input; absent where the call has none. */
      arguments?: Record<string, unknown>;
    },
    ...rest: unknown[]
  ): Promise<unknown>;
}

/** How a server is spoken to, as OpenTelemetry's conventions for MCP tell it. */
export interface McpSession {
  /** `pipe` over stdio, `tcp` over HTTP. */
  readonly transport?: 'pipe' | 'tcp';
  /** The session's id, where the server gave one. */
  readonly id?: string;
}

/** A client that is connected to its server. */
export interface McpConnection {
  /** The client, already connected. */
  readonly client: McpClientLike;
  /** Settles once the connection is gone, whoever ended it. An `Error` it settles with says why. */
  readonly closed: Promise<unknown>;
  /** Ends the connection and the server that was started for it. */
  close(): Promise<void>;
  /**
   * The SDK's major version, which decides how `callTool` takes its options. Default: 2 for a client that has
   * `getProtocolEra`, else 1.
   */
  readonly sdkMajor?: 1 | 2;
  /**
   * Registers a function that is called whenever the server says that its tools have changed. Without it the list is
   * read only when a connection is made.
   */
  readonly toolsChanged?: (heard: () => void) => void;
  /** How the server is spoken to now, read for each trace. Default: nothing is known. */
  readonly session?: () => McpSession;
}

interface ClosableClient extends McpClientLike {
  onclose?: (() => void) | undefined;
  close(): Promise<void>;
}

const TOOLS_CHANGED = 'notifications/tools/list_changed';

/** SDK 1 takes a schema that names the notification, SDK 2 its name. A client that takes neither hears of no change. */
export function hearToolsChanged(client: object, heard: () => void): void {
  const { setNotificationHandler } = client as {
    readonly setNotificationHandler?: (what: unknown, handler: () => void) => void;
  };
  const what = 'getProtocolEra' in client ? TOOLS_CHANGED : z.looseObject({ method: z.literal(TOOLS_CHANGED) });
  if (typeof setNotificationHandler === 'function') Reflect.apply(setNotificationHandler, client, [what, heard]);
}

/** The code of a call that a server refused because it had forgotten its session. */
export const SESSION_LOST = 'session_lost';

/** Without a status: a 404 would not be tried again. */
export function sessionLost(): ToolExecutionError {
  return new ToolExecutionError('transport_error', 'The MCP server no longer knows the session', {
    code: SESSION_LOST,
    executed: false,
  });
}

/**
 * The connection of a client that has just been connected. It takes the client's `onclose` and its handler of changed
 * tools for itself. A call that its server answers with HTTP 404 fails with `transport_error`, not executed, and ends
 * the connection: over Streamable HTTP the session is gone then.
 *
 * @example
 * const connect = async () => {
 *   const client = new Client({ name: 'my-agent', version: '1.0.0' });
 *   await client.connect(new StreamableHTTPClientTransport(url));
 *   return mcpConnection(client);
 * };
 */
export function mcpConnection(client: ClosableClient): McpConnection {
  const closed = new Promise<void>((resolve) => {
    Object.assign(client, { onclose: resolve });
  });
  const callTool = async (...args: Parameters<McpClientLike['callTool']>): Promise<unknown> => {
    try {
      return await client.callTool(...args);
    } catch (error) {
      throw httpThrown(error).status === 404 ? sessionLost() : error;
    }
  };
  return {
    client: { listTools: (params) => client.listTools(params), callTool },
    closed,
    close: () => client.close(),
    sdkMajor: 'getProtocolEra' in client ? 2 : 1,
    toolsChanged: (heard) => hearToolsChanged(client, heard),
  };
}

/** Every tool of a server. SDK 1 gives a page at a time, SDK 2 all of them at once. */
export async function listAllTools(client: McpClientLike): Promise<readonly McpToolLike[]> {
  const listFrom = async (page: number, cursor?: string): Promise<readonly McpToolLike[]> => {
    if (page > PAGES_MAX)
      throw new RangeError(`tools/list has more than ${PAGES_MAX} pages; the server’s cursor does not end`);
    const { tools, nextCursor } = await client.listTools(cursor === undefined ? undefined : { cursor });
    return nextCursor === undefined ? tools : [...tools, ...(await listFrom(page + 1, nextCursor))];
  };
  return listFrom(1);
}

/** W3C baggage, as a header would carry it. */
const baggageText = (baggage: Readonly<Record<string, string>>): string =>
  Object.entries(baggage)
    .map(([key, value]) => `${encodeURIComponent(key)}=${encodeURIComponent(value)}`)
    .join(',');

/**
 * The protocol has no idempotency key, so the call's own travels under a name of ours: a server that knows it can
 * refuse to act twice.
 */
const metaOf = ({
  callKey,
  fence,
  traceparent,
  traceContext,
  baggage,
}: ToolContext): Record<string, string | number> => ({
  'spillway/callKey': callKey,
  ...(fence === undefined ? {} : { 'spillway/fence': fence }),
  // Without a prefix, as SEP-414 has them.
  ...(traceparent === undefined ? {} : { traceparent }),
  ...(traceContext?.tracestate === undefined ? {} : { tracestate: traceContext.tracestate }),
  ...(baggage === undefined ? {} : { baggage: baggageText(baggage) }),
});

interface ProgressLike {
  readonly progress: number;
  readonly total?: number | undefined;
  readonly message?: string | undefined;
}

/**
 * One `tools/call`.
 *
 * @param signal fresh for this call: SDK 1 leaves its listener on it for ever
 */
export function callTool(
  { client, sdkMajor }: McpConnection,
  name: string,
  input: Record<string, unknown>,
  context: ToolContext,
  signal: AbortSignal,
): Promise<unknown> {
  const params = { name, arguments: input, _meta: metaOf(context) };
  const options = {
    signal,
    timeout: CLIENT_TIMEOUT_MS,
    // Without `onprogress` the client asks for no progress, and nothing is reset.
    resetTimeoutOnProgress: true,
    onprogress: ({ progress, total, message }: ProgressLike): void => {
      if (!signal.aborted)
        context.progress({
          progress,
          ...(total === undefined ? {} : { total }),
          ...(message === undefined ? {} : { message }),
        });
    },
  };
  const major = sdkMajor ?? ('getProtocolEra' in client ? 2 : 1);
  return major === 2 ? client.callTool(params, options) : client.callTool(params, undefined, options);
}
