import { Observable } from 'rxjs';
import type { RetryPolicy } from '../../contract/policy.ts';
import type { Runtime } from '../../contract/runtime.ts';
import type { AnyTool } from '../../contract/tool.ts';
import type { PlanOptions } from '../../contract/turn.ts';
import { checkKeys, given } from '../../policy/check.ts';
import { liveRuntime } from '../../runtime.ts';
import { plan } from '../../turn/plan.ts';
import { definitionOf } from './definitions.ts';
import type { AgentEvent } from '../event.ts';
import { storedOutputs, toolOutputTool, TOOL_OUTPUT, type StoredOutputs } from './stored-outputs.ts';
import { agentLimits, modelRetryPolicy, type AgentLimitOptions } from './limits.ts';
import { LoopGuard } from './guard.ts';
import { agentMessagesSchema, type AgentMessage } from '../message.ts';
import type { AgentModel, ModelUsage } from '../model.ts';
import { AgentRun } from './run.ts';
import type { AgentLayer, ToolStepContext } from './tool-step.ts';
import type { TranscriptEvidence } from './transcript.ts';

/** What a run of an agent is made of: only `model`, `spillway` and `messages` must be given. */
export interface AgentOptions {
  /** `anthropicModel(...)`, `aiSdkModel(...)`, `scriptedModel(...)`, or a function of your own. */
  readonly model: AgentModel;
  /** The layer under whose policies, breakers and trace the tools run. */
  readonly spillway: AgentLayer;
  /** The tools that the model is offered. It can call no other tool, whatever else the layer knows. Default: none. */
  readonly tools?: readonly AnyTool[];
  /**
   * The conversation so far, at least one message. Calls that a crash left without results are answered first, see
   * `repairTranscript`.
   */
  readonly messages: readonly AgentMessage[];
  /**
   * What is known of calls in `messages` without a result, from a trace by `evidenceFromTrace`. Default: nothing, so
   * each of them may have run.
   */
  readonly evidence?: TranscriptEvidence;
  /** The system prompt of each model step. Default: none. */
  readonly system?: string;
  /** How much the run may do and show. Each limit has a default of its own. */
  readonly limits?: AgentLimitOptions;
  /**
   * How a model that fails is asked again. Default: 3 attempts, 500 ms doubling to 8 s, +-25 %, as Anthropic's SDK has
   * it. `false`: the model is asked once.
   */
  readonly modelRetry?: Partial<RetryPolicy> | false;
  /** How the tool calls of one step run: `timeoutMs` (300,000), `onDeadline` (`detach`), `concurrency` (no limit). */
  readonly turn?: PlanOptions;
  /** Whose run it is: part of each call's keys, and whom approvals and budgets `per: 'session'` are for. */
  readonly session?: string;
  /** The user or service on whose behalf it runs: part of computed keys and of approvals. */
  readonly actor?: string;
  /** The tenant: part of each call's keys, and whom budgets `per: 'tenant'` are for. */
  readonly tenant?: string;
  /**
   * What one answer costs, in US dollars, by the tokens that it reports: for `limits.usd` and for `costUsd` of the
   * result. Providers differ in whether `inputTokens` holds cached ones, so only its host knows. What is no amount of 0
   * or more, or a price that throws, ends a run that has `limits.usd` before the model is asked again. Default: nothing
   * is priced.
   *
   * @example price: ({ inputTokens = 0, outputTokens = 0 }) => (inputTokens * 3 + outputTokens * 15) / 1e6
   */
  readonly price?: (usage: ModelUsage) => number;
  /** Aborting it ends the run with status `canceled`, each call answered. */
  readonly signal?: AbortSignal;
  /**
   * Where outputs that were cut are kept for `tool_output`. Default: a store of the run's own, of `limits.keptChars`
   * characters.
   */
  readonly outputs?: StoredOutputs;
  /** Clock, timers, randomness and ids. Default: the machine's. */
  readonly runtime?: Runtime;
}

const OPTION_KEYS = [
  'model',
  'spillway',
  'tools',
  'messages',
  'evidence',
  'system',
  'limits',
  'modelRetry',
  'turn',
  'session',
  'actor',
  'tenant',
  'price',
  'signal',
  'outputs',
  'runtime',
];

const byName = (tools: readonly AnyTool[]): Map<string, AnyTool> => {
  if (!Array.isArray(tools)) throw new RangeError(`tools must be a list, not ${typeof tools}`);
  const named = new Map<string, AnyTool>();
  for (const tool of tools as readonly AnyTool[]) {
    if (typeof tool?.name !== 'string' || typeof tool.execute !== 'function')
      throw new RangeError(
        'each of tools must be an object with a name and an execute function: tool() makes one, ' +
          'and the tools of a provider are such',
      );
    if (named.has(tool.name))
      throw new RangeError(`two of tools are named ${tool.name}; give one of them another name`);
    named.set(tool.name, tool);
  }
  return named;
};

