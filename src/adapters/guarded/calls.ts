import { Observable, catchError, tap } from 'rxjs';
import type { Effects, ToolPolicy } from '../../contract/policy.ts';
import type { AnyTool, ToolContext } from '../../contract/tool.ts';
import { fromOutput } from '../../operators/work/output.ts';
import { checkKeys } from '../../policy/check.ts';
import { mayHaveActed } from '../../policy/mcp-hints.ts';
import type { SpillwayOptions } from '../../options.ts';
import { createSpillway, type CallOptions, type Spillway } from '../../spillway.ts';
import { foreign } from '../../layer/foreign.ts';
import { createRegistry } from '../../layer/registry.ts';
import { tool } from '../../layer/tool.ts';
import { answering } from './answering.ts';
import { CallHistory, type FailureAnswer, type ForeignOutcome } from './call-history.ts';
import { keep, notHarvested, type FrameworkName } from './harvest.ts';
import { SameCalls } from './same-call.ts';

/**
 * How the tools of a framework are guarded. Beside its own two, the options of `createSpillway`, for the layer that is
 * made.
 */
export interface GuardLayerOptions extends SpillwayOptions {
  /**
   * A layer of your own: to watch its `trace$`, to share its breakers, to close it. Options of a layer cannot be given
   * beside it. Without one a layer is made. On either a framework's tool counts as `mutating` where neither its policy
   * nor the layer's defaults say otherwise, since nothing is known of it: what may have taken effect is not tried
   * again. That is a timeout, a lost connection, and what a tool throws without a status or a code that tells (a bare
   * error, a shell's exit): it proves nothing. A tool that knows better throws a `ToolExecutionError` with
   * `executed: false`, or says `effects: 'read'` in its policy.
   */
  readonly spillway?: Spillway;
  /**
   * Policies by tool name; what one leaves out comes from the layer's defaults. `alternatives` are tools of the layer.
   */
  readonly policies?: Readonly<Record<string, ToolPolicy>>;
}

/** One call of a framework's tool. */
export interface ForeignCall {
  readonly framework: FrameworkName;
  readonly toolName: string;
  /** The framework's arguments, which it has checked. */
  readonly input: unknown;
  readonly toolCallId?: string | undefined;
  /** The key under which the call runs once; without it every call runs. */
  readonly idempotencyKey?: string | undefined;
  /** What all calls of one model step have, and no other call: one that is repeated in its step is made once. */
  readonly step?: object | undefined;
  /** What all calls of one run have, and no other run: one that is repeated while it runs is made once. */
  readonly runObject?: object | undefined;
  /** What the tool says of itself, where it can; a policy goes before that. */
  readonly effects?: Effects;
  /** Asks whether it still says that it only reads, where it may say otherwise by a further attempt. */
  readonly stillReads?: (signal: AbortSignal) => Promise<boolean>;
  /** What a harvest keeps with the call, to make messages of it. */
  readonly origin?: unknown;
  /** The caller's. */
  readonly signal?: AbortSignal | null | undefined;
  /** Runs the framework's own tool, once an attempt. */
  readonly run: (input: unknown, context: ToolContext) => unknown;
  /** Hears each value of an AsyncIterable; without it, one is a value like any other. */
  readonly stream?: { begun(): void; next(value: unknown): void };
  /** What the tool threw, where it is its framework's own error for the model. */
  readonly answerOf?: (thrown: unknown) => FailureAnswer | undefined;
  /**
   * What its framework takes as a result, made of what the tool itself did not give: an earlier call of the key did,
   * whose record is JSON, or an alternative. Default: that, as it is.
   */
  readonly adopt?: (value: unknown) => unknown;
}

export interface RunningForeignCall {
  /** Never rejects for a failure. */
  readonly outcome: Promise<ForeignOutcome>;
  /** Ends the call, whose caller has stopped waiting: everything stops, and `outcome` never settles. */
  abandon(): void;
}

