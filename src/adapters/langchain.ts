import { ToolExecutionError } from '../contract/tool-error.ts';
import { read } from '../errors/structure.ts';
import { correctable } from '../policy/advice.ts';
import { confirmed, unconfirmed } from '../policy/recovery/refusal.ts';
import { guardedCalls, type GuardLayerOptions, type GuardedCalls } from './guarded/calls.ts';
import { adopted, callingMessage, failing, type LangChainOrigin, type ToolMessageClass } from './langchain/resume.ts';
import { schemaMismatch } from './guarded/schema-mismatch.ts';
import { Steering } from './guarded/steering.ts';

export type { GuardLayerOptions } from './guarded/calls.ts';
export { createHarvest, type GuardedHarvest, type HarvestOptions, type HarvestedCall } from './guarded/harvest.ts';
export { resumeMessages, type ToolMessageClass } from './langchain/resume.ts';
export { guardTools, type GuardLangChainToolsOptions } from './langchain/tools.ts';
export { ToolFailure } from './guarded/tool-failure.ts';

/** The options of `spillwayMiddleware`: those of every guard, and LangChain's class for answers. */
export interface SpillwayMiddlewareOptions<Message> extends GuardLayerOptions {
  /** LangChain's own class, of which the answer to a failed call is made: this package imports nothing of LangChain. */
  readonly ToolMessage: ToolMessageClass<Message>;
}

/** What LangChain gives `wrapToolCall`, as far as it is used; the rest is handed on. */
interface ToolCallRequestLike {
  readonly toolCall: { readonly name: string; readonly args: unknown; readonly id?: string | undefined };
  readonly tool?: unknown;
  readonly runtime?: unknown;
  readonly state?: unknown;
}

interface ModelRequestLike {
  readonly tools?: readonly unknown[] | undefined;
}

/** A middleware as `createMiddleware` takes it, and `createAgent` too. */
export interface SpillwayMiddleware<Message> {
  /** The middleware's name in LangChain's traces: `spillway`. */
  readonly name: string;
  /**
   * Present only with `policies`: the first model call shows which tools there are, so that a policy for another name
   * is refused with a `RangeError`.
   */
  readonly wrapModelCall?: <Request extends ModelRequestLike, Result>(
    request: Request,
    handler: (request: Request) => Result,
  ) => Result;
  /**
   * Runs one tool call under the layer. Gives what LangChain's handler gave, or a `ToolMessage` with the status
   * `error`; rejects only with what steers the graph, such as an interrupt.
   */
  readonly wrapToolCall: <Request extends ToolCallRequestLike, Result>(
    request: Request,
    handler: (request: Request) => Result | Promise<Result>,
  ) => Promise<Awaited<Result> | Message>;
}

/** By this mark LangChain knows a middleware. */
const MIDDLEWARE: unique symbol = Symbol.for('AgentMiddleware') as never;

type Invoke = (call: unknown, config?: object) => unknown;

/** The tool, with a signal of the attempt's for the one of the run: LangChain has no other way to hand one in. */
const signalled = (original: unknown, signal: AbortSignal): unknown => {
  const invoke = read(original, 'invoke');
  if (typeof invoke !== 'function') return original;
  const guarded: Invoke = (call, config) => Reflect.apply(invoke as Invoke, original, [call, { ...config, signal }]);
  return Object.create(original as object, { invoke: { value: guarded } });
};

/**
 * An error with LangChain's fields for input that does not fit. A tool can throw one too, so its words are for nobody:
 * what does not fit is found by the tool's schema, and without a mismatch the tool may have run.
 */
const typed = async (thrown: unknown, tool: unknown, args: unknown): Promise<unknown> => {
  if (read(thrown, 'toolError') === undefined || read(thrown, 'toolCall') === undefined) return thrown;
  const claim = new ToolExecutionError('invalid_parameters', 'The input does not fit the tool’s schema', {
    cause: thrown,
  });
  const mismatch = await schemaMismatch(read(tool, 'schema'), args);
  return mismatch === undefined ? unconfirmed(claim) : confirmed(claim, correctable(mismatch));
};

