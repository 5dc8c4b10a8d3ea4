import type { ToolEvent, TraceEvent, TurnOwnEvent } from '../contract/event.ts';
import { checkKeys, checkOneOf } from '../policy/check.ts';
import { STATUS_ERROR, fromTraceparent, toTraceparent, type OtelApi, type OtelContext, type OtelLink, type OtelSpan, type OtelSpanContext } from './opentelemetry-api.ts';
import { CallSpan, type SpanTerms } from './opentelemetry-call.ts';
import { otelMetrics } from './opentelemetry-metrics.ts';
import { Kept, type TraceSink } from './sink.ts';
import { meteredTools, type Inspect, type MeteredTool } from './tool-meters.ts';

export type { OtelApi, OtelAttributes, OtelContext, OtelInstrumentOptions, OtelLink, OtelMeter, OtelObservable, OtelObserver, OtelSpan, OtelSpanContext, OtelTracer } from './opentelemetry-api.ts';
export type { Inspect, LayerState, MeteredTool, StoreFill } from './tool-meters.ts';

export interface OpenTelemetrySinkOptions {
  /** The whole module `@opentelemetry/api`, 1.9.0 or later, as one object. */
  readonly api: OtelApi;
  /** The tools that are counted by their names; others count as `__other__`. Without a list there are spans only. */
  readonly tools?: ReadonlyArray<string | MeteredTool>;
  /** Asked at each collection of metrics, for the size of the store and the states of breakers: `() => spillway.inspect()`. */
  readonly inspect?: Inspect;
  /** A span for each attempt (`always`, the default), for those of calls that were retried, or none. With `onRetry` a first attempt's span comes when it has failed. */
  readonly attemptSpans?: 'always' | 'onRetry' | 'never';
  /** CLAW's words as well: spans `tool_execution` and `retry_delay`, attributes `tool.name`, `idempotency.key` (its fingerprint), `retry.attempt`, `breaker.state`. Default false. */
  readonly claw?: boolean;
  /** What turns are called in `gen_ai.workflow.name`: one of few names. */
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

/**
 * Makes OpenTelemetry spans and metrics of a trace, by the conventions for generative AI: `execute_tool <tool>` for a call, one span below
 * it for each attempt, `invoke_workflow` for a turn. A call that a retry saved has no error. Who waited for another's result is linked to that
 * call, and a node of a plan to those it needed.
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
  checkKeys('openTelemetrySink', options, ['api', 'tools', 'inspect', 'attemptSpans', 'claw', 'workflowName', 'prefix']);
  const { api, attemptSpans = 'always', claw = false, workflowName, prefix = 'spillway' } = options;
  checkOneOf('attemptSpans', attemptSpans, ['always', 'onRetry', 'never']);
  if (typeof api?.trace?.getTracer !== 'function') throw new RangeError('api must be the whole module @opentelemetry/api, 1.9.0 or later: import it as one object, `* as api`, and hand that in');
  if (!/^[a-z][\w.-]{0,63}$/i.test(prefix)) throw new RangeError(`prefix must be 1 to 64 letters, digits, _, . and -, first a letter, not ${JSON.stringify(prefix)}`);
  const terms: SpanTerms = { api, tracer: api.trace.getTracer('spillway'), attempts: attemptSpans, claw };
  const metrics = options.tools === undefined ? undefined : otelMetrics(api, prefix, meteredTools(options.tools), options.inspect);
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
    const call = new CallSpan(terms, event, turn?.context ?? parentOf(traceparent), links, needs);
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
        const named = workflowName === undefined ? {} : { 'gen_ai.workflow.name': workflowName };
        const attributes = { 'gen_ai.operation.name': 'invoke_workflow', ...named, 'spillway.turn.id': turnId, 'spillway.turn.nodes': event.nodes.length };
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
  return {
    next: (event: TraceEvent) => {
      if (event.source === 'call') ofCall(event);
      else if (event.source === 'turn') ofTurn(event);
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
