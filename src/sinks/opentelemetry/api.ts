import type { TraceContext } from '../../contract/tool.ts';
import { PACKAGE_VERSION } from '../version.ts';

/**
 * What of `@opentelemetry/api` is used, from 1.9.0 on. The host hands its own copy in, so that this package needs none
 * and there are not two.
 */
export interface OtelContext {
  getValue(key: symbol): unknown;
  setValue(key: symbol, value: unknown): OtelContext;
  deleteValue(key: symbol): OtelContext;
}

export interface OtelSpanContext {
  readonly traceId: string;
  readonly spanId: string;
  readonly traceFlags: number;
  readonly isRemote?: boolean;
  readonly traceState?: OtelTraceState;
}

/** What vendors add to a trace context. */
export interface OtelTraceState {
  get(key: string): string | undefined;
  set(key: string, value: string): OtelTraceState;
  unset(key: string): OtelTraceState;
  serialize(): string;
}

export interface OtelBaggage {
  getAllEntries(): Array<[string, { readonly value: string }]>;
}

export type OtelAttributes = Readonly<Record<string, string | number | boolean | string[]>>;

export interface OtelLink {
  readonly context: OtelSpanContext;
  readonly attributes?: OtelAttributes;
}

export interface OtelSpan {
  spanContext(): OtelSpanContext;
  setAttributes(attributes: OtelAttributes): unknown;
  addLink(link: OtelLink): unknown;
  addEvent(name: string, attributes?: OtelAttributes, time?: number): unknown;
  setStatus(status: { code: number; message?: string }): unknown;
  end(endTime?: number): void;
}

export interface OtelTracer {
  startSpan(
    name: string,
    options: { startTime?: number; attributes?: OtelAttributes; links?: OtelLink[] },
    context: OtelContext,
  ): OtelSpan;
}

export interface OtelInstrumentOptions {
  description?: string;
  unit?: string;
  advice?: { explicitBucketBoundaries?: number[] };
}

export interface OtelObserver {
  observe(value: number, attributes?: OtelAttributes): void;
}

export interface OtelObservable {
  addCallback(callback: (observer: OtelObserver) => void | Promise<void>): void;
}

export interface OtelCounter {
  add(value: number, attributes?: OtelAttributes): void;
}

export interface OtelHistogram {
  record(value: number, attributes?: OtelAttributes): void;
}

export interface OtelMeter {
  createCounter(name: string, options?: OtelInstrumentOptions): OtelCounter;
  createHistogram(name: string, options?: OtelInstrumentOptions): OtelHistogram;
  createObservableCounter(name: string, options?: OtelInstrumentOptions): OtelObservable;
  createObservableGauge(name: string, options?: OtelInstrumentOptions): OtelObservable;
}

export interface OtelLogRecord {
  eventName?: string;
  severityNumber?: number;
  severityText?: string;
  body?: string;
  attributes?: OtelAttributes;
}

export interface OtelLogger {
  emit(record: OtelLogRecord): void;
}

/** Of what a tracer, a meter or a logger is made: whose telemetry it is, and by which names. */
export interface OtelScopeOptions {
  schemaUrl?: string;
}

export interface OtelApi {
  readonly trace: {
    getTracer(name: string, version?: string, options?: OtelScopeOptions): OtelTracer;
    setSpan(context: OtelContext, span: OtelSpan): OtelContext;
    setSpanContext(context: OtelContext, spanContext: OtelSpanContext): OtelContext;
  };
  readonly context: {
    active(): OtelContext;
    with(context: OtelContext, work: () => unknown): unknown;
  };
  /** Baggage that the host has put into its context goes out with each attempt. */
  readonly propagation?: { getBaggage(context: OtelContext): OtelBaggage | undefined };
  /** Reads a `tracestate`; without it the caller's ends here. */
  readonly createTraceState?: (tracestate: string) => OtelTraceState;
  readonly metrics: { getMeter(name: string, version?: string, options?: OtelScopeOptions): OtelMeter };
  /** Part of the API from 1.10 on; before, `logs` of `@opentelemetry/api-logs`. */
  readonly logs?: { getLogger(name: string, version?: string, options?: OtelScopeOptions): OtelLogger };
}

/** `SpanStatusCode.ERROR`. */
export const STATUS_ERROR = 2;
/** `SeverityNumber.INFO` and `SeverityNumber.WARN`. */
export const SEVERITY = { INFO: 9, WARN: 13 } as const;

/**
 * Whose telemetry it is, and by which names: those of the GenAI semantic conventions v0.1.0, which build on version
 * 1.45.0 of the general ones. The schema is that of the latter: the former's is of a family that no backend knows how
 * to fetch yet.
 */
export const SCOPE: readonly [name: string, version: string, options: OtelScopeOptions] = [
  'spillway',
  PACKAGE_VERSION,
  { schemaUrl: 'https://opentelemetry.io/schemas/1.45.0' },
];

const TRACEPARENT = /^[\da-f]{2}-(?!0{32})([\da-f]{32})-(?!0{16})([\da-f]{16})-([\da-f]{2})(?:-|$)/;

/** The W3C header of a remote span, read; nothing for one that is none. */
export function fromTraceparent(header: string): OtelSpanContext | undefined {
  const [, traceId, spanId, flags] = TRACEPARENT.exec(header) ?? [];
  if (traceId === undefined || spanId === undefined || flags === undefined || header.startsWith('ff')) return undefined;
  return { traceId, spanId, traceFlags: Number.parseInt(flags, 16) & 1, isRemote: true };
}

/** The W3C header of a span. */
export function toTraceparent({ traceId, spanId, traceFlags }: OtelSpanContext): string {
  return `00-${traceId}-${spanId}-${(traceFlags & 1).toString(16).padStart(2, '0')}`;
}

/** The W3C trace context of a span; nothing for one that is none, as a tracer without an SDK makes them. */
export function carrierOf({ propagation }: OtelApi, span: OtelSpanContext, context: OtelContext): TraceContext | undefined {
  const traceparent = toTraceparent(span);
  if (fromTraceparent(traceparent) === undefined) return undefined;
  const tracestate = span.traceState?.serialize() ?? '';
  const members = propagation?.getBaggage(context)?.getAllEntries() ?? [];
  return {
    traceparent,
    ...(tracestate === '' ? {} : { tracestate }),
    ...(members.length === 0 ? {} : { baggage: Object.fromEntries(members.map(([name, { value }]) => [name, value])) }),
  };
}
