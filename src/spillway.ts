import { Observable, defer, ignoreElements } from 'rxjs';
import type { ToolCallEnvelope, ToolCallRequest, ToolResultEnvelope } from './contract/envelope.ts';
import type { ToolEvent, TraceEvent, TurnOwnEvent } from './contract/event.ts';
import type { FailureNotification } from './contract/recovery.ts';
import type { AnyTool } from './contract/tool.ts';
import type { Plan, TurnResult } from './contract/turn.ts';
import { redactorOf } from './policy/redact/values.ts';
import { createRetryBudget, retryBudgetOf } from './policy/retry/budget.ts';
import { liveRuntime } from './runtime.ts';
import { memoryStore } from './stores/memory.ts';
import { breakerListener, createBreakers, type BreakerOrder, type Breakers } from './layer/breakers.ts';
import { callOutcome, type CallingLayer } from './call/pipe.ts';
import { createDedupe } from './layer/idempotency.ts';
import { createRecovery } from './layer/error-handler.ts';
import { CallContext } from './call/context.ts';
import type { CallSite } from './call/context.ts';
import type { CallOutcome } from './call/result.ts';
import { HookRunner } from './layer/hooks.ts';
import {
  flushLayer,
  inspectLayer,
  toolReports,
  type Flush,
  type LayerReport,
  type ToolReport,
} from './operate/inspection.ts';
import type { Caller, Layer } from './layer/services.ts';
import { orderBreakers, type BreakerTarget, type OrderReport } from './operate/orders.ts';
import { createRegistry, executedBy, type GuardedTool } from './layer/registry.ts';
import { readRequest, type Call } from './call/request.ts';
import { RunningCalls } from './layer/running-calls.ts';
import { PoliciesInForce } from './layer/policy-in-force.ts';
import { createSwitches } from './layer/switches.ts';
import { createTrace } from './layer/trace.ts';
import { checkOptions, hostOf, type SpillwayOptions } from './options.ts';
import type { TurnOptions } from './turn/run.ts';
import { runnerOf } from './turn/runner.ts';
import { resumed, sharedBreakersType } from './saga/brought.ts';
import type { ResumeOptions, ResumedTurn } from './saga/resume.ts';

/** What one call has of its own. */
export interface CallOptions {
  /** Aborting it ends the call at once with the error `canceled`. */
  readonly signal?: AbortSignal;
  /** The tool to run, where it is not one that the layer knows by the request's name. */
  readonly tool?: AnyTool;
  /**
   * Runs in place of the tool's own `execute`, for this call alone: what only the call knows reaches its tool that way.
   * Needs `tool`.
   */
  readonly execute?: AnyTool['execute'];
  /** The caller can do without it: its failure is `partial`, and nobody is asked to choose. Default false. */
  readonly optional?: boolean;
}

type Settled = Extract<TurnOwnEvent, { type: 'settled' }>;
type TypedSettled<Values> = Omit<Settled, 'result'> & {
  /** What the turn found, its values typed by the plan. */
  readonly result: TurnResult<Values>;
};
/** The events of a turn whose values are known by type. */
export type TypedTurnEvent<Values> = ToolEvent | Exclude<TurnOwnEvent, Settled> | TypedSettled<Values>;

