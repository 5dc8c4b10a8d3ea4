import { ToolExecutionError } from '../contract/tool-error.ts';
import { read } from '../entrance/structure.ts';
import { unconfirmed } from '../policy/refusal.ts';
import { guardedCalls, type GuardOptions, type GuardedCalls } from './guarded-calls.ts';
import { overridden } from './overridden.ts';

export type { GuardOptions } from './guarded-calls.ts';
export { createHarvest, type Harvest, type HarvestOptions, type KeptCall } from './harvest.ts';
export { resumeMessages } from './openai-agents-resume.ts';
export { ToolFailure } from './tool-failure.ts';

/** What the runner gives a tool beside its input, as far as it is used; the rest is handed on, symbols included. */
interface InvokeDetails {
  readonly toolCall?: { readonly callId?: string } | undefined;
  readonly signal?: AbortSignal | undefined;
}
type Invoke = (runContext: unknown, input: string, details?: InvokeDetails) => unknown;
type ErrorFunction = (runContext: unknown, error: unknown, details?: InvokeDetails) => unknown;

interface FunctionTool {
  readonly type: 'function';
  readonly name: string;
  readonly invoke: Invoke;
  /** Only there on a tool with an output schema, whose output cannot be a sentence. */
  readonly outputSchema?: unknown;
  readonly errorFunction?: ErrorFunction | null;
}

const isFunctionTool = (candidate: object): candidate is FunctionTool => {
  const { type, name, invoke } = candidate as Partial<FunctionTool>;
  return type === 'function' && typeof name === 'string' && typeof invoke === 'function';
};

/** What a tool made without an `errorFunction` says of every failure, bad input included: of what was thrown nothing is left. */
const SWALLOWED = 'An error occurred while running the tool. Please try again.';

/** The runner's own way of being told that an input was read, if it is there. */
const PARSED = 'openai.agents.functionToolParsedInputCallback';

const parsedSymbol = (details: object): symbol | undefined => Object.getOwnPropertySymbols(details).find(({ description }) => description === PARSED);

/** The details of one attempt: its own signal, and an ear on whether the input was read. */
const detailsOf = (details: InvokeDetails, signal: AbortSignal, parsed: () => void): { readonly details: InvokeDetails; readonly tells: boolean } => {
  const inner = overridden(details, { signal });
  const symbol = parsedSymbol(details);
  const tell: unknown = symbol === undefined ? undefined : (details as Readonly<Record<symbol, unknown>>)[symbol];
  if (symbol === undefined || typeof tell !== 'function') return { details: inner, tells: false };
  const heard = (...given: readonly unknown[]): void => {
    parsed();
    Reflect.apply(tell, details, given);
  };
  Object.defineProperty(inner, symbol, { value: heard, enumerable: true, configurable: true, writable: true });
  return { details: inner, tells: true };
};

const isJson = (text: string): boolean => {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
};

const swallowed = (read: boolean): ToolExecutionError =>
  read
    ? new ToolExecutionError('execution_error', 'The tool failed; its errorFunction did not say how')
    : new ToolExecutionError('invalid_parameters', 'The input could not be read by the tool');

/** One attempt. What a tool made with `errorFunction: null` throws is seen; the fixed text of one made without is known for what it is. */
const invokeOnce = async ({ tool, runContext, input, details }: Invocation, signal: AbortSignal): Promise<unknown> => {
  let parsed = false;
  const attempt = detailsOf(details, signal, () => {
    parsed = true;
  });
  try {
    const output = await Reflect.apply(tool.invoke, tool, [runContext, input, attempt.details]);
    if (output === SWALLOWED) throw swallowed(attempt.tells ? parsed : isJson(input));
    return output;
  } catch (thrown) {
    // A tool that was given its input can only have thrown this itself.
    if (read(thrown, 'name') !== 'InvalidToolInputError' || parsed) throw thrown;
    // What does not fit is not in it, unless the SDK is told to log the data of tools.
    const claim = new ToolExecutionError('invalid_parameters', 'The input does not fit the tool’s schema', { cause: thrown });
    throw attempt.tells || !isJson(input) ? claim : unconfirmed(claim);
  }
};

interface Invocation {
  readonly tool: FunctionTool;
  readonly runContext: unknown;
  readonly input: string;
  readonly details: InvokeDetails;
}

/** What the model sees: this framework has no mark for a failure, only text. An aborted call ends as the runner's own do: with the signal's reason. */
const settle = async (calls: GuardedCalls, invocation: Invocation): Promise<unknown> => {
  const { tool, runContext, input, details } = invocation;
  const settled = await calls.begin({
    framework: 'openai-agents',
    origin: details.toolCall,
    toolName: tool.name,
    input,
    toolCallId: details.toolCall?.callId,
    signal: details.signal,
    run: (given, { signal }) => invokeOnce({ ...invocation, input: String(given) }, signal),
  }).outcome;
  if (settled.succeeded) return settled.value;
  if (details.signal?.aborted === true) throw details.signal.reason;
  if (tool.outputSchema === undefined) return settled.failure.message;
  if (typeof tool.errorFunction !== 'function') throw settled.failure;
  return tool.errorFunction(runContext, settled.failure, details);
};

/**
 * Guards the function tools of OpenAI Agents: each `invoke` runs under a layer, with its hard timeout, retries, breaker and trace. A call
 * settles when its timeout passes or the run's signal fires, whatever the tool does; the signal the tool is given is one of its attempt's.
 *
 * A failure becomes the text that the model reads, since this framework has no other mark for one: a `safeMessage` verbatim, else what happened
 * in a sentence and whether the tool ran. Nothing of what the tool threw is in it. A tool with an output schema gives what its `errorFunction`
 * makes of the failure, or throws it. An aborted call throws its signal's reason, as the runner's own do.
 *
 * Make the tools with `errorFunction: null`: then what they throw reaches the layer, which can tell failures apart. One made without it says
 * the same fixed sentence of every failure; it is known as a failure, and whether it can be retried is not. One with an `errorFunction` of
 * your own never fails as far as can be seen.
 *
 * Other members stay as they are, and so do hosted tools. A `needsApproval` function is given the input as JSON, without what the schema makes
 * of it: the runner keeps that by the identity of `invoke`. A call of an unknown tool never reaches a tool, and ends the whole run unless the
 * run has `toolNotFoundBehavior: 'return_error_to_model'`.
 *
 * @param tools as for `new Agent({ tools })`
 * @param options `spillway` or the options of one, and `policies` by tool name
 * @returns the guarded tools, in the same order
 * @throws RangeError for an option that does not exist or is out of its range, or a policy for a tool that is not in the list
 *
 * @example
 * const weather = { type: 'function' as const, name: 'weather', invoke: async () => '21 °C' };
 * const guarded = guardTools([weather], { policies: { weather: { timeoutMs: 10_000, effects: 'read' } } });
 */
export function guardTools<Tool extends object>(tools: readonly Tool[], options: GuardOptions = {}): Tool[] {
  const names = tools.flatMap((candidate) => (isFunctionTool(candidate) ? [candidate.name] : []));
  const calls = guardedCalls('guardTools', options, names);
  return tools.map((original) => {
    if (!isFunctionTool(original)) return original;
    const invoke: Invoke = (runContext, input, details = {}) => settle(calls, { tool: original, runContext, input, details });
    return overridden(original, { invoke });
  });
}
