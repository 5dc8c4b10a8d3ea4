import type { ToolContext } from '../../contract/tool.ts';
import type { ToolExecutionError } from '../../contract/tool-error.ts';
import { mcpErrorResult, mcpThrown } from '../../errors/mcp.ts';
import { read } from '../../errors/structure.ts';
import { guardedCalls, type GuardLayerOptions } from '../guarded/calls.ts';
import { areBlocks } from '../guarded/blocks.ts';
import { proxied } from '../guarded/proxied.ts';
import { judged } from '../mcp/claim.ts';
import { DeclaredEffects } from '../mcp/declared-effects.ts';
import { PolicyNames } from '../mcp/policy-names.ts';
import { asResult } from '../mcp/result.ts';

interface CallOptions {
  readonly signal?: AbortSignal;
}
type Args = Record<string, unknown> | null;
type CallTool = (toolName: string, args: Args, meta?: unknown, options?: CallOptions) => Promise<unknown>;
/** Both ways in which the SDK calls a tool: for its content, and for its whole result. */
type Way = 'callTool' | 'callToolResult';

/** A result as both ways give it; the SDK writes what is not content beside the content. */
const resultOf = (way: Way, given: unknown): unknown =>
  way === 'callTool' ? { content: given, isError: read(given, 'isError') } : given;

/** What the server did not give itself, as this way gives it. */
const adopted = (way: Way, value: unknown): unknown => {
  const result = asResult(areBlocks(value) ? { content: value } : value);
  return way === 'callTool' ? read(result, 'content') : result;
};

const failedResult = (way: Way, text: string): unknown => {
  const content = Object.defineProperty([{ type: 'text', text }], 'isError', { value: true, configurable: true });
  return way === 'callTool' ? content : { content, isError: true };
};

const toolsOf = async (server: object): Promise<unknown> =>
  (Reflect.get(server, 'listTools') as () => unknown).call(server);

/** The server's list as an MCP client gives it, since whether a tool is there is asked of one. */
const listingClient = (server: object): object => ({
  listTools: async () => ({ tools: await toolsOf(server) }),
});

/**
 * The server's tools as the SDK lists them, before each turn: were the server lost with a call, the run would end
 * there, and the model never be told what became of the call. So then they are those of the last time.
 */
class Listing {
  readonly #server: object;
  readonly #heard: (tools: unknown) => void;
  #last: unknown;
  /** Whether a call has failed since then. */
  isOwed = false;

  constructor(server: object, heard: (tools: unknown) => void) {
    this.#server = server;
    this.#heard = heard;
  }

  async read(): Promise<unknown> {
    try {
      this.#last = await toolsOf(this.#server);
      this.isOwed = false;
    } catch (error) {
      if (!this.isOwed || this.#last === undefined) throw error;
      return this.#last;
    }
    this.#heard(this.#last);
    return this.#last;
  }
}

/** One attempt at a call of the server's. */
interface ServerCall {
  readonly server: object;
  readonly way: Way;
  readonly toolName: string;
  readonly meta: unknown;
  readonly options: CallOptions | undefined;
}

const callOnce = async (
  { server, way, toolName, meta, options }: ServerCall,
  args: Args,
  { signal }: ToolContext,
): Promise<unknown> => {
  const judge = (error: ToolExecutionError): Promise<ToolExecutionError> =>
    judged(error, listingClient(server), toolName, args, signal);
  // Looked up at each call, as the SDK itself would.
  const call = Reflect.get(server, way) as CallTool;
  const given = await Promise.resolve(
    Reflect.apply(call, server, [toolName, args, meta, { ...options, signal }]),
  ).catch(async (thrown: unknown) => {
    throw await judge(mcpThrown(thrown, toolName));
  });
  const result = resultOf(way, given);
  if (read(result, 'isError') === true) throw await judge(mcpErrorResult(result, toolName));
  return given;
};

const checkServer = (server: object): void => {
  for (const name of ['callTool', 'listTools'])
    if (typeof read(server, name) !== 'function')
      throw new RangeError(`guardMcpServer takes an MCP server of OpenAI Agents, and this one has no ${name} method`);
};

/**
 * Guards an MCP server of OpenAI Agents (`MCPServerStdio`, `MCPServerStreamableHttp`, `MCPServerSSE`, or one of your
 * own): each call of its tools runs under a layer, with its hard timeout, retries, breaker and trace; everything else
 * is the server's own, its filters, guardrails and `connect` among it. A call settles when its timeout passes or the
 * run's signal fires, whatever the server does.
 *
 * A call that fails gives a result with `isError` and one text: what happened in a sentence and whether the tool ran.
 * Nothing of what the tool or the server wrote is in it. Where a server says that it turned a call away, its tools are
 * listed once more, and only one that it does not list, or whose schema the input does not fit, did not run. A server
 * that cannot be listed after a call has failed keeps the tools that it had, so that the model is told of the call.
 *
 * A tool with `readOnlyHint` counts as `read` where the server lists its annotations, any other as `mutating`;
 * `policies` and `defaults.effects` go before that; before a further attempt the server is asked anew. Hosted
 * MCP tools run at OpenAI, where nothing can guard them.
 *
 * @param server for `new Agent({ mcpServers })`, connected or not
 * @param options `spillway` or the options of one, and `policies` by the tool's name at its server
 * @returns a server of the same type
 * @throws RangeError for an option that does not exist or is out of its range, or what is no such server. A policy for
 * a tool that the server does not have makes `listTools` reject with one
 *
 * @example
 * const client = await connectedClient();
 * const server = {
 *   name: 'files',
 *   listTools: async () => (await client.listTools()).tools,
 *   callTool: async (name: string, args: Record<string, unknown>) =>
 *     (await client.callTool({ name, arguments: args })).content,
 * };
 * const guarded = guardMcpServer(server, { policies: { search: { timeoutMs: 10_000, effects: 'read' } } });
 */
export function guardMcpServer<Server extends object>(server: Server, options: GuardLayerOptions = {}): Server {
  checkServer(server);
  const calls = guardedCalls('guardMcpServer', options);
  const declared = new DeclaredEffects();
  const hostSays = options.defaults?.effects !== undefined;
  const names = new PolicyNames(calls.checkNames, Object.keys(options.policies ?? {}).length > 0);
  const listing = new Listing(server, (tools) => {
    declared.note({ tools });
    names.addPage(undefined, { tools });
  });
  const guarded =
    (way: Way): CallTool =>
    async (toolName, args, meta, callOptions) => {
      const settled = await calls.begin({
        framework: 'openai-agents',
        toolName,
        ...(hostSays ? {} : { effects: declared.of(toolName) }),
        stillReads: (signal) => declared.stillReads(listingClient(server), toolName, signal),
        input: args,
        signal: callOptions?.signal,
        run: (given, context) =>
          callOnce({ server, way, toolName, meta, options: callOptions }, given as Args, context),
        adopt: (value) => adopted(way, value),
      }).outcome;
      if (settled.succeeded) return settled.value;
      if (callOptions?.signal?.aborted === true) throw callOptions.signal.reason;
      listing.isOwed = true;
      return failedResult(way, settled.failure.message);
    };
  const whole =
    typeof read(server, 'callToolResult') === 'function' ? { callToolResult: guarded('callToolResult') } : {};
  return proxied(server, { listTools: () => listing.read(), callTool: guarded('callTool'), ...whole });
}
