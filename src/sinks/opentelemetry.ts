import type { LayerEvent, ToolEvent, TraceEvent, TurnOwnEvent } from '../contract/event.ts';
import { checkKeys, checkOneOf } from '../policy/check.ts';
import { SCOPE, SEVERITY, STATUS_ERROR, fromTraceparent, toTraceparent, type OtelApi, type OtelAttributes, type OtelContext, type OtelLink, type OtelSpan, type OtelSpanContext } from './opentelemetry-api.ts';
import { BREAKER_CHANGED, CallSpan, breakerAttributes, type SpanTerms } from './opentelemetry-call.ts';
import { otelMetrics } from './opentelemetry-metrics.ts';
import { ToolFacts, type ToolSource, type ToolType } from './opentelemetry-tools.ts';
import { Kept, type TraceSink } from './sink.ts';
import { meteredTools, type Inspect, type MeteredTool } from './tool-meters.ts';

export type { OtelApi, OtelAttributes, OtelContext, OtelCounter, OtelHistogram, OtelInstrumentOptions, OtelLink, OtelLogRecord, OtelLogger, OtelMeter, OtelObservable, OtelObserver, OtelScopeOptions, OtelSpan, OtelSpanContext, OtelTracer } from './opentelemetry-api.ts';
export type { McpSessionFacts, ToolSource, ToolType } from './opentelemetry-tools.ts';
export type { Inspect, LayerState, ListedBreaker, MeteredTool, StoreFill } from './tool-meters.ts';

export interface OpenTelemetrySinkOptions {
  /** The whole module `@opentelemetry/api`, 1.9.0 or later, as one object. */
  readonly api: OtelApi;
  /**
   * The tools that are counted by their names; others count as `__other__`. Without a list there are spans only. A tool's `description` is on its spans as
   * `gen_ai.tool.description`.
   */
  readonly tools?: ReadonlyArray<string | MeteredTool>;
  /** Providers whose tools are described on spans; over MCP a call's span has `mcp.method.name`, `mcp.session.id` and `network.transport`, too. */
  readonly providers?: readonly ToolSource[];
  /** What `gen_ai.tool.type` says of a tool. Default `function` for all. */
  readonly toolType?: (toolName: string) => ToolType;
  /**
   * Asked at each collection of metrics, for the size of the store, the states of breakers, the retries left and the events lost:
   * `() => spillway.inspect()`.
   */
  readonly inspect?: Inspect;
  /** A span for each attempt (`always`, the default), for those of calls that were retried, or none. With `onRetry` a first attempt's span comes when it has failed. */
  readonly attemptSpans?: 'always' | 'onRetry' | 'never';
  /** CLAW's words as well: spans `tool_execution` and `retry_delay`, attributes `tool.name`, `idempotency.key` (its fingerprint), `retry.attempt`, `breaker.state`. Default false. */
  readonly claw?: boolean;
  /** What runs the turns, in `gen_ai.agent.name`, which names workflows as well since the GenAI conventions v0.1.0: one of few names. */
  readonly workflowName?: string;
  /** What the names of metrics begin with. Default `spillway`. */
  readonly prefix?: string;
}

export interface OpenTelemetrySink extends TraceSink {
  /** Does something in the context of a call's present attempt, so that spans made in it belong under that. Of a call that is not known, in the active one. */
  run<T>(callId: string, work: () => T): T;
  /** The W3C trace context of a call's present attempt, for what goes over a wire. */
  traceparent(callId: string): string | undefined;
}

interface TurnSpan {
  readonly span: OtelSpan;
  readonly context: OtelContext;
  readonly needs: ReadonlyMap<string, readonly string[]>;
  /** The spans of its calls, by node. */
  readonly calls: Map<string, OtelSpanContext>;
}

/** Turns at a time. */
const TURNS_MAX = 1_000;

const OPTION_KEYS = ['api', 'tools', 'providers', 'toolType', 'inspect', 'attemptSpans', 'claw', 'workflowName', 'prefix'];

/**
 * Makes OpenTelemetry spans, metrics and log records of a trace, by the GenAI semantic conventions v0.1.0: `execute_tool <tool>` for a call, one
 * span below it for each attempt, `invoke_workflow` for a turn. A call that a retry saved has no error. Who waited for another's result is linked to that
 * call, and a node of a plan to those it needed. A breaker's change is a log record, and an event on the spans of the calls that it guards just then.
 *
 * Spans belong under the caller's `traceparent`, else under the span that is active where the call is made: subscribe it directly, not through
 * anything that waits.
 *
 * @param options the API, and what is wanted
 * @throws RangeError for an option out of range
 *
 * @example
 * declare const api: OtelApi; // the module @opentelemetry/api
 * spillway.trace$.subscribe(openTelemetrySink({ api, tools: [flights, hotels] }));
 */