const checkMessages = (messages: readonly AgentMessage[]): void => {
  if (Array.isArray(messages) && messages.length === 0)
    throw new RangeError('messages must hold at least one message, for the model to answer');
  const { error } = agentMessagesSchema.safeParse(messages);
  const [issue] = error?.issues ?? [];
  if (issue !== undefined)
    throw new RangeError(
      `messages${issue.path.map((step) => `[${String(step)}]`).join('')} is no message of an agent: ${issue.message}`,
    );
};

const IDENTITY_MAX = 512;

/** @throws RangeError for what names nobody: all without a name would share keys, approvals and budgets */
const identityOf = ({ session, actor, tenant }: AgentOptions): ToolStepContext['identity'] => {
  const named = given({ session, actor, tenant });
  for (const [name, value] of Object.entries(named))
    if (typeof value !== 'string' || value === '' || value.length > IDENTITY_MAX)
      throw new RangeError(`${name} must be a text of 1 to ${IDENTITY_MAX} characters`);
  return named;
};

const checkParts = (
  options: AgentOptions,
): Pick<AgentOptions, 'model'> & Pick<ToolStepContext, 'spillway' | 'identity'> => {
  const { model, spillway } = options;
  if (typeof model !== 'function')
    throw new RangeError(`model must be a function of messages, tools and options, not ${typeof model}`);
  if (typeof spillway?.turn !== 'function') throw new RangeError('spillway must be a layer that createSpillway made');
  return { model, spillway, identity: identityOf(options) };
};

const checkPrice = (price: AgentOptions['price'], usd: number): void => {
  if (price !== undefined && typeof price !== 'function')
    throw new RangeError(`price must be a function of an answer's usage, not ${typeof price}`);
  if (price === undefined && usd !== Infinity)
    throw new RangeError(`limits.usd is ${usd}, but nothing says what an answer costs: give the option price`);
};

/**
 * Runs an agent: asks the model, runs the tools it calls as one turn of the layer, gives it their results, until it has
 * its answer or a limit is reached. A cold stream of events; each subscription is a run of its own, and the last event
 * is `settled`. A failure of the model or of a tool is a value in it: the stream errors only for a tool's policy that
 * cannot be. Unsubscribing stops the model and the tools at once.
 *
 * The calls of one step run in parallel. An input may refer to another call of its step by `{ "$result": "<its id>",
 * "path"?: "a.b" }`; it then waits for that call and gets its output. Each call has one result, in call order, never
 * empty, stored in the messages and sent again to the byte. Of a failure the model reads the error's `safeMessage`,
 * else what its kind and status mean, whether the tool ran, and whether trying again can help and when; raw messages
 * stay with the host, but for tools with `show: 'errors'`.
 *
 * A model that fails in a passing way is asked again, before or after it began to answer; in the second case
 * `discarded` says that what was shown is void.
 *
 * @param options the model, the layer, the messages; what the model may use, and how long
 * @throws RangeError for an option out of its range, messages that are none, tools of one name, or a tool whose input
 * is no object
 *
 * @example const run$ = runAgent({ model: scriptedModel([{ calls: [{ name: 'flight_search', input: { from: 'HEL', to:
 * 'NRT' } }] }, { text: 'AY73 it is.' }]), spillway: createSpillway({ tools }), tools, messages: [{ role: 'user',
 * content: 'Find me a flight to Tokyo' }], }); run$.subscribe((event) => event.type === 'settled' &&
 * console.log(event.result.text));
 */
export function runAgent(options: AgentOptions): Observable<AgentEvent> {
  checkKeys('runAgent', options, OPTION_KEYS);
  const { tools = [], messages, turn: planOptions = {}, runtime = liveRuntime } = options;
  const { model, ...layer } = checkParts(options);
  const limits = agentLimits(options.limits);
  const retry = modelRetryPolicy(options.modelRetry);
  const named = byName(tools);
  const readsOn = named.size > 0 && limits.outputChars !== Infinity;
  if (readsOn && named.has(TOOL_OUTPUT))
    throw new RangeError(
      `${TOOL_OUTPUT} is the loop's own tool for cut outputs; rename yours, or set limits.outputChars to Infinity`,
    );
  checkPrice(options.price, limits.usd);
  checkMessages(messages);
  // Nothing runs: it checks its options.
  plan.from([], planOptions);
  const definitions = [...named.values()].map(definitionOf);
  return new Observable((subscriber) => {
    const outputs = options.outputs ?? storedOutputs(limits.keptChars, () => runtime.id());
    const reader = toolOutputTool(outputs, limits.outputChars);
    const guard = new LoopGuard(limits.loop);
    const step = {
      model,
      system: options.system,
      tools: readsOn ? [...definitions, definitionOf(reader)] : definitions,
      retry,
      timeoutMs: limits.modelTimeoutMs,
      runtime,
    };
    const offered = new Map(readsOn ? [...named, [TOOL_OUTPUT, reader]] : named);
    const run = new AgentRun(
      {
        messages,
        evidence: options.evidence,
        step,
        toolsOf: (stop, isOutOfTime) => ({
          ...layer,
          tools: offered,
          limits,
          planOptions,
          guard,
          outputs,
          signal: stop,
          isOutOfTime,
        }),
        limits,
        price: options.price,
        signal: options.signal,
        runtime,
      },
      subscriber,
    );
    run.begin();
  });
}
