import { read } from '../errors/structure.ts';
import type { GuardLayerOptions } from './guarded/calls.ts';
import { guardedTools, refuseMismatch, type FinishedTool } from './guarded/finished.ts';
import { guardedMaker, memberOf, type GuardToolOptions, type MakerShape } from './guarded/maker.ts';
import { overridden } from './guarded/overridden.ts';
import { proxied } from './guarded/proxied.ts';

export type { GuardLayerOptions } from './guarded/calls.ts';
export type { GuardToolOptions } from './guarded/maker.ts';
export { createHarvest, type GuardedHarvest, type HarvestOptions, type HarvestedCall } from './guarded/harvest.ts';
export { ToolFailure } from './guarded/tool-failure.ts';

/** What ADK gives a tool beside its input, as far as it is used; the rest is handed on. */
interface ToolContext {
  readonly functionCallId?: string | undefined;
  readonly abortSignal?: AbortSignal | undefined;
  readonly invocationContext?: { readonly session?: { readonly events?: readonly object[] } } | undefined;
}

type Context = [context?: ToolContext];

/** What of a context has a person asked, after which ADK calls the tool again. */
const REQUESTS = ['requestConfirmation', 'requestCredential'];

const asking = (asked: () => void, [input, context]: readonly unknown[]): readonly unknown[] => {
  if (typeof context !== 'object' || context === null) return [input, context];
  const requests = REQUESTS.map((name) => [name, read(context, name)] as const);
  const own = requests.map(([name, request]) => [
    name,
    typeof request !== 'function'
      ? request
      : (...args: unknown[]): unknown => {
          asked();
          return Reflect.apply(request, context, args);
        },
  ]);
  return [input, proxied(context, Object.fromEntries(own) as Readonly<Record<string, unknown>>)];
};

const shape: Omit<MakerShape<Context>, 'find'> = {
  framework: 'google-adk',
  idOf: (_input, context) => context?.functionCallId,
  signalOf: (_input, context) => context?.abortSignal,
  // The event that made the calls: the next one comes when all of them have ended.
  stepOf: (_input, context) => context?.invocationContext?.session?.events?.at(-1),
  contextOf: (abortSignal, _input, context) => (context === undefined ? [] : [proxied(context, { abortSignal })]),
  asking,
};

/**
 * Guards what Google ADK's `FunctionTool` makes: gives a class like it, whose tools run their `execute` under a layer,
 * with its hard timeout, retries, breaker and trace. All else is ADK's own: it checks the input, asks
 * `requireConfirmation` about it, and runs callbacks and plugins. Works for `LongRunningFunctionTool`, too.
 *
 * A call that fails throws a `ToolFailure`, of which ADK makes a response for the model: `{ error: "Error in tool ..."
 * }` with the text. An attempt's context is the call's with a signal of its own; a call settles when its timeout passes
 * or the run's signal fires, whatever the tool does.
 *
 * @param make the class `FunctionTool` of `@google/adk`, or a function that makes tools of its options
 * @param options `spillway` or the options of one, and the `policy` of the tools that are made
 * @returns what is like `make`
 * @throws RangeError for an option that does not exist or is out of its range, or a `make` that is no function; what is
 * returned, for an `execute` that is a generator function
 *
 * @example
 * const made = (definition: { name: string; execute: (input: { amount: number }) => string }) => definition;
 * const guarded = guardTool(made, { policy: { timeoutMs: 10_000 } });
 * const pay = guarded({ name: 'pay', execute: ({ amount }) => `paid ${amount}` });
 */
export function guardTool<Make extends object>(make: Make, options: GuardToolOptions = {}): Make {
  return guardedMaker(make, options, { ...shape, find: memberOf('execute') });
}

/** What ADK asks of a tool. */
interface RunRequest {
  readonly args: unknown;
  readonly toolContext?: ToolContext | undefined;
}
type RunAsync = (request: RunRequest) => Promise<unknown>;

const found = (tool: object): FinishedTool<Context> => {
  const [name, runAsync] = [read(tool, 'name'), read(tool, 'runAsync')];
  if (typeof name !== 'string' || typeof runAsync !== 'function')
    throw new RangeError('guardTools takes tools of ADK; of a toolset give what its getTools() gives');
  const fn = async (args: unknown, toolContext?: ToolContext): Promise<unknown> => {
    // ADK makes the same error of whatever a tool throws, and of input that its schema of zod does not take.
    await refuseMismatch(read(tool, 'parameters'), args);
    return Reflect.apply(runAsync as RunAsync, tool, [{ args, toolContext }]);
  };
  const put = (guarded: (args: unknown, context?: ToolContext) => Promise<unknown>): object =>
    overridden(tool, { runAsync: ({ args, toolContext }: RunRequest) => guarded(args, toolContext) });
  return { name, fn, put };
};

/**
 * Guards finished tools of Google ADK, such as those of a toolset or an `AgentTool`: gives tools like them, which run
 * under a layer. A call that fails throws a `ToolFailure`, of which Google ADK tells the model. All other members stay
 * as they are. Where a tool asks for confirmation, it is asked within its call. Of what a tool throws ADK keeps the
 * words alone, so take `guardTool` for tools of your own: it sees the status, too.
 *
 * @param tools as for `new LlmAgent({ tools })`
 * @param options `spillway` or the options of one, and `policies` by tool name
 * @returns the guarded tools, in the same order
 * @throws RangeError for an option that does not exist or is out of its range, a policy for a tool that is not in the
 * list, or what is no tool, as a toolset
 *
 * @example
 * const weather = { name: 'weather', runAsync: async () => '21 °C' };
 * const [guarded] = guardTools([weather], { policies: { weather: { timeoutMs: 10_000, effects: 'read' } } });
 */
export function guardTools<Tool extends object>(tools: readonly Tool[], options: GuardLayerOptions = {}): Tool[] {
  return guardedTools(tools, options, { ...shape, find: found });
}
