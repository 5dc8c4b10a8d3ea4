import { ToolExecutionError } from '../contract/tool-error.ts';
import { read } from '../errors/structure.ts';
import { failureText } from '../policy/model-text.ts';
import { unconfirmed } from '../policy/recovery/refusal.ts';
import type { ForeignOutcome } from './guarded/call-history.ts';
import { guardedCalls, type ForeignCall, type GuardLayerOptions, type GuardedCalls } from './guarded/calls.ts';
import type { GuardToolOptions } from './guarded/maker.ts';
import { overridden } from './guarded/overridden.ts';
import { ToolFailure } from './guarded/tool-failure.ts';

export type { GuardLayerOptions } from './guarded/calls.ts';
export type { GuardToolOptions } from './guarded/maker.ts';
export { createHarvest, type GuardedHarvest, type HarvestOptions, type HarvestedCall } from './guarded/harvest.ts';
export { guardMcpServer } from './openai-agents/mcp-server.ts';
export { resumeMessages } from './openai-agents/resume.ts';
export { ToolFailure } from './guarded/tool-failure.ts';

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
  readonly needsApproval?: unknown;
}

const isFunctionTool = (candidate: object): candidate is FunctionTool => {
  const { type, name, invoke } = candidate as Partial<FunctionTool>;
  return type === 'function' && typeof name === 'string' && typeof invoke === 'function';
};

/**
 * What a tool made without an `errorFunction` gives for every failure, bad input included: nothing is left of what was
 * thrown.
 */
const SWALLOWED = 'An error occurred while running the tool. Please try again.';

/** The name of the symbol under which the runner passes a callback for "the input was read", if it does. */
const PARSED = 'openai.agents.functionToolParsedInputCallback';

const parsedSymbol = (details: object): symbol | undefined =>
  Object.getOwnPropertySymbols(details).find(({ description }) => description === PARSED);

/** The details of one attempt: its own signal, and the runner's callback with a call of `parsed` in front. */
const detailsOf = (
  details: InvokeDetails,
  signal: AbortSignal,
  parsed: () => void,
): { readonly details: InvokeDetails; readonly reportsParsing: boolean } => {
  const inner = overridden(details, { signal });
  const symbol = parsedSymbol(details);
  const callback: unknown = symbol === undefined ? undefined : (details as Readonly<Record<symbol, unknown>>)[symbol];
  if (symbol === undefined || typeof callback !== 'function') return { details: inner, reportsParsing: false };
  const onParsed = (...given: readonly unknown[]): void => {
    parsed();
    Reflect.apply(callback, details, given);
  };
  Object.defineProperty(inner, symbol, { value: onParsed, enumerable: true, configurable: true, writable: true });
  return { details: inner, reportsParsing: true };
};

const isJson = (text: string): boolean => {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
};

/**
 * The error of a failure that the tool swallowed. A tool that was given its input may have failed before its effect or
 * after it.
 */
const swallowed = (read: boolean): ToolExecutionError =>
  read
    ? new ToolExecutionError('execution_error', 'The tool failed; its errorFunction did not say how', {
        uncertain: true,
      })
    : new ToolExecutionError('invalid_parameters', 'The input could not be read by the tool');

/**
 * One attempt. What a tool made with `errorFunction: null` throws is seen; the fixed text of one made without is known
 * for what it is.
 */
const invokeOnce = async ({ tool, runContext, input, details }: Invocation, signal: AbortSignal): Promise<unknown> => {
  let parsed = false;
  const attempt = detailsOf(details, signal, () => {
    parsed = true;
  });
  try {
    const output = await Reflect.apply(tool.invoke, tool, [runContext, input, attempt.details]);
    if (output === SWALLOWED) throw swallowed(attempt.reportsParsing ? parsed : isJson(input));
    return output;
  } catch (thrown) {
    // A tool that was given its input can only have thrown this itself.
    if (read(thrown, 'name') !== 'InvalidToolInputError' || parsed) throw thrown;
    // What does not fit is not in it, unless the SDK is told to log the data of tools.
    const claim = new ToolExecutionError('invalid_parameters', 'The input does not fit the tool’s schema', {
      cause: thrown,
    });
    throw attempt.reportsParsing || !isJson(input) ? claim : unconfirmed(claim);
  }
};

