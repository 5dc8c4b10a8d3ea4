import { read } from '../errors/structure.ts';
import type { GuardLayerOptions } from './guarded/calls.ts';
import { guardedTools, type FinishedTool } from './guarded/finished.ts';
import { guardedMaker, memberOf, nameOf, type GuardToolOptions, type MakerShape } from './guarded/maker.ts';
import { proxied } from './guarded/proxied.ts';

export type { GuardLayerOptions } from './guarded/calls.ts';
export type { GuardToolOptions } from './guarded/maker.ts';
export { createHarvest, type GuardedHarvest, type HarvestOptions, type HarvestedCall } from './guarded/harvest.ts';
export { ToolFailure } from './guarded/tool-failure.ts';

/** What LlamaIndex does not tell of a call. */
interface RunOptions {
  /**
   * The signal of the host's run, asked at each call: LlamaIndex hands none to its tools. Once it is aborted the call
   * is canceled. Default: nobody cancels.
   */
  readonly signalOf?: (input: unknown, ...additional: readonly unknown[]) => AbortSignal | null | undefined;
}
/** How the tools of one `guardTool` are guarded: all have one policy. */
export interface GuardLlamaIndexToolOptions extends GuardToolOptions, RunOptions {}
/** How the tools of one `guardTools` are guarded. */
export interface GuardLlamaIndexToolsOptions extends GuardLayerOptions, RunOptions {}

/** `tool({ name, execute })`, or `tool(fn, { name })`. */
const find: MakerShape<readonly unknown[]>['find'] = (args) => {
  const [fn, metadata, ...rest] = args;
  if (typeof fn !== 'function') return memberOf('execute')(args);
  return {
    name: nameOf([read(metadata, 'name'), fn.name]),
    fn: fn as (...args: never[]) => unknown,
    put: (guarded) => [guarded, metadata, ...rest],
  };
};

/**
 * Guards what LlamaIndex' `tool` makes: gives a function like it, whose tools run under a layer, with its hard timeout,
 * retries, breaker and trace. All else is LlamaIndex' own, `bind` included. Works for `FunctionTool.from` and `new
 * FunctionTool(...)`, too.
 *
 * A call that fails throws a `ToolFailure`, whose text an agent tells the model. LlamaIndex gives a tool no signal and
 * no id of the call; a call settles when its timeout passes, or what `signalOf` gives fires, whatever the tool does.
 * Input that does not fit its schema it logs, and calls the tool with it all the same.
 *
 * @param make `tool` of `llamaindex` or `@llamaindex/core/tools`
 * @param options `spillway` or the options of one, and the `policy` of the tools that are made
 * @returns what is like `make`
 * @throws RangeError for an option that does not exist or is out of its range, or a `make` that is no function; what is
 * returned, for a generator function
 *
 * @example
 * const made = (definition: { name: string; execute: (input: { amount: number }) => string }) => definition;
 * const guarded = guardTool(made, { policy: { timeoutMs: 10_000 } });
 * const pay = guarded({ name: 'pay', execute: ({ amount }) => `paid ${amount}` });
 */
export function guardTool<Make extends object>(
  make: Make,
  { signalOf, ...options }: GuardLlamaIndexToolOptions = {},
): Make {
  return guardedMaker<Make, readonly unknown[]>(make, options, {
    framework: 'llamaindex',
    find,
    ...(signalOf === undefined ? {} : { signalOf }),
  });
}

type Call = (input: unknown) => unknown;

/** A bound tool is another one, which calls what it is bound of. */
const found = (tool: object): FinishedTool<readonly unknown[]> | undefined => {
  const [name, call, bind] = [read(read(tool, 'metadata'), 'name'), read(tool, 'call'), read(tool, 'bind')];
  if (typeof name !== 'string' || typeof call !== 'function') return undefined;
  const fn = (input: unknown, of?: object): unknown =>
    Reflect.apply((of === undefined ? call : read(of, 'call')) as Call, of ?? tool, [input]);
  const put = (guarded: (input: unknown, ...of: readonly unknown[]) => unknown): object => {
    const bound = (additional: unknown): object => {
      const own = Reflect.apply(bind as (given: unknown) => object, tool, [additional]);
      return proxied(own, { call: (input: unknown) => guarded(input, own), bind: bound });
    };
    const rebinds = typeof bind === 'function' ? { bind: bound } : {};
    return proxied(tool, { call: (input: unknown) => guarded(input), ...rebinds });
  };
  return { name, fn, put };
};

/**
 * Guards finished tools of LlamaIndex, such as those of an MCP server or a query engine: gives tools like them, which
 * run under a layer. A call that fails throws a `ToolFailure`, of which LlamaIndex tells the model. All other members
 * stay as they are. A bound tool is guarded, too.
 *
 * @param tools as for `agent({ tools })`
 * @param options `spillway` or the options of one, and `policies` by tool name
 * @returns the guarded tools, in the same order; what has no `call` is the same object
 * @throws RangeError for an option that does not exist or is out of its range, a policy for a tool that is not in the
 * list
 *
 * @example
 * const weather = { metadata: { name: 'weather' }, call: async ({ city }: { city: string }) => `${city}: 21 °C` };
 * const [guarded] = guardTools([weather], { policies: { weather: { timeoutMs: 10_000, effects: 'read' } } });
 */
export function guardTools<Tool extends object>(
  tools: readonly Tool[],
  { signalOf, ...options }: GuardLlamaIndexToolsOptions = {},
): Tool[] {
  return guardedTools(tools, options, {
    framework: 'llamaindex',
    find: found,
    ...(signalOf === undefined ? {} : { signalOf: (input) => signalOf(input) }),
  });
}