/** A layer that guards tool calls. */
export interface Spillway {
  /** A call as a cold stream of events; the last one is `settled` with the result. Unsubscribing cancels the call. */
  call(request: ToolCallRequest | ToolCallEnvelope, options?: CallOptions): Observable<ToolEvent>;
  /** A call as a promise of its result. It does not reject for a tool's failure: that is a result too. */
  execute(request: ToolCallRequest | ToolCallEnvelope, options?: CallOptions): Promise<ToolResultEnvelope>;
  /**
   * A turn as a cold stream of events; the last one is `settled` with what the turn found. Unsubscribing cancels
   * everything.
   *
   * @throws RangeError for a plan that `plan` did not make
   */
  turn<Values>(plan: Plan<Values>, options?: TurnOptions): Observable<TypedTurnEvent<Values>>;
  /**
   * Everything that happens in this layer, from now on; first of all `layer_started`, which tells each subscriber what
   * policies are in force.
   */
  readonly trace$: Observable<TraceEvent>;
  /** Every failure, as the error handler gets it. */
  readonly failures$: Observable<FailureNotification>;
  /** Trace events that a subscriber lost by throwing. */
  readonly droppedEvents: number;
  /** The breakers of the layer, by tool and tenant, to watch and to order. */
  readonly breakers: Breakers;
  /**
   * Sentences about what was noticed while tools were registered, such as policies that cannot act as they read; and,
   * once the store has reported, settings of it that lose what it acknowledged.
   */
  readonly warnings: readonly string[];
  /** The registered tools, as calls of them run now. */
  readonly tools: readonly ToolReport[];
  /**
   * Says how the layer stands now: mode, tools, breakers, store, retries left. Never rejects for a store that is lost.
   */
  inspect(): Promise<LayerReport>;
  /**
   * Gives an order to the breakers of a tool, or to all, in every scope, those to come included; it stands until the
   * next one. `force_open`: every call is refused. `disable`: none is. `reset`: closed, with nothing remembered.
   * Rejects with a `RangeError` for a tool that is not there or has no breaker, and with `store_unavailable` when
   * shared breakers could not be reset, too.
   */
  orderBreakers(order: BreakerOrder, what: BreakerTarget): Promise<OrderReport>;
  /**
   * Forgets what is remembered of a tool, a session, or all registered tools, and gives how many results that were.
   * Calls that run are left alone.
   */
  flush(what: Flush): Promise<number>;
  /**
   * Undoes what turns with `onFailure: 'compensate'` did whose process died before they settled, and gives what became
   * of each. A turn whose process lives is left alone; of several processes that ask at once, one undoes a turn. To be
   * called when a program starts, with the plans whose nodes have an undoing or a tool of their own. Rejects with a
   * `RangeError` in a bundle that holds neither `plan` nor a store of several processes.
   */
  resume(options?: ResumeOptions): Promise<readonly ResumedTurn[]>;
  /**
   * Cancels what runs, detached calls included, waits until the store has their ends, and closes the providers.
   * Idempotent.
   */
  close(): Promise<void>;
}

/** Most promises' calls have nothing of their own, and one site for all of them. */
const siteOf = (site: CallSite, { signal }: CallOptions, report?: (event: ToolEvent) => void): CallSite => {
  if (signal === undefined && report === undefined) return site;
  return { ...site, ...(signal === undefined ? {} : { signal }), ...(report === undefined ? {} : { report }) };
};

const toolOf = ({ registry }: Layer, { tool, execute }: CallOptions): GuardedTool | undefined => {
  if (tool !== undefined) return execute === undefined ? registry.of(tool) : executedBy(registry.of(tool), execute);
  if (execute !== undefined) throw new RangeError('execute of a call needs the tool it is for; give tool, too');
  return undefined;
};

const callOf = (call: Call, { optional }: CallOptions): Call =>
  optional === true ? { ...call, required: false } : call;

/** A call as it was asked for, from either form of a request. */
const requested = (
  layer: CallingLayer,
  site: CallSite,
  request: ToolCallRequest | ToolCallEnvelope,
  options: CallOptions,
  report?: (event: ToolEvent) => void,
): Observable<CallOutcome> => {
  const { call, error } = readRequest(request, layer.runtime);
  const made = layer.makeCall(siteOf(site, options, report), callOf(call, options), toolOf(layer, options), error);
  return made.outcome$;
};

/**
 * Makes a layer of tools whose calls are retried, timed out, broken off and traced as their policies say.
 *
 * @param options tools, policies, and where time comes from
 * @throws RangeError for an option out of its range, a tool registered twice, an alternative that does not exist
 *
 * @example
 * const spillway = createSpillway({ tools: [flights, hotels] });
 * const result = await spillway.execute({ toolName: 'flight_search', input: { from: 'HEL', to: 'NRT' } });
 */
