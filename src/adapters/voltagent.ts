import { read } from '../errors/structure.ts';
import type { GuardLayerOptions } from './guarded/calls.ts';
import { guardedTools } from './guarded/finished.ts';
import { guardedMaker, memberOf, type GuardToolOptions, type MakerShape } from './guarded/maker.ts';
import { overridden } from './guarded/overridden.ts';
import { proxied } from './guarded/proxied.ts';

export type { GuardLayerOptions } from './guarded/calls.ts';
export type { GuardToolOptions } from './guarded/maker.ts';
export { createHarvest, type GuardedHarvest, type HarvestOptions, type HarvestedCall } from './guarded/harvest.ts';
export { ToolFailure } from './guarded/tool-failure.ts';

/** What VoltAgent gives a tool beside its input, as far as it is used; the rest is handed on. */
interface ExecuteOptions {
  readonly toolContext?:
    | { readonly callId?: string; readonly abortSignal?: AbortSignal; readonly messages?: readonly unknown[] }
    | undefined;
  /** The older way to the signal. Who calls its `abort` ends the whole run, as alone. */
  readonly abortController?: AbortController | undefined;
}

const attemptOptions = (signal: AbortSignal, options: ExecuteOptions = {}): ExecuteOptions => {
  const { toolContext, abortController } = options;
  return overridden(options, {
    toolContext: { ...toolContext, abortSignal: signal },
    ...(abortController === undefined ? {} : { abortController: proxied(abortController, { signal }) }),
  });
};

const shape: Omit<MakerShape<[options?: ExecuteOptions]>, 'find'> = {
  framework: 'voltagent',
  idOf: (_input, given) => given?.toolContext?.callId,
  // Made anew for each step.
  stepOf: (_input, given) => given?.toolContext?.messages,
  signalOf: (_input, given) => given?.toolContext?.abortSignal ?? given?.abortController?.signal,
  contextOf: (signal, _input, given) => [attemptOptions(signal, given)],
  streams: 'last',
  steers: (thrown) => read(thrown, 'name') === 'ToolDeniedError',
};

/**
 * Guards what VoltAgent's `createTool` makes: gives a function like it, whose tools run their `execute` under a layer,
 * with its hard timeout, retries, breaker and trace. All else is VoltAgent's own: it checks input and output, asks
 * `needsApproval`, and runs hooks. Works for `new Tool(...)`, too.
 *
 * A call that fails throws a `ToolFailure`, whose text VoltAgent tells the model. An attempt gets its own signal; a
 * call settles when its timeout passes or the run's signal fires, whatever the tool does. A `ToolDeniedError`
 * passes. A generator runs under the layer to its end; its values are shown as they come, and those of a failed attempt
 * stay shown.
 *
 * @param make `createTool` of `@voltagent/core`, or its class `Tool`
 * @param options `spillway` or the options of one, and the `policy` of the tools that are made
 * @returns what is like `make`; a tool without `execute`, which the client runs, is made as it is
 * @throws RangeError for an option that does not exist or is out of its range, or a `make` that is no function; what is
 * returned, for an `execute` that is a generator function and not an asynchronous one
 *
 * @example
 * const made = (definition: { name: string; execute: (input: { amount: number }) => Promise<string> }) => definition;
 * const guarded = guardTool(made, { policy: { timeoutMs: 10_000 } });
 * const pay = guarded({ name: 'pay', execute: async ({ amount }) => `paid ${amount}` });
 */
export function guardTool<Make extends object>(make: Make, options: GuardToolOptions = {}): Make {
  return guardedMaker(make, options, { ...shape, find: memberOf('execute') });
}

/**
 * Guards finished tools of VoltAgent, such as those of its MCP client: gives tools like them, which run under a layer.
 * A call that fails throws a `ToolFailure`, of which VoltAgent tells the model. All other members stay as they are. Of
 * a toolkit guard its `tools`.
 *
 * @param tools as for `new Agent({ tools })`
 * @param options `spillway` or the options of one, and `policies` by tool name
 * @returns the guarded tools, in the same order; those without `execute` are the same objects
 * @throws RangeError for an option that does not exist or is out of its range, a policy for a tool that is not in the
 * list, or an `execute` that is a generator function and not an asynchronous one
 *
 * @example
 * const weather = { name: 'weather', execute: async ({ city }: { city: string }) => `${city}: 21 °C` };
 * const [guarded] = guardTools([weather], { policies: { weather: { timeoutMs: 10_000, effects: 'read' } } });
 */
export function guardTools<Tool extends object>(tools: readonly Tool[], options: GuardLayerOptions = {}): Tool[] {
  return guardedTools(tools, options, {
    ...shape,
    find: (tool) => {
      const [name, execute] = [read(tool, 'name'), read(tool, 'execute')];
      if (typeof name !== 'string' || typeof execute !== 'function') return undefined;
      return { name, fn: execute as () => unknown, put: (guarded) => overridden(tool, { execute: guarded }) };
    },
  });
}