interface Invocation {
  readonly tool: FunctionTool;
  readonly runContext: unknown;
  readonly input: string;
  readonly details: InvokeDetails;
}

/** A call of the runner's, whose input the tool reads itself, or is given as it was read. */
interface RunnersCall {
  readonly toolName: string;
  readonly input: unknown;
  readonly details: InvokeDetails;
  readonly run: ForeignCall['run'];
}

/** How it ended; an aborted call ends as the runner's own do: with the signal's reason. */
const outcomeOf = async (
  calls: GuardedCalls,
  { toolName, input, details, run }: RunnersCall,
): Promise<ForeignOutcome> => {
  const { toolCall, signal } = details;
  const call = {
    framework: 'openai-agents',
    origin: toolCall,
    toolName,
    input,
    toolCallId: toolCall?.callId,
    signal,
    run,
  } as const;
  const settled = await calls.begin(call).outcome;
  if (!settled.succeeded && signal?.aborted === true) throw signal.reason;
  return settled;
};

/** What the model sees: this framework has no mark for a failure, only text. */
const settle = async (calls: GuardedCalls, invocation: Invocation): Promise<unknown> => {
  const { tool, runContext, input, details } = invocation;
  const run: ForeignCall['run'] = (given, { signal }) => invokeOnce({ ...invocation, input: String(given) }, signal);
  const settled = await outcomeOf(calls, { toolName: tool.name, input, details, run });
  if (settled.succeeded) return settled.value;
  if (tool.outputSchema === undefined) return settled.failure.message;
  if (typeof tool.errorFunction !== 'function') throw settled.failure;
  return tool.errorFunction(runContext, settled.failure, details);
};

/**
 * An arrow function without parameters has no way to see what it is called with; the SDK's own for a yes or a no is
 * one.
 */
const SEES_NOTHING = /^(async\s*)?\(\s*\)\s*=>/;

const seesInput = (needsApproval: unknown): boolean =>
  typeof needsApproval === 'function' && !SEES_NOTHING.test(Function.prototype.toString.call(needsApproval));

/**
 * Fails closed: a policy that is asked about another input than the tool is given could wave through what a person
 * should have seen.
 */
const checkApproval = ({ name, needsApproval }: FunctionTool): void => {
  if (!seesInput(needsApproval)) return;
  throw new RangeError(
    `guardTools: needsApproval of the tool ${name} is a function, and the SDK would ask it about another input ` +
      'than the tool is given (without the schema’s defaults and transforms); ' +
      `make the tool with guardTool(tool, options)({ name: ${JSON.stringify(name)}, ... }), which keeps both ` +
      'as they are, or give needsApproval: true',
  );
};

/**
 * Guards the function tools of OpenAI Agents: each `invoke` runs under a layer, with its hard timeout, retries, breaker
 * and trace. A call settles when its timeout passes or the run's signal fires, whatever the tool does; the signal the
 * tool is given is one of its attempt's.
 *
 * For tools that you make yourself take `guardTool`, which sees more. These here are finished: what the SDK knows of
 * one by the identity of its `invoke` is lost, so one whose `needsApproval` looks at its input is refused.
 *
 * A failure becomes the text that the model reads, since this framework has no other mark for one: a `safeMessage`
 * verbatim, else what happened in a sentence and whether the tool ran. Nothing of what the tool threw is in it. A tool
 * with an output schema gives what its `errorFunction` makes of the failure, or throws it. An aborted call throws its
 * signal's reason, as the runner's own do.
 *
 * Make the tools with `errorFunction: null`: then what they throw reaches the layer, which can tell failures apart. One
 * made without it says the same fixed sentence of every failure; it is known as a failure that may have come after the
 * effect, so that one which may write is not tried again. One with an `errorFunction` of your own never fails as far as
 * can be seen.
 *
 * Other members stay as they are, guardrails and `isEnabled` among them, and so do hosted tools. A call of an unknown
 * tool never reaches a tool, and ends the whole run unless the run has `toolNotFoundBehavior: 'return_error_to_model'`.
 *
 * @param tools as for `new Agent({ tools })`
 * @param options `spillway` or the options of one, and `policies` by tool name
 * @returns the guarded tools, in the same order
 * @throws RangeError for an option that does not exist or is out of its range, a policy for a tool that is not in the
 * list, or a tool whose `needsApproval` looks at its input
 *
 * @example
 * const weather = { type: 'function' as const, name: 'weather', invoke: async () => '21 °C' };
 * const guarded = guardTools([weather], { policies: { weather: { timeoutMs: 10_000, effects: 'read' } } });
 */