export function createSpillway(options: SpillwayOptions = {}): Spillway {
  checkOptions(options);
  const Shared = options.shareBreakers === true ? sharedBreakersType() : undefined;
  const {
    tools = [],
    providers = [],
    profile = 'interactive',
    defaults = {},
    retryBudget = {},
    runtime = liveRuntime,
    mode = 'on',
  } = options;
  const hasApprovals = options.approvals !== undefined;
  const around = { profile, defaults, breakerKey: options.breakerKey, hasApprovals };
  const registry = createRegistry(tools, around, providers);
  const switches = createSwitches(mode);
  const terms = { retryBudget: retryBudget === false ? undefined : retryBudgetOf(retryBudget), host: hostOf(options) };
  const inForce = new PoliciesInForce(registry, switches, terms);
  const trace = createTrace(runtime, redactorOf(options.redact, options.capture), () => inForce.layerStarted());
  const listener = breakerListener(trace);
  const recovery = createRecovery(options, runtime);
  // They go to a log or a terminal, and hold names and what a store says of itself.
  const { text: clean } = trace.redactor;
  const warnings = Array.from(registry.warnings, clean);
  const dedupe = createDedupe(options, {
    trace,
    runtime,
    fallback: () => memoryStore({ runtime }),
    warn: (line) => warnings.push(clean(line)),
  });
  const sharedBreakers = Shared && new Shared(dedupe, runtime);
  const breakers = createBreakers(
    (toolName) => registry.get(toolName)?.breaker,
    runtime,
    listener,
    options.maxBreakers,
    sharedBreakers,
  );
  const site: CallSite = { runtime, deadlineMs: Infinity };
  const keepers = [options.approvals, options.budget].filter((keeper) => keeper !== undefined);
  const layer: CallingLayer = {
    runtime,
    registry,
    breakers,
    sharedBreakers,
    retryBudget: retryBudget === false ? undefined : createRetryBudget(retryBudget),
    trace,
    inForce,
    recovery,
    experience: options.experience,
    dedupe,
    hooks: options.hooks === undefined ? undefined : new HookRunner(options.hooks, options.hookTimeoutMs),
    switches,
    gates: keepers[0]?.join({ dedupe, runtime, trace }, keepers),
    around: options.around,
    traceContext: options.traceContext,
    captures: options.capture !== undefined,
    makeCall: (callSite, call, guarded, malformed) => {
      const context = new CallContext(layer, callSite, call);
      return { context, outcome$: callOutcome(context, guarded, malformed) };
    },
    lookUp: (toolName, input, by) => lookedUp(layer, site, { toolName, input, ...by }),
    running: new RunningCalls(),
    closed: false,
  };
  let closing: Promise<void> | undefined;
  const close = async (): Promise<void> => {
    layer.closed = true;
    layer.running.cancelAll();
    sharedBreakers?.close();
    // The store gets what became of canceled calls before its client may be closed.
    await Promise.allSettled([layer.dedupe.written(), ...providers.map((provider) => provider.close())]);
    trace.close();
  };
  return {
    call: (request, callOptions = {}) =>
      new Observable((subscriber) => {
        requested(layer, site, request, callOptions, (event) => subscriber.next(event))
          .pipe(ignoreElements())
          .subscribe(subscriber);
      }),
    execute: (request, callOptions = {}) =>
      new Promise((resolve, reject) => {
        requested(layer, site, request, callOptions).subscribe({
          next: ({ result }) => resolve(result),
          error: reject,
        });
      }),
    // The values are those of the plan's own nodes, which only the plan's type knows.
    turn: <Values>(plan: Plan<Values>, turnOptions: TurnOptions = {}) =>
      runnerOf(plan as Plan)(layer, plan as Plan, turnOptions) as Observable<TypedTurnEvent<Values>>,
    trace$: trace.events$,
    failures$: recovery.failures$,
    get droppedEvents() {
      return trace.dropped;
    },
    breakers,
    warnings,
    get tools() {
      return toolReports(layer);
    },
    inspect: () => inspectLayer(layer),
    orderBreakers: (order, what) => orderBreakers(layer, order, what),
    resume: (resumeOptions = {}) => resumed(layer, resumeOptions),
    flush: (what) => flushLayer(layer, what),
    close: () => (closing ??= close()),
  };
}

/** A call beside those that are asked for, for what has to look something up. */
const lookedUp = (
  layer: CallingLayer,
  site: CallSite,
  asked: Pick<Call, 'toolName' | 'input' | keyof Caller>,
): ReturnType<Layer['lookUp']> =>
  defer(() => {
    const callId = layer.runtime.id();
    const how = { required: false, unlimited: true, dedupeMode: 'disabled', deadlineMs: Infinity } as const;
    return layer.makeCall(site, { callId, ...how, ...asked }).outcome$;
  });

// Loaded with every layer where modules are loaded one by one.
export { acrossProcesses } from './stores/across-processes.ts';