export interface GuardedCalls {
  /** Begins a call at once. */
  begin(call: ForeignCall): RunningForeignCall;
  /**
   * Whether the tools that policies name are there, once the framework's are known.
   * @throws RangeError for one that is not
   */
  readonly checkNames: (toolNames: readonly string[]) => void;
}

/** Calls of unknown tools that keep what was made for them: a model can make up names without end. */
const TOOLS_MAX = 1_000;
/** The layer gets no tool call id that is longer. */
const ID_LENGTH_MAX = 256;

export const isAsyncIterable = (value: unknown): value is AsyncIterable<unknown> =>
  typeof (value as AsyncIterable<unknown> | null | undefined)?.[Symbol.asyncIterator] === 'function';

/**
 * One attempt: what it gives, with an answer that it throws noted on the way. What a failure proves is the layer's to
 * judge.
 */
const attempt = (
  { run, stream, answerOf }: ForeignCall,
  history: CallHistory,
  input: unknown,
  context: ToolContext,
): Promise<unknown> | Observable<unknown> => {
  history.attemptBegins();
  const fail = (thrown: unknown): never => {
    const answer = answerOf?.(thrown);
    if (answer === undefined) throw thrown;
    history.answered(answer);
    throw answering(thrown, answer.text);
  };
  try {
    const output = run(input, context);
    if (stream !== undefined && isAsyncIterable(output)) {
      stream.begun();
      const values = fromOutput(output);
      // A stream's work begins when it is subscribed to.
      return new Observable((subscriber) => notHarvested(() => values.subscribe(subscriber))).pipe(
        tap((value) => {
          context.progress({});
          stream.next(value);
        }),
        catchError(fail),
      );
    }
    return Promise.resolve(output).then((value) => history.gave(value), fail);
  } catch (thrown) {
    return fail(thrown);
  }
};

/**
 * The same call of a tool that says itself that it only reads: before each further attempt it is asked anew, and once
 * it says so no more it is not called again.
 */
const whileReading = (call: ForeignCall, stillReads: (signal: AbortSignal) => Promise<boolean>): ForeignCall => ({
  ...call,
  run: async (input, context) => {
    if (context.attempt > 1 && !(await stillReads(context.signal))) throw mayHaveActed();
    return call.run(input, context);
  },
});

/**
 * What a tool's calls have in common, for policy and breaker; each call brings its own `execute`, in which is what its
 * framework gave with it.
 */
const toolNamed = (name: string, policy: ToolPolicy | undefined): AnyTool =>
  foreign(tool({ name, ...(policy === undefined ? {} : { policy }), execute: () => undefined }));

const begin = (spillway: Spillway, toolCalled: AnyTool, call: ForeignCall): RunningForeignCall => {
  const history = new CallHistory();
  const kept = keep(call);
  const { promise, resolve, reject } = Promise.withResolvers<ForeignOutcome>();
  const { toolName, input, toolCallId = '', idempotencyKey, signal } = call;
  const options: CallOptions = {
    tool: toolCalled,
    execute: (given: unknown, context) => notHarvested(() => attempt(call, history, given, context)),
    // The model reads the failure and goes on, so a failed call is no escalation.
    optional: true,
    ...(signal === undefined || signal === null ? undefined : { signal }),
  };
  const named = toolCallId !== '' && toolCallId.length <= ID_LENGTH_MAX;
  const request = {
    toolName,
    input,
    ...(named ? { toolCallId } : undefined),
    ...(idempotencyKey === undefined ? undefined : { idempotencyKey }),
  };
  const subscription = spillway.call(request, options).subscribe({
    next: (event) => {
      if (event.type !== 'settled') return;
      const outcome = history.outcome(event.result, call.adopt);
      kept?.settle(outcome);
      resolve(outcome);
    },
    error: (thrown: unknown) => {
      kept?.abandon();
      reject(thrown);
    },
  });
  const abandon = (): void => {
    subscription.unsubscribe();
    kept?.abandon();
  };
  return { outcome: promise, abandon };
};

