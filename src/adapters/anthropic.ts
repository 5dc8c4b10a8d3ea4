import { read } from '../errors/structure.ts';
import { outputText } from '../policy/model-text.ts';
import { areBlocks } from './guarded/blocks.ts';
import type { FailureAnswer } from './guarded/call-history.ts';
import { guardedCalls, type GuardLayerOptions, type GuardedCalls } from './guarded/calls.ts';
import { guardedFunction } from './guarded/function.ts';
import { overridden } from './guarded/overridden.ts';

export type { GuardLayerOptions } from './guarded/calls.ts';
export { createHarvest, type GuardedHarvest, type HarvestOptions, type HarvestedCall } from './guarded/harvest.ts';
export { resumeMessages } from './anthropic/resume.ts';
export { ToolFailure } from './guarded/tool-failure.ts';

/** What the tool runner gives a tool beside its input, as far as it is used; the rest is handed on. */
interface RunContext {
  readonly toolUse?: { readonly id?: string } | undefined;
  readonly signal?: AbortSignal | null | undefined;
}
type Run = (input: unknown, context?: RunContext) => unknown;

/**
 * A tool that the runner calls by its name. Toolsets and the tools that run at Anthropic have no `run` of their own.
 */
const runnable = (candidate: object): { readonly name: string; readonly run: Run } | undefined => {
  const { name, run } = candidate as { readonly name?: unknown; readonly run?: unknown };
  return typeof name === 'string' && typeof run === 'function' ? { name, run: run as Run } : undefined;
};

/**
 * The SDK's `ToolError`, which a tool throws for the model to read. The runner knows it by its class, so it is handed
 * on as it is. One that says nothing is none: the API refuses a failure without a text.
 */
const answerOf = (thrown: unknown): FailureAnswer | undefined => {
  if (!(thrown instanceof Error) || read(thrown, 'name') !== 'ToolError') return undefined;
  const content = read(thrown, 'content');
  const text = read(thrown, 'message');
  const isAnswer =
    (typeof content === 'string' || Array.isArray(content)) && typeof text === 'string' && /\S/.test(text);
  return isAnswer ? { text: text.toWellFormed(), content, thrown } : undefined;
};

const guard = <Tool extends object>(calls: GuardedCalls, original: Tool, toolName: string, run: Run): Tool => {
  const guarded = guardedFunction<[context?: RunContext]>(calls, {
    framework: 'anthropic',
    toolName,
    fn: run,
    self: original,
    idOf: (_input, context) => context?.toolUse?.id,
    signalOf: (_input, context) => context?.signal,
    contextOf: (signal, _input, context) => [{ ...context, signal }],
    originOf: (_input, context) => context?.toolUse,
    answerOf,
    // The API takes a text or a list of blocks.
    adopt: (value) => (areBlocks(value) ? value : outputText(value)),
  });
  return overridden(original, { run: guarded });
};

/**
 * Guards the runnable tools of Anthropic's tool runner (`betaTool`, `betaZodTool`, `mcpTool`): each `run` runs under a
 * layer, with its hard timeout, retries, breaker and trace. A call settles when its timeout passes or the caller's
 * signal fires, whatever the tool does; the signal the tool is given is one of its attempt's.
 *
 * A call that fails throws a `ToolFailure`, of which the runner makes a result with `is_error`: `Error: ` and the text
 * for the model, which has nothing in it of what the tool threw. A `ToolError` of the SDK is meant for the model: where
 * the call fails with it, it passes with its content. Input has been checked by the SDK. Tools without `run`, and
 * toolsets, stay as they are.
 *
 * @param tools as for `client.beta.messages.toolRunner`
 * @param options `spillway` or the options of one, and `policies` by tool name
 * @returns the guarded tools, in the same order
 * @throws RangeError for an option that does not exist or is out of its range, or a policy for a tool that is not in
 * the list
 *
 * @example const weather = { name: 'weather', input_schema: { type: 'object' }, run: async () => '21 °C', parse:
 * (input: unknown) => input }; const guarded = guardTools([weather], { policies: { weather: { timeoutMs: 10_000,
 * effects: 'read' } } });
 */
export function guardTools<Tool extends object>(tools: readonly Tool[], options: GuardLayerOptions = {}): Tool[] {
  const names = tools.flatMap((candidate) => runnable(candidate)?.name ?? []);
  const calls = guardedCalls('guardTools', options, { toolNames: names });
  return tools.map((original) => {
    const found = runnable(original);
    return found === undefined ? original : guard(calls, original, found.name, found.run);
  });
}