export function guardTools<Tool extends object>(tools: readonly Tool[], options: GuardLayerOptions = {}): Tool[] {
  const functions = (tools as readonly object[]).filter(isFunctionTool);
  const calls = guardedCalls('guardTools', options, { toolNames: functions.map(({ name }) => name) });
  functions.forEach(checkApproval);
  return tools.map((original) => {
    if (!isFunctionTool(original)) return original;
    const invoke: Invoke = (runContext, input, details = {}) =>
      settle(calls, { tool: original, runContext, input, details });
    return overridden(original, { invoke });
  });
}

type Execute = (input: unknown, runContext?: unknown, details?: InvokeDetails) => unknown;

/** What `tool` is given, as far as it is used; the rest is handed on. */
interface Definition {
  readonly name?: string;
  readonly execute: Execute;
  readonly errorFunction?: ErrorFunction | null;
  readonly outputSchema?: unknown;
}

/** In place of the SDK's own, which says the same of everything. */
const worded: ErrorFunction = (_runContext, error) =>
  error instanceof ToolFailure ? error.message : failureText('invalid_parameters', 'did_not_run');

/** The text of a failure, unless the definition says what becomes of one, or has an output schema that no text fits. */
const errorFunctionOf = ({ errorFunction, outputSchema }: Definition): object =>
  errorFunction === undefined && outputSchema === undefined ? { errorFunction: worded } : {};

/**
 * Guards what OpenAI Agents' own `tool` makes: gives a function like it, whose tools run their `execute` under a layer,
 * with its hard timeout, retries, breaker and trace. All else is the SDK's own: it reads the input once, asks
 * `needsApproval` about what it read, runs guardrails, and gives `execute` the same input.
 *
 * A call that fails becomes the text that the model reads: a `safeMessage` verbatim, else what happened in a sentence
 * and whether the tool ran. An `errorFunction` of your own is given the `ToolFailure` instead; with `null`, or with an
 * output schema and none, it is thrown. An aborted call ends with its signal's reason.
 *
 * @param make `tool` of `@openai/agents`
 * @param options `spillway` or the options of one, and the `policy` of the tools that are made
 * @returns a function like `make`
 * @throws RangeError for an option that does not exist or is out of its range, or a `make` that is no function; what is
 * returned, for a tool without `execute`
 *
 * @example const made = (definition: { name: string; execute: (input: { amount: number }) => string }) => definition;
 * const pay = guardTool(made, { policy: { timeoutMs: 10_000 } })({ name: 'pay', execute: ({ amount }) => `paid
 * ${amount}` });
 */
export function guardTool<Make extends (definition: never) => object>(
  make: Make,
  { policy, ...options }: GuardToolOptions = {},
): Make {
  if (typeof make !== 'function') {
    throw new RangeError(
      `guardTool takes the function tool of the SDK, not ${typeof make}; guardTools takes finished tools`,
    );
  }
  const calls = guardedCalls('guardTool', options, { policy });
  const guarded = (definition: Definition): object => {
    const { execute } = definition;
    if (typeof execute !== 'function')
      throw new RangeError(`guardTool: execute of a tool must be a function, not ${typeof execute}`);
    let toolName = definition.name ?? execute.name;
    const guardedExecute: Execute = async (input, runContext, details = {}) => {
      const run: ForeignCall['run'] = (given, { signal }) =>
        Reflect.apply(execute, definition, [given, runContext, overridden(details, { signal })]);
      const settled = await outcomeOf(calls, { toolName, input, details, run });
      if (settled.succeeded) return settled.value;
      throw settled.failure;
    };
    // The SDK takes it for a tool without a name.
    Object.defineProperty(guardedExecute, 'name', { value: execute.name });
    const made = make({ ...definition, ...errorFunctionOf(definition), execute: guardedExecute } as never);
    toolName = (made as { readonly name?: string }).name ?? toolName;
    return made;
  };
  return guarded as unknown as Make;
}
