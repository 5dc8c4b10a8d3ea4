import * as api from '@opentelemetry/api';
import { CompositePropagator, W3CBaggagePropagator, W3CTraceContextPropagator } from '@opentelemetry/core';
import { TracerProvider } from '@opentelemetry/sdk-trace';
import {
  createSpillway,
  tool,
  type AnyTool,
  type Spillway,
  type SpillwayOptions,
  type ToolCallEnvelope,
  type ToolContext,
  type ToolPolicy,
} from 'spillway';
import { openTelemetrySink, type OpenTelemetrySink, type OpenTelemetrySinkOptions } from 'spillway/sinks/opentelemetry';
import { reset } from './kit.ts';
import { recorder, type SeenSpan } from './otel-kit.ts';

export const quick: Pick<ToolPolicy, 'retry'> = { retry: { maxAttempts: 3, initialDelayMs: 5, jitterPercent: 0 } };
export const propagator: CompositePropagator = new CompositePropagator({
  propagators: [new W3CTraceContextPropagator(), new W3CBaggagePropagator()],
});
export const TRACE_ID: string = '0af7651916cd43dd8448eb211c80319c';
export const CALLER: string = `00-${TRACE_ID}-b7ad6b7169203331-01`;

export interface Traced {
  readonly spillway: Spillway;
  readonly sink: OpenTelemetrySink;
  spans(): SeenSpan[];
  /** A span that a server makes of what came over the wire. */
  serve(name: string, carrier: object): api.Context;
}

/** A layer, its sink and a server's own tracer, all recorded in one place. */
export const traced = (options: SpillwayOptions, more: Partial<OpenTelemetrySinkOptions> = {}): Traced => {
  const { processor, finished } = recorder();
  const tracing = new TracerProvider({ spanProcessors: [processor] });
  const trace = {
    getTracer: (name: string) => tracing.getTracer(name),
    setSpan: api.trace.setSpan,
    setSpanContext: api.trace.setSpanContext,
  };
  const sink = openTelemetrySink({ api: { ...api, trace }, ...more });
  const spillway = createSpillway({ traceContext: sink.carrier, ...options });
  spillway.trace$.subscribe(sink);
  const tracer = tracing.getTracer('server');
  return {
    spillway,
    sink,
    spans: finished,
    serve: (name, carrier) => {
      const parent = propagator.extract(api.ROOT_CONTEXT, carrier, api.defaultTextMapGetter);
      tracer.startSpan(name, {}, parent).end();
      return parent;
    },
  };
};

export const envelope = (toolName: string, trace: ToolCallEnvelope['trace']): ToolCallEnvelope => ({
  contractVersion: '1.1',
  requestId: `call of ${toolName}`,
  toolName,
  toolNamespace: 'n',
  target: { sessionKey: 's', actorId: 'a' },
  payload: { version: '1.0', params: {} },
  transport: { dedupeMode: 'disabled', retryBudget: { maxAttempts: 3, maxElapsedMs: 60_000 } },
  control: {},
  trace,
});

/** A tool that fails as often as it is told to, and keeps what it was given. */
export const shaky = (fails: number): { readonly tool: AnyTool; readonly contexts: ToolContext[] } => {
  const contexts: ToolContext[] = [];
  const execute = (_: unknown, context: ToolContext): string => {
    contexts.push(context);
    if (contexts.length <= fails) throw reset();
    return 'ok';
  };
  return { tool: tool({ name: 'shaky', policy: { ...quick, effects: 'read' }, execute }), contexts };
};

export const idsOf = (spans: readonly SeenSpan[]): string[] => spans.map((span) => span.spanContext().spanId);
