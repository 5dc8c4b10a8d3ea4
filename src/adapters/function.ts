import type { ToolPolicy } from '../contract/policy.ts';
import { guardedCalls, type GuardLayerOptions } from './guarded/calls.ts';
import { checkGuardable, guardedFunction } from './guarded/function.ts';
import { overridden } from './guarded/overridden.ts';
import { proxied } from './guarded/proxied.ts';
import type { ToolFailure } from './guarded/tool-failure.ts';

export type { GuardLayerOptions } from './guarded/calls.ts';
export { createHarvest, type GuardedHarvest, type HarvestOptions, type HarvestedCall } from './guarded/harvest.ts';
export { ToolFailure } from './guarded/tool-failure.ts';

/** How one function is guarded, and how its framework's calls are read. */
export interface GuardFunctionOptions<Input, Context extends readonly unknown[], Failed> extends Omit<
  GuardLayerOptions,
  'policies'
> {
  /** The tool's policy; what it leaves out comes from the layer's defaults. */
  readonly policy?: ToolPolicy;
  /** The id that the model gave the call, from what the function is called with. Default: the call has none. */
  readonly idOf?: (input: Input, ...context: Context) => string | undefined;
  /**
   * The key under which a call runs once, such as an order's id in its input: a later call with the key of an earlier
   * one runs nothing, and is given what that one gave. Not the model's id of the call, which is new each time it asks.
   * Kept in the memory of this process, or in the layer's `store`. Default: every call runs.
   */
  readonly keyOf?: (input: Input, ...context: Context) => string | undefined;
  /**
   * The caller's signal, from what the function is called with: once it is aborted the call is canceled, whatever the
   * function does. Default: nobody cancels.
   */
  readonly signalOf?: (input: Input, ...context: Context) => AbortSignal | null | undefined;
  /**
   * What stands beside the input of one attempt, whose `signal` is aborted at its timeout and when the caller leaves.
   * Default: what the function was called with, and wherever the caller's signal stands in it, or in a member of it,
   * the attempt's. A function whose caller gave no signal gets none.
   */
  readonly withSignal?: (signal: AbortSignal, ...context: Context) => NoInfer<Context>;
  /**
   * What the guarded function gives, or throws, for a call that failed; its `failure.message` is for the model.
   * Default: it throws the failure.
   */
  readonly fail?: (failure: ToolFailure, input: Input, ...context: Context) => Failed;
}

type TextOf<Context extends readonly unknown[]> = (input: unknown, ...context: Context) => string | undefined;
type CallerOf<Context extends readonly unknown[]> = (
  input: unknown,
  ...context: Context
) => AbortSignal | null | undefined;

/** The attempt's signal wherever the caller's stands. */
const replaced = (value: unknown, caller: AbortSignal, signal: AbortSignal): unknown => {
  if (value === caller) return signal;
  if (typeof value !== 'object' || value === null) return value;
  const names = Object.keys(value).filter((name) => (value as Readonly<Record<string, unknown>>)[name] === caller);
  if (names.length === 0) return value;
  const own = Object.fromEntries(names.map((name) => [name, signal]));
  const prototype: unknown = Object.getPrototypeOf(value);
  // A copy of a class's instance would lack its private fields.
  return prototype === Object.prototype || prototype === null ? overridden(value, own) : proxied(value, own);
};

const checkFunction = (name: unknown, fn: unknown): void => {
  if (typeof name !== 'string')
    throw new RangeError(`guardFunction: the name of the tool must be a string, not ${typeof name}`);
  if (typeof fn !== 'function') throw new RangeError(`guardFunction takes a function, not ${typeof fn}`);
  checkGuardable('guardFunction', name, fn);
};

/** There is one tool, and so one policy. */
const checkNoPolicies = (options: object): void => {
  if ('policies' in options) throw new RangeError('guardFunction has no option "policies"; give its one tool a policy');
};

/** A second input would be in no key and no check: it is refused before anything runs. */
const checkContext = (name: string, context: readonly unknown[]): void => {
  const other = context.find((value) => value !== null && !['object', 'undefined', 'function'].includes(typeof value));
  if (other === undefined) return;
  throw new RangeError(
    `guardFunction: ${name} was called with a ${typeof other} beside its input; ` +
      'a guarded function takes all of its input as its first argument',
  );
};

/**
 * Guards one function, whatever calls it: each call runs under a layer, with its hard timeout, retries, breaker and
 * trace. It settles when its timeout passes or its caller's signal fires, whatever the function does. All other
 * adapters are this, with the shape of a framework's tools filled in; take it for a framework that has none.
 *
 * The function takes its input first, and after it, if anything, objects that its framework gives with a call; of two
 * inputs make one object, since only the first is in keys, checks and the trace. `this` and the function's own
 * properties are kept. What it gives is handed on as it is, so a stream is guarded only until it is there; a generator
 * function is refused.
 *
 * A call that fails throws a `ToolFailure`, whose `message` is what a model may read: nothing of what was thrown is in
 * it. A function counts as `mutating` unless `policy.effects` says otherwise: what may have taken effect is not tried
 * again.
 *
 * @param name the tool's name, in the trace, keys and breakers
 * @param fn the function
 * @param options `spillway` or the options of one, `policy`, and how calls are read: `idOf`, `keyOf`, `signalOf`,
 * `withSignal`, `fail`
 * @returns a function like it, which gives a promise
 * @throws RangeError for an option that does not exist or is out of its range, or an `fn` that cannot be guarded
 *
 * @example
 * const weather = guardFunction(
 *   'weather',
 *   async ({ city }: { city: string }, _context: { id: string; signal: AbortSignal }) => `${city}: 21 °C`,
 *   {
 *     policy: { timeoutMs: 10_000, effects: 'read' },
 *     idOf: (_input, { id }) => id,
 *     signalOf: (_input, { signal }) => signal,
 *   },
 * );
 */
export function guardFunction<Input, Context extends readonly unknown[] | [], Output, Failed = never>(
  name: string,
  fn: (input: Input, ...context: Context) => Output,
  options: GuardFunctionOptions<Input, Context, Failed> = {},
): (input: Input, ...context: Context) => Promise<Awaited<Output> | Awaited<Failed>> {
  checkFunction(name, fn);
  const { policy, idOf, keyOf, signalOf, withSignal, fail, ...layer } = options;
  checkNoPolicies(layer);
  const calls = guardedCalls('guardFunction', layer, { policy });
  const guarded = guardedFunction<Context>(calls, {
    framework: 'function',
    toolName: name,
    fn,
    ...(idOf === undefined ? {} : { idOf: idOf as TextOf<Context> }),
    ...(keyOf === undefined ? {} : { keyOf: keyOf as TextOf<Context> }),
    ...(signalOf === undefined ? {} : { signalOf: signalOf as CallerOf<Context> }),
    ...(fail === undefined
      ? {}
      : { fail: (failure, _answer, input, ...context) => fail(failure, input as Input, ...context) }),
    contextOf: (signal, input, ...context) => {
      if (withSignal !== undefined) return withSignal(signal, ...context);
      const caller = signalOf?.(input as Input, ...context);
      return caller === undefined || caller === null ? context : context.map((each) => replaced(each, caller, signal));
    },
  });
  const run = async function (this: unknown, input: Input, ...context: Context): Promise<unknown> {
    checkContext(name, context);
    return Reflect.apply(guarded, this, [input, ...context]);
  };
  return Object.defineProperties(run, Object.getOwnPropertyDescriptors(guarded)) as never;
}
