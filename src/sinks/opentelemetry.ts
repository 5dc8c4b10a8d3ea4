import type { TraceEvent } from '../contract/event.ts';
import type { TraceContextSource } from '../contract/tool.ts';
import { checkKeys, checkOneOf } from '../policy/check.ts';
import { SCOPE, carrierOf, toTraceparent, type OtelApi } from './opentelemetry/api.ts';
import { otelMetrics } from './opentelemetry/metrics.ts';
import { Spans } from './opentelemetry/spans.ts';
import { ToolFacts, type ToolSource, type ToolType } from './opentelemetry/tools.ts';
import type { TraceSink } from './sink.ts';
import { meteredTools, type Inspect, type MeteredTool } from './prometheus/tool-meters.ts';

export type {
  OtelApi,
  OtelAttributes,
  OtelBaggage,
  OtelBaggageEntry,
  OtelContext,
  OtelCounter,
  OtelHistogram,
  OtelInstrumentOptions,
  OtelLink,
  OtelLogRecord,
  OtelLogger,
  OtelMeter,
  OtelObservable,
  OtelObserver,
  OtelScopeOptions,
  OtelSpan,
  OtelSpanContext,
  OtelTraceState,
  OtelTracer,
} from './opentelemetry/api.ts';
export type { McpSessionFacts, ToolSource, ToolType } from './opentelemetry/tools.ts';
export type { Inspect, LayerState, ListedBreaker, MeteredTool, StoreFill } from './prometheus/tool-meters.ts';

/** The API that telemetry goes to, and what of a trace becomes spans, metrics and log records. */
export interface OpenTelemetrySinkOptions {
  /** The whole module `@opentelemetry/api`, 1.9.0 or later, as one object. */
  readonly api: OtelApi;
  /**
   * The tools that metrics count by their names; others count as `__other__`. Without a list there are no metrics, only
   * spans and log records. A tool's `description` is on its spans as `gen_ai.tool.description`.
   */
  readonly tools?: ReadonlyArray<string | MeteredTool>;
  /**
   * Providers whose tools are described on spans; over MCP a call's span has `mcp.method.name`, `mcp.session.id` and
   * `network.transport`, too.
   */
  readonly providers?: readonly ToolSource[];
  /** What `gen_ai.tool.type` says of a tool. Default `function` for all. */
  readonly toolType?: (toolName: string) => ToolType;
  /**
   * Read at each collection of metrics, for the size of the store, the states of breakers, the retries left and the
   * events lost: `() => spillway.inspect()`. Default: these are left out.
   */
  readonly inspect?: Inspect;
  /**
   * A span for each attempt (`always`, the default), for those of calls that were retried, or none. With `onRetry` a
   * first attempt's span comes when it has failed.
   */
  readonly attemptSpans?: 'always' | 'onRetry' | 'never';
  /**
   * CLAW's words as well: spans `tool_execution` and `retry_delay`, attributes `tool.name`, `idempotency.key` (its
   * fingerprint), `retry.attempt`, `breaker.state`. Default false.
   */
  readonly claw?: boolean;
  /**
   * What runs the turns, in `gen_ai.agent.name`, which names workflows as well since the GenAI conventions v0.1.0: one
   * of few names.
   */
  readonly workflowName?: string;
  /** What the names of metrics begin with. Default `spillway`. */
  readonly prefix?: string;
}

/** A sink that makes spans, and gives their context to what runs within a call. */
export interface OpenTelemetrySink extends TraceSink {
  /**
   * Runs `work` in the context of a call's present attempt, so that spans made in it belong under that attempt. For a
   * call that is not known, in the active context.
   */
  run<T>(callId: string, work: () => T): T;
  /**
   * The W3C trace context of a call's present attempt, for what goes over a wire; `undefined` for a call that is not
   * known.
   */
  traceparent(callId: string): string | undefined;
  /**
   * The W3C trace context of an attempt, from its own span: give it to `createSpillway` as `traceContext`, and a
   * server's spans come under the attempt that called it. With it goes the baggage of the context in which the call was
   * made. Where an attempt has no span, it is that of its call; of a call that is not known there is none. It needs no
   * `this`.
   */
  readonly carrier: TraceContextSource;
}

const OPTION_KEYS = [
  'api',
  'tools',
  'providers',
  'toolType',
  'inspect',
  'attemptSpans',
  'claw',
  'workflowName',
  'prefix',
];

/**
 * Makes OpenTelemetry spans, metrics and log records of a trace, by the GenAI semantic conventions v0.1.0:
 * `execute_tool <tool>` for a call, one span below it for each attempt, `invoke_workflow` for a turn. A call that a
 * retry saved has no error. Who waited for another's result is linked to that call, and a node of a plan to those it
 * needed. A breaker's change is a log record, and an event on the spans of the calls that it guards just then.
 *
 * Spans belong under the caller's `traceparent`, else under the span that is active where the call is made: subscribe
 * it directly, not through anything that waits.
 *
 * @param options the API, and what is wanted
 * @throws RangeError for an option out of range
 *
 * @example
 * declare const api: OtelApi; // the module @opentelemetry/api
 * const otel = openTelemetrySink({ api, tools: [flights, hotels] });
 * // `traceContext` puts what servers do under the attempt that called them.
 * const layer = createSpillway({ tools: [flights, hotels], traceContext: otel.carrier });
 * layer.trace$.subscribe(otel);
 */
export function openTelemetrySink(options: OpenTelemetrySinkOptions): OpenTelemetrySink {
  checkKeys('openTelemetrySink', options, OPTION_KEYS);
  const { api, attemptSpans = 'always', claw = false, workflowName, prefix = 'spillway', inspect } = options;
  checkOneOf('attemptSpans', attemptSpans, ['always', 'onRetry', 'never']);
  if (typeof api?.trace?.getTracer !== 'function') {
    const rule = 'api must be the whole module @opentelemetry/api, 1.9.0 or later';
    throw new RangeError(`${rule}: import it as one object, \`* as api\`, and hand that in`);
  }
  if (!/^[a-z][\w.-]{0,63}$/i.test(prefix)) {
    const rule = 'prefix must be 1 to 64 letters, digits, _, . and -, first a letter';
    throw new RangeError(`${rule}, not ${JSON.stringify(prefix)}`);
  }
  const tools = options.tools === undefined ? undefined : meteredTools(options.tools);
  const facts = new ToolFacts(tools, options.providers, options.toolType);
  const terms = { api, tracer: api.trace.getTracer(...SCOPE), attempts: attemptSpans, claw };
  const spans = new Spans({ terms, facts, agentName: workflowName, logger: api.logs?.getLogger(...SCOPE) });
  const metrics =
    tools === undefined ? undefined : otelMetrics({ api, prefix, tools, facts, inspect, agentName: workflowName });
  return {
    next: (event: TraceEvent) => {
      spans.next(event);
      metrics?.next(event);
    },
    run: <T>(callId: string, work: () => T): T => {
      const context = spans.call(callId)?.context;
      return context === undefined ? work() : (api.context.with(context, work) as T);
    },
    traceparent: (callId) => {
      const span = spans.call(callId)?.currentSpan;
      return span === undefined ? undefined : toTraceparent(span.spanContext());
    },
    carrier: (callId, attempt) => {
      const call = spans.call(callId);
      return call === undefined ? undefined : carrierOf(api, call.spanOf(attempt).spanContext(), call.context);
    },
  };
}
