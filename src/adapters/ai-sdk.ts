import type { AiSdkOrigin } from './ai-sdk/resume.ts';
import { guardedCalls, valueOf, type GuardLayerOptions, type GuardedCalls } from './guarded/calls.ts';
import { overridden } from './guarded/overridden.ts';
import { createValueQueue } from './guarded/value-queue.ts';

export type { GuardLayerOptions } from './guarded/calls.ts';
export { createHarvest, type GuardedHarvest, type HarvestOptions, type HarvestedCall } from './guarded/harvest.ts';
export { resumeMessages } from './ai-sdk/resume.ts';
export { ToolFailure } from './guarded/tool-failure.ts';

/** What AI SDK gives a tool beside its input, as far as it is used; the rest is handed on. */
interface ExecuteOptions {
  readonly toolCallId?: string;
  readonly abortSignal?: AbortSignal | undefined;
  /** What the model was sent before it made the call, without the system prompt. */
  readonly messages?: readonly unknown[] | undefined;
}
type Execute = (input: unknown, options?: ExecuteOptions) => unknown;

const executeOf = (candidate: unknown): Execute | undefined => {
  const execute = (candidate as { readonly execute?: unknown } | null | undefined)?.execute;
  return typeof execute === 'function' ? (execute as Execute) : undefined;
};

const isAsyncGeneratorFunction = (execute: Execute): boolean =>
  Object.prototype.toString.call(execute) === '[object AsyncGeneratorFunction]';

const guard = (calls: GuardedCalls, toolName: string, original: object, execute: Execute): object => {
  // AI SDK looks at once at what it was given: a stream, or not. Whether a tool streams is known once it has been
  // called.
  let streams = isAsyncGeneratorFunction(execute);
  const guarded: Execute = (input, options = {}) => {
    let streaming = false;
    const queue = createValueQueue(() => call.abandon());
    const call = calls.begin({
      framework: 'ai-sdk',
      origin: { tool: original, messages: options.messages } satisfies AiSdkOrigin,
      toolName,
      input,
      toolCallId: options.toolCallId,
      signal: options.abortSignal,
      // Made anew for each step.
      step: options.messages,
      run: (given, { signal }) => Reflect.apply(execute, original, [given, { ...options, abortSignal: signal }]),
      stream: {
        begun: () => {
          streaming = true;
          streams = true;
        },
        next: (each) => queue.push(each),
      },
    });
    const value = valueOf(call);
    if (!streams) return value;
    value.then(
      (last) => {
        if (!streaming) queue.push(last);
        queue.end();
      },
      (thrown: unknown) => queue.end({ thrown }),
    );
    return queue.values;
  };
  return overridden(original, { execute: guarded });
};

/**
 * Guards the tools of an AI SDK tool set: each `execute` runs under a layer, with its hard timeout, retries, breaker
 * and trace. A call settles when its timeout passes or the caller's `abortSignal` fires, whatever the tool does; the
 * `abortSignal` the tool is given is one of its attempt's.
 *
 * A call that fails throws a `ToolFailure` whose text is for the model, and which AI SDK hands on as it is: a
 * `safeMessage` verbatim, else what happened in a sentence and whether the tool ran. Nothing of what the tool threw is
 * in it.
 *
 * A guarded `execute` gives a promise, also where the tool's own gave a value. A tool that gives an `AsyncIterable`
 * streams as before, and its values reset its idle timeout; they are taken as they come, not when they are asked for,
 * and those of a failed attempt stay shown. Tools without `execute`, and all other members of a tool, stay as they are.
 * Input has been checked by AI SDK.
 *
 * @param tools as for `generateText`
 * @param options `spillway` or the options of one, and `policies` by tool name
 * @returns a tool set of the same type
 * @throws RangeError for an option that does not exist or is out of its range, or a policy for a tool that is not in
 * the set
 *
 * @example const toolSet = { weather: { description: 'The weather of a city', execute: async ({ city }: { city: string
 * }) => `${city}: 21 °C` } }; const guarded = guardTools(toolSet, { policies: { weather: { timeoutMs: 10_000, effects:
 * 'read' } } });
 */
export function guardTools<Tools extends object>(tools: Tools, options: GuardLayerOptions = {}): Tools {
  const calls = guardedCalls('guardTools', options, { toolNames: Object.keys(tools) });
  const guarded = Object.entries(tools).map(([name, original]: [string, object]) => {
    const execute = executeOf(original);
    return [name, execute === undefined ? original : guard(calls, name, original, execute)];
  });
  return Object.fromEntries(guarded) as Tools;
}