/** What an adapter knows of its framework's tools before one is called. */
export interface ForeignTools {
  /** Their names, where these are known: a policy for any other name is a mistake. */
  readonly toolNames?: readonly string[];
  /** The policy of all that have none of their own. */
  readonly policy?: ToolPolicy | undefined;
}

/** How messages name the policy that all tools have. */
const COMMON = 'policy';
const GUARD_KEYS = ['spillway', 'policies'];

/** Every policy is checked before any tool is called. */
const checkPolicies = (
  policies: Readonly<Record<string, ToolPolicy>>,
  { toolNames, policy: common }: ForeignTools,
  layerTools: readonly AnyTool[] | undefined,
): void => {
  if (toolNames !== undefined) checkKeys('policies', policies, toolNames);
  const known = layerTools?.map(({ name }) => name);
  const named = common === undefined ? policies : { ...policies, [COMMON]: common };
  const tools = Object.entries(named).map(([name, { alternatives = [], ...policy }]) => {
    const unknown = alternatives.find((alternative) => known?.includes(alternative) === false);
    if (unknown !== undefined)
      throw new RangeError(
        `policies.${name}: its alternative ${unknown} is no tool of the layer; give it in tools or providers`,
      );
    return toolNamed(name, policy);
  });
  createRegistry(tools, { profile: 'interactive', defaults: {}, breakerKey: undefined });
};

const makeLayer = (options: SpillwayOptions): Spillway =>
  createSpillway({ ...options, defaults: { effects: 'mutating', ...options.defaults } });

/**
 * The calls of a framework's tools under one layer.
 *
 * @param of whose options these are, for messages
 * @param foreignTools what is known of the framework's tools
 * @throws RangeError for an option that does not exist or is out of its range
 */
export function guardedCalls(of: string, options: GuardLayerOptions, foreignTools: ForeignTools = {}): GuardedCalls {
  const { spillway, policies = {}, ...layerOptions } = options;
  if (spillway !== undefined) checkKeys(`${of} with a spillway`, options, GUARD_KEYS);
  const layer = spillway ?? makeLayer(layerOptions);
  const layerTools = [
    ...(layerOptions.tools ?? []),
    ...(layerOptions.providers ?? []).flatMap((provider) => provider.tools),
  ];
  checkPolicies(policies, foreignTools, spillway === undefined ? layerTools : undefined);
  const named = new Map(Object.entries(policies));
  const policyOf = (name: string): ToolPolicy | undefined => named.get(name) ?? foreignTools.policy;
  const made = new Map<string, AnyTool>();
  const same = new SameCalls();
  const toolOf = ({ toolName: name, effects }: ForeignCall): AnyTool => {
    const known = made.get(name);
    const own = policyOf(name);
    // A tool can say of itself what it had not said before.
    const isSame = effects === undefined || known?.policy?.effects === (own?.effects ?? effects);
    if (known !== undefined && isSame) return known;
    const created = toolNamed(name, effects === undefined ? own : { effects, ...own });
    if (made.size >= TOOLS_MAX) made.clear();
    made.set(name, created);
    return created;
  };
  return {
    begin: (call) => {
      const called = toolOf(call);
      const isRead = called.policy?.effects === 'read';
      const { effects, enforcesKey = false } = policyOf(call.toolName) ?? {};
      const isHearsay = isRead && effects === undefined && !enforcesKey;
      const guarded = isHearsay && call.stillReads !== undefined ? whileReading(call, call.stillReads) : call;
      return same.begin(call, isRead, () => begin(layer, called, guarded));
    },
    checkNames: (toolNames) => checkKeys(`policies of ${of}`, policies, toolNames),
  };
}

/** The value of a call that succeeded; otherwise throws its `ToolFailure`, or the answer that the tool itself threw. */
export async function valueOf({ outcome }: RunningForeignCall): Promise<unknown> {
  const settled = await outcome;
  if (settled.succeeded) return settled.value;
  throw settled.answer === undefined ? settled.failure : settled.answer.thrown;
}
