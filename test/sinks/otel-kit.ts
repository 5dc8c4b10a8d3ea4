import { AsyncLocalStorage } from 'node:async_hooks';
import { createSpillway, type AnyTool, type Spillway } from 'spillway';
import {
  openTelemetrySink,
  type OpenTelemetrySink,
  type OpenTelemetrySinkOptions,
  type OtelApi,
  type OtelContext,
  type OtelSpan,
  type OtelTracer,
} from 'spillway/sinks/opentelemetry';

/** A finished span as both lines of the SDK have it; the parent's id went by another name in the first. */
export interface SeenSpan {
  readonly name: string;
  readonly attributes: Readonly<Record<string, unknown>>;
  readonly status: { readonly code: number; readonly message?: string };
  readonly links: ReadonlyArray<{
    readonly context: { readonly spanId: string };
    readonly attributes?: Readonly<Record<string, unknown>>;
  }>;
  readonly parentSpanContext?: { readonly spanId: string; readonly traceId: string };
  readonly startTime: readonly [number, number];
  readonly endTime: readonly [number, number];
  readonly events: ReadonlyArray<{ readonly name: string; readonly attributes?: Readonly<Record<string, unknown>> }>;
  readonly instrumentationScope: SeenScope;
  spanContext(): { readonly spanId: string; readonly traceId: string };
}

export interface SeenLog {
  readonly eventName?: string | undefined;
  readonly severityNumber?: number | undefined;
  readonly body?: unknown;
  readonly attributes: Readonly<Record<string, unknown>>;
  readonly instrumentationScope: SeenScope;
}

/** Whose telemetry it is. */
export interface SeenScope {
  readonly name: string;
  readonly version?: string | undefined;
  readonly schemaUrl?: string | undefined;
}

export interface SeenMetric {
  readonly descriptor: { readonly name: string; readonly unit: string };
  readonly dataPoints: ReadonlyArray<{
    readonly attributes: Readonly<Record<string, unknown>>;
    readonly value: unknown;
  }>;
}

/** One line of the SDK. */
export interface Sdk {
  readonly api: OtelApi & { readonly context: { setGlobalContextManager(manager: never): boolean; disable(): void } };
  /** A provider of tracers, and what it has seen. */
  tracing(): Pick<OtelApi['trace'], 'getTracer'> & { finished(): SeenSpan[]; started(): number };
  metering(): OtelApi['metrics'] & { collect(): Promise<SeenMetric[]> };
  /** A provider of loggers, and what was told to them. */
  logging(): NonNullable<OtelApi['logs']> & { emitted(): SeenLog[] };
}

/** A processor of spans, as both lines of the SDK take it, and what came to it. */
export function recorder(): {
  readonly processor: Readonly<
    Record<'onStart' | 'onEnd', (span: unknown) => void> & Record<'forceFlush' | 'shutdown', () => Promise<void>>
  >;
  finished(): SeenSpan[];
  started(): number;
} {
  const ended: SeenSpan[] = [];
  let started = 0;
  const done = (): Promise<void> => Promise.resolve();
  const processor = {
    onStart: () => void started++,
    onEnd: (span: unknown) => void ended.push(span as SeenSpan),
    forceFlush: done,
    shutdown: done,
  };
  return { processor, finished: () => ended, started: () => started };
}

/** A processor of log records, likewise. */
export function logRecorder(): {
  readonly processor: Readonly<
    Record<'onEmit', (record: unknown) => void> & Record<'forceFlush' | 'shutdown', () => Promise<void>>
  >;
  emitted(): SeenLog[];
} {
  const records: SeenLog[] = [];
  const done = (): Promise<void> => Promise.resolve();
  return {
    processor: { onEmit: (record) => void records.push(record as SeenLog), forceFlush: done, shutdown: done },
    emitted: () => records,
  };
}

/** What `@opentelemetry/context-async-hooks` does, on Node's own storage. */
export const contextManager = (root: OtelContext): object => {
  const storage = new AsyncLocalStorage<OtelContext>();
  const manager = {
    active: (): OtelContext => storage.getStore() ?? root,
    with: (context: OtelContext, work: (...args: unknown[]) => unknown, self: unknown, ...args: unknown[]): unknown =>
      storage.run(context, () => work.apply(self, args)),
    bind: (_: OtelContext, target: unknown): unknown => target,
    enable: (): object => manager,
    disable: (): object => manager,
  };
  return manager;
};

export interface Observed {
  readonly spillway: Spillway;
  readonly sink: OpenTelemetrySink;
  readonly api: OtelApi;
  readonly tracer: OtelTracer;
  /** Finished spans, in the order in which they began. */
  spans(): SeenSpan[];
  started(): number;
  metrics(): Promise<SeenMetric[]>;
  logs(): SeenLog[];
  /** What the meter was asked for. */
  meterScope(): unknown;
}

export function observed(
  sdk: Sdk,
  tools: readonly AnyTool[],
  options: Omit<OpenTelemetrySinkOptions, 'api'> = {},
  ofLayer: Parameters<typeof createSpillway>[0] = {},
): Observed {
  const tracing = sdk.tracing();
  const metering = sdk.metering();
  const logging = sdk.logging();
  let meterScope: unknown;
  const api: OtelApi = {
    trace: {
      getTracer: (...scope) => tracing.getTracer(...scope),
      setSpan: (context, span) => sdk.api.trace.setSpan(context, span),
      setSpanContext: (context, span) => sdk.api.trace.setSpanContext(context, span),
    },
    context: { active: () => sdk.api.context.active(), with: (context, work) => sdk.api.context.with(context, work) },
    metrics: {
      getMeter: (...scope) => {
        meterScope = scope;
        return metering.getMeter(...scope);
      },
    },
    logs: { getLogger: (...scope) => logging.getLogger(...scope) },
  };
  const spillway = createSpillway({ ...ofLayer, tools });
  const sink = openTelemetrySink({ api, ...options });
  spillway.trace$.subscribe(sink);
  const at = ({ startTime: [seconds, nanos] }: SeenSpan): number => seconds * 1e3 + nanos / 1e6;
  return {
    spillway,
    sink,
    api,
    tracer: tracing.getTracer('host'),
    spans: () => tracing.finished().toSorted((a, b) => at(a) - at(b)),
    started: () => tracing.started(),
    metrics: () => metering.collect(),
    logs: () => logging.emitted(),
    meterScope: () => meterScope,
  };
}

export const parentOf = (span: SeenSpan | undefined, spans: readonly SeenSpan[]): string | undefined =>
  spans.find((other) => other.spanContext().spanId === span?.parentSpanContext?.spanId)?.name;
export const named = (spans: readonly SeenSpan[], name: string): SeenSpan[] =>
  spans.filter((span) => span.name === name);
export const linked = (span: SeenSpan | undefined, spans: readonly SeenSpan[]): unknown[] =>
  (span?.links ?? []).map(({ context, attributes }) => [
    attributes?.['spillway.link'],
    spans.find((other) => other.spanContext().spanId === context.spanId)?.attributes['spillway.call.id'],
  ]);
/** Runs something with a span of the host's own active. */
export const within = <T>({ api, tracer }: Observed, name: string, work: () => T): T => {
  const span: OtelSpan = tracer.startSpan(name, {}, api.context.active());
  try {
    return api.context.with(api.trace.setSpan(api.context.active(), span), work) as T;
  } finally {
    span.end();
  }
};
