/**
 * What of `@opentelemetry/api` is used, from 1.9.0 on. The host hands its own copy in, so that this package needs none and there are not two.
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
  setStatus(status: { code: number; message?: string }): unknown;
  end(endTime?: number): void;
}

export interface OtelTracer {
  startSpan(name: string, options: { startTime?: number; attributes?: OtelAttributes; links?: OtelLink[] }, context: OtelContext): OtelSpan;
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

export interface OtelMeter {
  createCounter(name: string, options?: OtelInstrumentOptions): { add(value: number, attributes?: OtelAttributes): void };
  createHistogram(name: string, options?: OtelInstrumentOptions): { record(value: number, attributes?: OtelAttributes): void };
  createObservableGauge(name: string, options?: OtelInstrumentOptions): OtelObservable;
}

export interface OtelApi {
  readonly trace: {
    getTracer(name: string): OtelTracer;
    setSpan(context: OtelContext, span: OtelSpan): OtelContext;
    setSpanContext(context: OtelContext, spanContext: OtelSpanContext): OtelContext;
  };
  readonly context: {
    active(): OtelContext;
    with(context: OtelContext, work: () => unknown): unknown;
  };
  readonly metrics: { getMeter(name: string): OtelMeter };
}

/** `SpanStatusCode.ERROR`. */
export const STATUS_ERROR = 2;

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
