import { ToolExecutionError } from '../contract/tool-error.ts';
import type { ToolContext } from '../contract/tool.ts';
import { mcpErrorResult, mcpThrown } from '../errors/mcp.ts';
import { read } from '../errors/structure.ts';
import { guardedCalls, type GuardLayerOptions } from './guarded/calls.ts';
import { proxied } from './guarded/proxied.ts';
import { judged } from './mcp/claim.ts';
import { DeclaredEffects } from './mcp/declared-effects.ts';
import { PolicyNames } from './mcp/policy-names.ts';
import { asResult } from './mcp/result.ts';

export type { GuardLayerOptions } from './guarded/calls.ts';
export { createHarvest, type GuardedHarvest, type HarvestOptions, type HarvestedCall } from './guarded/harvest.ts';
export { ToolFailure } from './guarded/tool-failure.ts';

/**
 * The longest timeout a client's `setTimeout` can hold, about 24.8 days: the layer's timeout decides, theirs never
 * fires.
 */
const CLIENT_TIMEOUT_MS = 2 ** 31 - 1;

type CallArguments = Record<string, unknown>;
interface CallParams {
  readonly name: string;
  readonly arguments?: CallArguments;
}
interface RequestOptions {
  readonly signal?: AbortSignal;
  readonly onprogress?: (progress: ProgressLike) => void;
}
interface ProgressLike {
  readonly progress: number;
  readonly total?: number | undefined;
  readonly message?: string | undefined;
}
type CallTool = (params: CallParams, ...rest: unknown[]) => Promise<unknown>;

/**
 * The options of one attempt: its own signal, its progress passed to the layer as well, and no timeout but what the
 * caller gave.
 */
const attemptOptions = (given: RequestOptions | undefined, signal: AbortSignal, context: ToolContext): object => ({
  timeout: CLIENT_TIMEOUT_MS,
  ...given,
  signal,
  // Without `onprogress` the client asks for no progress, and an idle timeout would not be reset.
  onprogress: (report: ProgressLike): void => {
    const { progress, total, message } = report;
    if (signal.aborted) return;
    context.progress({
      progress,
      ...(total === undefined ? {} : { total }),
      ...(message === undefined ? {} : { message }),
    });
    given?.onprogress?.(report);
  },
});

/** `listTools` for a client that has one, which also notes what is listed. */
const listing = (client: object, names: PolicyNames, declared: DeclaredEffects): Readonly<Record<string, unknown>> => {
  if (typeof read(client, 'listTools') !== 'function') return {};
  const listTools = async (...args: readonly unknown[]): Promise<unknown> => {
    // Looked up at each call, as the client itself would.
    const page: unknown = await Reflect.apply(
      read(client, 'listTools') as (...given: readonly unknown[]) => unknown,
      client,
      args,
    );
    declared.note(page);
    names.addPage(read(args[0], 'cursor'), page);
    return page;
  };
  return { listTools };
};

/**
 * Guards an MCP client: its `callTool` runs under a layer, with its hard timeout, retries, breaker and trace;
 * everything else is the client's own. `Client` of `@modelcontextprotocol/sdk` 1.x and of
 * `@modelcontextprotocol/client` 2.x both are one, and what is built on a client can use the guarded one. A call
 * settles when its timeout passes or its signal fires; each attempt has a signal of its own.
 *
 * A tool is what its server says of it, where the host lists the tools through the guarded client: `read` with
 * `readOnlyHint`, else `mutating`, as is one that was not listed. `policies` and `defaults.effects` go before that.
 * Before a further attempt at one that is `read` by its server's word alone the tools are listed anew, and it is not
 * called again where it does more by now.
 *
 * A call that fails gives a result with `isError` and one text: what happened in a sentence and whether the tool ran.
 * Nothing of what the tool, the server or the client wrote is in it, since a tool can write what a server would. Where
 * a server says that it turned a call away, its tools are listed once more: one that it does not list did not run, for
 * input that does not fit the listed schema it is said what is wrong; any other may have run. A call whose signal was
 * aborted throws a `ToolFailure`, as the client would throw.
 *
 * `timeout` among a call's own options still bounds each attempt; without it only the layer's policy does.
 *
 * @param client a client, connected or not
 * @param options `spillway` or the options of one, and `policies` by the tool's name at its server
 * @returns a client of the same type
 * @throws RangeError for an option that does not exist or is out of its range, or a client without `callTool`. A policy
 * for a tool that the server does not have makes `listTools` reject with one, once the list is read to its end, or the
 * first call
 *
 * @example const client = guardClient(await connectedClient(), { policies: { search: { timeoutMs: 10_000, effects:
 * 'read' } } }); const result = await client.callTool({ name: 'search', arguments: { query: 'spillway' } });
 */
export function guardClient<Client extends object>(client: Client, options: GuardLayerOptions = {}): Client {
  const original = read(client, 'callTool');
  if (typeof original !== 'function')
    throw new RangeError(
      `guardClient takes an MCP client with a callTool method, not one whose callTool is ${typeof original}`,
    );
  const calls = guardedCalls('guardClient', options);
  const declared = new DeclaredEffects();
  // Given for the tools of this client, and so about them.
  const hostSays = options.defaults?.effects !== undefined;
  const names = new PolicyNames(calls.checkNames, Object.keys(options.policies ?? {}).length > 0);
  // SDK 1 takes `callTool(params, resultSchema, options)`, SDK 2 `callTool(params, options)`.
  const place = 'getProtocolEra' in client ? 0 : 1;
  const callOnce = async (params: CallParams, rest: readonly unknown[], context: ToolContext): Promise<unknown> => {
    const { signal } = context;
    await names.ask(client, signal).catch((error: unknown) => {
      throw new ToolExecutionError('invalid_parameters', 'A policy names a tool that the server does not list', {
        cause: error,
      });
    });
    const args: unknown[] = place === 1 ? [rest[0]] : [];
    args[place] = attemptOptions(rest[place] as RequestOptions | undefined, signal, context);
    // Looked up at each call, as the client itself would: an instrumented client has replaced it.
    const callTool = read(client, 'callTool') as CallTool;
    const judge = (error: ToolExecutionError): Promise<ToolExecutionError> =>
      judged(error, client, params.name, params.arguments, signal);
    const result = await Promise.resolve(Reflect.apply(callTool, client, [params, ...args])).catch(
      async (thrown: unknown) => {
        throw await judge(mcpThrown(thrown, params.name));
      },
    );
    if (read(result, 'isError') === true) throw await judge(mcpErrorResult(result, params.name));
    return result;
  };
  const guarded: CallTool = async (params, ...rest) => {
    const { signal } = (rest[place] ?? {}) as RequestOptions;
    const settled = await calls.begin({
      framework: 'mcp',
      toolName: params.name,
      ...(hostSays ? {} : { effects: declared.of(params.name) }),
      stillReads: (asking) => declared.stillReads(client, params.name, asking),
      input: params.arguments,
      signal,
      run: (given, context) =>
        callOnce(given === undefined ? params : { ...params, arguments: given as CallArguments }, rest, context),
      adopt: asResult,
    }).outcome;
    if (settled.succeeded) return settled.value;
    if (names.mistake !== undefined) throw names.mistake;
    if (signal?.aborted === true) throw settled.failure;
    return { content: [{ type: 'text', text: settled.failure.message }], isError: true };
  };
  return proxied(client, { callTool: guarded, ...listing(client, names, declared) });
}