const nameOf = (tool: unknown): string => String(read(tool, 'name') ?? read(read(tool, 'function'), 'name'));

/** A hook that looks at the tools of the first model call, and otherwise does nothing. */
const checkedOnce = (calls: GuardedCalls): NonNullable<SpillwayMiddleware<never>['wrapModelCall']> => {
  let checked = false;
  return (request, handler) => {
    if (!checked) calls.checkNames((request.tools ?? []).map(nameOf));
    checked = true;
    return handler(request);
  };
};

/**
 * A LangChain middleware whose `wrapToolCall` runs every tool call under a layer, with its hard timeout, retries,
 * breaker and trace. A call settles when its timeout passes, whatever the tool does; the signal the tool is given is
 * one of its attempt's.
 *
 * A call that fails gives a `ToolMessage` with the status `error`, so that its siblings' messages are kept: a
 * `safeMessage` verbatim, for input that does not fit what is wrong with it, else what happened in a sentence and
 * whether the tool ran. Nothing of what the tool threw is in it. Messages and commands that a tool gives pass
 * unchanged, and so do interrupts and what else is thrown to steer the graph.
 *
 * A tool that the agent does not know is left to LangChain. For tools that another middleware adds, put this one after
 * it; one that leaves tools out, as a selector does, must come after this one, since a policy for a tool that is not
 * there ends the run at its first model call.
 *
 * @param options `ToolMessage`, `spillway` or the options of one, and `policies` by tool name
 * @returns for `createMiddleware`, whose result `createAgent` takes
 * @throws RangeError for an option that does not exist or is out of its range
 *
 * @example class ToolMessage { readonly fields: object; constructor(fields: object) { this.fields = fields; } } const
 * middleware = spillwayMiddleware({ ToolMessage, policies: { weather: { timeoutMs: 10_000, effects: 'read' } } });
 */
export function spillwayMiddleware<Message>({
  ToolMessage,
  ...options
}: SpillwayMiddlewareOptions<Message>): SpillwayMiddleware<Message> {
  if (typeof ToolMessage !== 'function')
    throw new RangeError(`ToolMessage must be LangChain’s class of that name, not ${typeof ToolMessage}`);
  const calls = guardedCalls('spillwayMiddleware', options);
  const wrapToolCall = async <Request extends ToolCallRequestLike, Result>(
    request: Request,
    handler: (request: Request) => Result | Promise<Result>,
  ): Promise<Awaited<Result> | Message> => {
    const { toolCall, tool, runtime } = request;
    if (tool === undefined) return await handler(request);
    const signal = read(runtime, 'signal');
    const run = async (args: unknown, attempt: AbortSignal): Promise<Awaited<Result> | Steering> => {
      try {
        return await handler({ ...request, toolCall: { ...toolCall, args }, tool: signalled(tool, attempt) });
      } catch (thrown) {
        if (read(thrown, 'is_bubble_up') !== true) throw await typed(thrown, tool, args);
        return Steering.thrown(thrown);
      }
    };
    const settled = await calls.begin({
      framework: 'langchain',
      origin: { messages: read(request.state, 'messages'), ToolMessage } satisfies LangChainOrigin,
      toolName: toolCall.name,
      input: toolCall.args,
      toolCallId: toolCall.id,
      signal: signal instanceof AbortSignal ? signal : undefined,
      step: callingMessage(request.state),
      run: (args, context) => run(args, context.signal),
      adopt: (value) => adopted(value, toolCall, ToolMessage),
    }).outcome;
    if (!settled.succeeded) return failing(settled.failure.message, toolCall, ToolMessage);
    if (settled.value instanceof Steering) return settled.value.passOn() as Awaited<Result>;
    return settled.value as Awaited<Result>;
  };
  const names = options.policies === undefined ? {} : { wrapModelCall: checkedOnce(calls) };
  return Object.assign({ name: 'spillway', wrapToolCall, ...names }, { [MIDDLEWARE]: true });
}
