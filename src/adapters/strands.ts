import { read } from '../errors/structure.ts';
import { outputText } from '../policy/model-text.ts';
import type { GuardLayerOptions } from './guarded/calls.ts';
import { guardedTools, refuseMismatch, type FinishedTool } from './guarded/finished.ts';
import { guardedMaker, memberOf, type GuardToolOptions, type MakerShape } from './guarded/maker.ts';
import { overridden } from './guarded/overridden.ts';

export type { GuardLayerOptions } from './guarded/calls.ts';
export type { GuardToolOptions } from './guarded/maker.ts';
export { createHarvest, type GuardedHarvest, type HarvestOptions, type HarvestedCall } from './guarded/harvest.ts';
export { ToolFailure } from './guarded/tool-failure.ts';

/** What Strands gives a tool beside its input, as far as it is used; the rest is handed on. */
interface ToolContext {
  readonly toolUse?: { readonly toolUseId?: string } | undefined;
  readonly cancelSignal?: AbortSignal | undefined;
  readonly agent?: { readonly messages?: readonly object[] } | undefined;
}

type Context = [context?: ToolContext];

const shape: Omit<MakerShape<Context>, 'find'> = {
  framework: 'strands',
  idOf: (_input, context) => context?.toolUse?.toolUseId,
  signalOf: (_input, context) => context?.cancelSignal,
  // The message that made the calls: the next one comes when all of them have ended.
  stepOf: (_input, context) => context?.agent?.messages?.at(-1),
  contextOf: (cancelSignal, _input, context) => [overridden(context ?? {}, { cancelSignal })],
  streams: 'returned',
  steers: (thrown) => read(thrown, 'name') === 'InterruptError',
};

/**
 * Guards what Strands' `tool` makes: gives a function like it, whose tools run their `callback` under a layer, with its
 * hard timeout, retries, breaker and trace. All else is Strands' own: it checks the input, runs hooks and middleware,
 * and interrupts for a person, also from within a tool. Works for the classes `FunctionTool` and `ZodTool`, too.
 *
 * A call that fails throws a `ToolFailure`, of which Strands makes an error result: `Error: ` and the text for the
 * model. An attempt gets its own `cancelSignal`; a call settles when its timeout passes or the run is canceled,
 * whatever the tool does. A generator runs under the layer to its end; its values are
 * told as they come, and those of a failed attempt stay told.
 *
 * @param make `tool` of `@strands-agents/sdk`, or a class of its tools
 * @param options `spillway` or the options of one, and the `policy` of the tools that are made
 * @returns what is like `make`
 * @throws RangeError for an option that does not exist or is out of its range, or a `make` that is no function; what is
 * returned, for a `callback` that is a generator function and not an asynchronous one
 *
 * @example
 * const made = (definition: { name: string; callback: (input: { amount: number }) => string }) => definition;
 * const guarded = guardTool(made, { policy: { timeoutMs: 10_000 } });
 * const pay = guarded({ name: 'pay', callback: ({ amount }) => `paid ${amount}` });
 */
export function guardTool<Make extends object>(make: Make, options: GuardToolOptions = {}): Make {
  return guardedMaker(make, options, { ...shape, find: memberOf('callback') });
}

type Stream = (context: object) => AsyncIterable<unknown>;

/**
 * The schema by which a tool checks its input itself: one of zod. A JSON Schema only tells the model what to write,
 * also the one that Strands makes of zod's, in which what has a default is required.
 */
const checkedBy = (tool: object): unknown => {
  const schema = read(tool, '_inputSchema');
  // In the place of none, and asked of nothing.
  return read(read(schema, 'def'), 'type') === 'void' ? undefined : schema;
};

/** What a tool runs with, and its result, which is an error where the tool threw one. */
const streamOnce = async function* (
  tool: object,
  stream: Stream,
  input: unknown,
  context: ToolContext = {},
): AsyncGenerator<unknown, unknown> {
  const given = overridden(context, { toolUse: { ...context.toolUse, input } });
  await refuseMismatch(checkedBy(tool), input);
  const result: unknown = yield* Reflect.apply(stream, tool, [given]);
  if (read(result, 'status') !== 'error') return result;
  throw (read(result, 'error') ?? new Error('The tool gave an error result')) as Error;
};

/** A block of content as Strands reads one, made of its JSON: `{ text }`, `{ json }`, or `{ image }` and the like. */
const blockOf = (data: object): object => {
  const [kind = 'text', content] = Object.entries(data)[0] ?? [];
  const members = kind === 'text' || kind === 'json' ? data : (content as object);
  return { ...members, type: `${kind}Block`, toJSON: () => data };
};

/** A result of a tool that it did not give itself: a kept one is JSON, with the id of another call. */
const resultBlock = (value: unknown, _input: unknown, context?: ToolContext): object => {
  const kept = read(read(value, 'toolResult'), 'content');
  const content = Array.isArray(kept) ? (kept as readonly object[]) : [{ text: outputText(value) }];
  const own = { toolUseId: context?.toolUse?.toolUseId ?? '', status: 'success' };
  return {
    type: 'toolResultBlock',
    ...own,
    content: content.map(blockOf),
    toJSON: () => ({ toolResult: { ...own, content } }),
  };
};

const found = (tool: object): FinishedTool<Context> => {
  const [name, stream] = [read(tool, 'name'), read(tool, 'stream')];
  if (typeof name !== 'string' || typeof stream !== 'function')
    throw new RangeError('guardTools takes tools of Strands, not clients and agents that have or become some');
  const fn = async function* (input: unknown, context?: ToolContext): AsyncGenerator<unknown, unknown> {
    return yield* streamOnce(tool, stream as Stream, input, context);
  };
  const put = (guarded: (input: unknown, context?: ToolContext) => unknown): object =>
    overridden(tool, { stream: (context: ToolContext) => guarded(read(context.toolUse, 'input'), context) });
  return { name, fn, put };
};

/**
 * Guards finished tools of Strands, such as those that `mcpClient.listTools()` gives: gives tools like them, which run
 * under a layer. A call that fails throws a `ToolFailure`, of which Strands tells the model. All other members stay as
 * they are. Its error results count as failures. A call without an agent, by `invoke`, is not guarded.
 *
 * @param tools as for `new Agent({ tools })`
 * @param options `spillway` or the options of one, and `policies` by tool name
 * @returns the guarded tools, in the same order
 * @throws RangeError for an option that does not exist or is out of its range, a policy for a tool that is not in the
 * list, or what is no tool, as a client of MCP
 *
 * @example
 * const stream = async function* () {};
 * const [guarded] = guardTools([{ name: 'weather', stream }], { policies: { weather: { effects: 'read' } } });
 */
export function guardTools<Tool extends object>(tools: readonly Tool[], options: GuardLayerOptions = {}): Tool[] {
  return guardedTools(tools, options, { ...shape, find: found, adopt: resultBlock });
}