export function openTelemetrySink(options: OpenTelemetrySinkOptions): OpenTelemetrySink {
  checkKeys('openTelemetrySink', options, OPTION_KEYS);
  const { api, attemptSpans = 'always', claw = false, workflowName, prefix = 'spillway' } = options;
  checkOneOf('attemptSpans', attemptSpans, ['always', 'onRetry', 'never']);
  if (typeof api?.trace?.getTracer !== 'function') throw new RangeError('api must be the whole module @opentelemetry/api, 1.9.0 or later: import it as one object, `* as api`, and hand that in');
  if (!/^[a-z][\w.-]{0,63}$/i.test(prefix)) throw new RangeError(`prefix must be 1 to 64 letters, digits, _, . and -, first a letter, not ${JSON.stringify(prefix)}`);
  const terms: SpanTerms = { api, tracer: api.trace.getTracer(...SCOPE), attempts: attemptSpans, claw };
  const logger = api.logs?.getLogger(...SCOPE);
  const tools = options.tools === undefined ? undefined : meteredTools(options.tools);
  const facts = new ToolFacts(tools, options.providers, options.toolType);
  const metrics = tools === undefined ? undefined : otelMetrics({ api, prefix, tools, facts, inspect: options.inspect, agentName: workflowName });
  const agent: OtelAttributes = workflowName === undefined ? {} : { 'gen_ai.agent.name': workflowName };
  const calls = new Kept<CallSpan>(undefined, (call) => call.forget());
  const turns = new Kept<TurnSpan>(TURNS_MAX, ({ span }) => span.end());
  /** The spans of calls that others may have to be linked to, also after they ended. */
  const leaders = new Kept<OtelSpanContext>();

  const parentOf = (traceparent: string | undefined): OtelContext => {
    const active = api.context.active();
    const remote = traceparent === undefined ? undefined : fromTraceparent(traceparent);
    return remote === undefined ? active : api.trace.setSpanContext(active, remote);
  };
  const begin = (event: Extract<ToolEvent, { type: 'call_started' }>): void => {
    const { callId, nodeId, turnId, traceparent } = event;
    const turn = turnId === undefined ? undefined : turns.get(turnId);
    const needs = (nodeId === undefined ? undefined : turn?.needs.get(nodeId)) ?? [];
    const links = needs.flatMap((need): OtelLink[] => {
      const context = turn?.calls.get(need);
      return context === undefined ? [] : [{ context, attributes: { 'spillway.link': 'needs', 'spillway.node.id': need } }];
    });
    const attributes = { ...facts.of(event.toolName), ...(turn === undefined ? {} : agent) };
    const call = new CallSpan(terms, event, { parent: turn?.context ?? parentOf(traceparent), links, needs, attributes });
    calls.take(callId)?.forget();
    calls.set(callId, call);
    leaders.set(callId, call.span.spanContext());
    if (nodeId !== undefined) turn?.calls.set(nodeId, call.span.spanContext());
  };
  const ofCall = (event: ToolEvent): void => {
    if (event.type === 'call_started') return begin(event);
    const call = calls.get(event.callId);
    if (call === undefined) return;
    const leader = event.type === 'dedupe' && event.leaderCallId !== undefined ? leaders.get(event.leaderCallId) : undefined;
    call.next(event, leader === undefined ? undefined : { context: leader, attributes: { 'spillway.link': 'dedupe_leader' } });
    if (call.over) calls.take(event.callId);
  };
  const endTurn = (turnId: string, atMs: number, status: string, failed?: string): void => {
    const turn = turns.take(turnId);
    turn?.span.setAttributes({ 'spillway.turn.status': status, ...(failed === undefined ? {} : { 'error.type': status }) });
    if (failed !== undefined) turn?.span.setStatus({ code: STATUS_ERROR, message: failed });
    turn?.span.end(atMs);
  };
  const ofTurn = (event: TurnOwnEvent): void => {
    const { turnId, atMs } = event;
    switch (event.type) {
      case 'turn_started': {
        turns.take(turnId)?.span.end(atMs);
        const context = api.context.active();
        const attributes = { 'gen_ai.operation.name': 'invoke_workflow', ...agent, 'spillway.turn.id': turnId, 'spillway.turn.nodes': event.nodes.length };
        const span = terms.tracer.startSpan(workflowName === undefined ? 'invoke_workflow' : `invoke_workflow ${workflowName}`, { startTime: atMs, attributes }, context);
        return turns.set(turnId, { span, context: api.trace.setSpan(context, span), needs: new Map(event.nodes.map(({ id, needs }) => [id, needs])), calls: new Map() });
      }
      case 'deadline':
        turns.get(turnId)?.span.setAttributes({ 'spillway.turn.unfinished': event.unfinished.slice(0, 100) });
        return undefined;
      case 'abandoned':
        return endTurn(turnId, atMs, 'abandoned');
      case 'settled': {
        const { status, summary } = event.result;
        return endTurn(turnId, atMs, status, status === 'failed' || status === 'escalated' ? summary : undefined);
      }
      case 'node_started':
      case 'node_settled':
      case 'escalated':
        return undefined;
    }
  };
  const ofLayer = (event: LayerEvent): void => {
    if (event.type !== 'breaker_changed') return;
    for (const call of calls.values()) call.breakerChanged(event);
    const severityText = event.to === 'open' || event.to === 'forced_open' ? 'WARN' : 'INFO';
    const attributes = breakerAttributes(event);
    logger?.emit({ eventName: BREAKER_CHANGED, severityNumber: SEVERITY[severityText], severityText, body: event.message, attributes });
  };
  return {
    next: (event: TraceEvent) => {
      if (event.source === 'call') ofCall(event);
      else if (event.source === 'turn') ofTurn(event);
      else ofLayer(event);
      metrics?.next(event);
    },
    run: <T>(callId: string, work: () => T): T => {
      const context = calls.get(callId)?.context;
      return context === undefined ? work() : (api.context.with(context, work) as T);
    },
    traceparent: (callId) => {
      const span = calls.get(callId)?.currentSpan;
      return span === undefined ? undefined : toTraceparent(span.spanContext());
    },
  };
}
