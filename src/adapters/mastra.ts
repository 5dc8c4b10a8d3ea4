import { guardedMaker, memberOf, type GuardToolOptions } from './guarded/maker.ts';
import { idOf, runOf, signalOf, tellingOf, type ExecutionContext } from './mastra/context.ts';

export type { GuardLayerOptions } from './guarded/calls.ts';
export type { GuardToolOptions } from './guarded/maker.ts';
export { createHarvest, type GuardedHarvest, type HarvestOptions, type HarvestedCall } from './guarded/harvest.ts';
export { ToolFailure } from './guarded/tool-failure.ts';
export { guardTools } from './mastra/finished.ts';

/**
 * Guards what Mastra's `createTool` makes: gives a function like it, whose tools run their `execute` under a layer,
 * with its hard timeout, retries, breaker and trace. All else is Mastra's own: it checks input and output, asks
 * `requireApproval`, and suspends. Works for `new Tool(...)`, too.
 *
 * A call that fails throws a `ToolFailure`, whose text Mastra tells the model. An attempt gets its own `abortSignal`; a
 * call settles when its timeout passes or the run's signal fires, whatever the tool does.
 *
 * @param make `createTool` of `@mastra/core/tools`, or its class `Tool`
 * @param options `spillway` or the options of one, and the `policy` of the tools that are made
 * @returns what is like `make`; a tool without `execute` is made as it is
 * @throws RangeError for an option that does not exist or is out of its range, or a `make` that is no function; what is
 * returned, for an `execute` that is a generator function
 *
 * @example
 * const made = (definition: { id: string; execute: (input: { amount: number }) => Promise<string> }) => definition;
 * const guarded = guardTool(made, { policy: { timeoutMs: 10_000 } });
 * const pay = guarded({ id: 'pay', execute: async ({ amount }) => `paid ${amount}` });
 */
export function guardTool<Make extends object>(make: Make, options: GuardToolOptions = {}): Make {
  return guardedMaker<Make, [context?: ExecutionContext]>(make, options, {
    framework: 'mastra',
    find: memberOf('execute'),
    idOf,
    signalOf,
    runOf,
    contextOf: (abortSignal, _input, context) => [{ ...context, abortSignal }],
    asking: (asked, [input, context]) => [input, { ...(context as object), ...tellingOf(asked, context as object) }],
  });
}
