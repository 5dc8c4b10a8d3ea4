import { ToolExecutionError } from '../../contract/tool-error.ts';
import { read } from '../../errors/structure.ts';
import { correctable } from '../../policy/advice.ts';
import { confirmed, unconfirmed } from '../../policy/recovery/refusal.ts';
import { guardedCalls, type GuardLayerOptions, type GuardedCalls } from '../guarded/calls.ts';
import { guardedFunction } from '../guarded/function.ts';
import { overridden } from '../guarded/overridden.ts';
import { schemaMismatch } from '../guarded/schema-mismatch.ts';
import { adopted, contentIn, failing, messagesIn, type ToolMessageClass } from './resume.ts';

/** The options of `guardTools`: those of every guard, and LangChain's class for answers. */
export interface GuardLangChainToolsOptions<Message = unknown> extends GuardLayerOptions {
  /**
   * LangChain's own class: the answer to a failed call of a model is made of it, with the status `error`. Default: the
   * failure is thrown, as a tool does; LangGraph's `ToolNode` then makes a message of it that begins with `Error:` and
   * asks the model to fix its mistakes, or throws, as its `handleToolErrors` says.
   */
  readonly ToolMessage?: ToolMessageClass<Message>;
}

/** A model's call, as the tools of an agent are invoked with it; a program gives the arguments alone. */
interface ModelCall {
  readonly type: 'tool_call';
  readonly name: string;
  readonly args: unknown;
  readonly id?: string | undefined;
}
type Invoke = (input: unknown, config?: object) => unknown;

const isModelCall = (input: unknown): input is ModelCall => read(input, 'type') === 'tool_call';

const invocable = (candidate: object): { readonly name: string; readonly invoke: Invoke } | undefined => {
  const name = read(candidate, 'name');
  const invoke = read(candidate, 'invoke');
  return typeof name === 'string' && typeof invoke === 'function' ? { name, invoke: invoke as Invoke } : undefined;
};

/** The name of the error with which a tool turns input away; one can throw it itself, so its schema decides. */
const PARSING_ERROR = 'ToolInputParsingException';

const judged = async (thrown: unknown, tool: object, args: unknown): Promise<unknown> => {
  const constructorName = read(read(thrown, 'constructor'), 'name');
  if (read(thrown, 'name') !== PARSING_ERROR && constructorName !== PARSING_ERROR) return thrown;
  const claim = new ToolExecutionError('invalid_parameters', 'The input does not fit the tool’s schema', {
    cause: thrown,
  });
  const mismatch = await schemaMismatch(read(tool, 'schema'), args);
  return mismatch === undefined ? unconfirmed(claim) : confirmed(claim, correctable(mismatch));
};

const signalIn = (config: unknown): AbortSignal | undefined => {
  const signal = read(config, 'signal');
  return signal instanceof AbortSignal ? signal : undefined;
};

const guard = <Tool extends object>(
  calls: GuardedCalls,
  tool: Tool,
  { name, invoke }: { readonly name: string; readonly invoke: Invoke },
  ToolMessage: ToolMessageClass<unknown> | undefined,
): Tool => {
  const invokeOnce = async (args: unknown, call: ModelCall | undefined, config: object | undefined): Promise<unknown> =>
    Promise.resolve(Reflect.apply(invoke, tool, [call === undefined ? args : { ...call, args }, config])).catch(
      async (thrown: unknown) => {
        throw await judged(thrown, tool, args);
      },
    );
  const guarded = guardedFunction<[call: ModelCall | undefined, config: object | undefined]>(calls, {
    framework: 'langchain',
    toolName: name,
    fn: invokeOnce,
    idOf: (_args, call, config) => {
      const id = call?.id ?? read(config, 'toolCallId') ?? read(read(config, 'toolCall'), 'id');
      return typeof id === 'string' ? id : undefined;
    },
    signalOf: (_args, _call, config) => signalIn(config),
    stepOf: (_args, _call, config) => messagesIn(read(config, 'state')),
    contextOf: (signal, _args, call, config) => [call, { ...config, signal }],
    originOf: (_args, _call, config) => ({ messages: read(read(config, 'state'), 'messages'), ToolMessage }),
    steers: (thrown) => read(thrown, 'is_bubble_up') === true,
    // Of content `ToolNode` makes a message itself.
    adopt: (value, _args, call) =>
      ToolMessage === undefined || call === undefined
        ? contentIn(value)
        : adopted(value, { ...call, name }, ToolMessage),
    fail: (failure, _answer, _args, call) => {
      if (ToolMessage === undefined || call === undefined) throw failure;
      return failing(failure.message, { ...call, name }, ToolMessage);
    },
  });
  const guardedInvoke: Invoke = (input, config) =>
    isModelCall(input) ? guarded(input.args, input, config) : guarded(input, undefined, config);
  // The old name of `invoke`, which some callers still have.
  return overridden(tool, { invoke: guardedInvoke, ...('call' in tool ? { call: guardedInvoke } : {}) });
};

/**
 * Guards LangChain's tools wherever they are called without an agent of LangChain's: by LangGraph's `ToolNode`, in a
 * graph of your own, by `tool.invoke(...)`. Each call runs under a layer, with its hard timeout, retries, breaker and
 * trace, and settles when its timeout passes or the signal of its config fires, whatever the tool does. For
 * `createAgent` take `spillwayMiddleware`, which sees all of the agent's tools; not both for one tool.
 *
 * With `ToolMessage`, a model's call that fails gives a message with the status `error`: a `safeMessage` verbatim, for
 * input that does not fit what is wrong with it, else what happened in a sentence and whether the tool ran. Without it,
 * and for a program's call, a `ToolFailure` with that text is thrown. Interrupts and what else steers a graph pass, and
 * so do messages, artifacts and commands that a tool gives.
 *
 * A guarded tool is a copy with the same prototype and members, whose `invoke` is guarded; the original stays as it is.
 *
 * @param tools as for `new ToolNode(tools)`
 * @param options `ToolMessage`, `spillway` or the options of one, and `policies` by tool name
 * @returns the guarded tools, in the same order
 * @throws RangeError for an option that does not exist or is out of its range, a policy for a tool that is not in the
 * list
 *
 * @example
 * const weather = { name: 'weather', invoke: async ({ city }: { city: string }) => `${city}: 21 °C` };
 * const [guarded] = guardTools([weather], { policies: { weather: { timeoutMs: 10_000, effects: 'read' } } });
 */
export function guardTools<Tool extends object>(
  tools: readonly Tool[],
  { ToolMessage, ...options }: GuardLangChainToolsOptions = {},
): Tool[] {
  if (ToolMessage !== undefined && typeof ToolMessage !== 'function')
    throw new RangeError(`ToolMessage must be LangChain’s class of that name, not ${typeof ToolMessage}`);
  const found = tools.map((tool) => ({ tool, own: invocable(tool) }));
  const calls = guardedCalls('guardTools', options, { toolNames: found.flatMap(({ own }) => own?.name ?? []) });
  // Tools that a model's provider runs are plain objects.
  return found.map(({ tool, own }) => (own === undefined ? tool : guard(calls, tool, own, ToolMessage)));
}
