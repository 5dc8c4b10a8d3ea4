import type { TraceContext } from '../../contract/tool.ts';
import { PACKAGE_VERSION } from '../version.ts';

/**
 * What of `@opentelemetry/api` is used, from 1.9.0 on. The host hands its own copy in, so that this package needs none
 * and there are not two.
 */
export interface OtelContext {
  /** The value under a key; `undefined` where there is none. */
  getValue(key: symbol): unknown;
  /** A context that also has this value. */
  setValue(key: symbol, value: unknown): OtelContext;
  /** A context that lacks the key. */
  deleteValue(key: symbol): OtelContext;
}

/** By what other processes know a span. */
export interface OtelSpanContext {
  /** 32 hexadecimal digits, not all 0. */
  readonly traceId: string;
  /** 16 hexadecimal digits, not all 0. */
  readonly spanId: string;
  /** Bit 0 says whether the trace is sampled. */
  readonly traceFlags: number;
  /** Whether the span is another process's. */
  readonly isRemote?: boolean;
  /** What vendors add to it, if they do. */
  readonly traceState?: OtelTraceState;
}

/** What vendors add to a trace context. */
export interface OtelTraceState {
  /** Gives the value of a vendor's key. */
  get(key: string): string | undefined;
  /** Gives a copy with a value set. */
  set(key: string, value: string): OtelTraceState;
  /** Gives a copy without a key. */
  unset(key: string): OtelTraceState;
  /** Gives the header's text. */
  serialize(): string;
}

/** A member of baggage. */
export interface OtelBaggageEntry {
  /** Its value, as it is before it is encoded. */
  readonly value: string;
}

/** Baggage of a context. */
export interface OtelBaggage {
  /** Gives all of its members. */
  getAllEntries(): Array<[string, OtelBaggageEntry]>;
}

/** Attributes by name, in the value types that spans, metrics and logs all take. */
export type OtelAttributes = Readonly<Record<string, string | number | boolean | string[]>>;

/** A span that another span refers to without being its child. */
export interface OtelLink {
  /** The span that is referred to. */
  readonly context: OtelSpanContext;
  /** What the link means. */
  readonly attributes?: OtelAttributes;
}

/** What is used of a `Span`. */
export interface OtelSpan {
  /** By what other processes know the span. */
  spanContext(): OtelSpanContext;
  /** Adds attributes; a later value replaces an earlier one. */
  setAttributes(attributes: OtelAttributes): unknown;
  /** Adds a link after the span's start. */
  addLink(link: OtelLink): unknown;
  /** Adds an event; `time` is in epoch milliseconds. */
  addEvent(name: string, attributes?: OtelAttributes, time?: number): unknown;
  /** Says how the span's work ended. It is set for failures alone. */
  setStatus(status: {
    /** `SpanStatusCode`: 2 is `ERROR`. */
    code: number;
    /** The error's text, redacted as in the trace. */
    message?: string;
  }): unknown;
  /** Ends the span; `endTime` is in epoch milliseconds. */
  end(endTime?: number): void;
}

/** What is used of a `Tracer`. */
export interface OtelTracer {
  /** Starts a span under the one in `context`, or a new trace where there is none. */
  startSpan(
    name: string,
    options: {
      /** Epoch milliseconds. */
      startTime?: number;
      /** The attributes that are known at the start, by which samplers decide. */
      attributes?: OtelAttributes;
      /** Spans of other traces or branches that this one follows from. */
      links?: OtelLink[];
    },
    context: OtelContext,
  ): OtelSpan;
}

/** What an instrument says of itself. */
export interface OtelInstrumentOptions {
  /** What is measured, in a sentence. */
  description?: string;
  /** The unit, as UCUM writes it: `s`, or what is counted in braces, such as `{call}`. */
  unit?: string;
  /** A hint for views that set nothing else. */
  advice?: {
    /** The upper edges of a histogram's buckets, in the instrument's unit. */
    explicitBucketBoundaries?: number[];
  };
}

/** Takes the values of an observable instrument while it is collected. */
export interface OtelObserver {
  /** Reports the present value of one series. */
  observe(value: number, attributes?: OtelAttributes): void;
}

/** An instrument that is read when metrics are collected. */
export interface OtelObservable {
  /** Has a function called at each collection, which reports through its `observer`. */
  addCallback(callback: (observer: OtelObserver) => void | Promise<void>): void;
}

/** A sum that only grows. */
export interface OtelCounter {
  /** Adds to one series; `value` is not negative. */
  add(value: number, attributes?: OtelAttributes): void;
}

/** A distribution of values. */
export interface OtelHistogram {
  /** Records one value, in the instrument's unit. */
  record(value: number, attributes?: OtelAttributes): void;
}

/** What is used of a `Meter`. */
export interface OtelMeter {
  /** Makes a counter. */
  createCounter(name: string, options?: OtelInstrumentOptions): OtelCounter;
  /** Makes a histogram. */
  createHistogram(name: string, options?: OtelInstrumentOptions): OtelHistogram;
  /** Makes a sum that is read when metrics are collected. */
  createObservableCounter(name: string, options?: OtelInstrumentOptions): OtelObservable;
  /** Makes a present value that is read when metrics are collected. */
  createObservableGauge(name: string, options?: OtelInstrumentOptions): OtelObservable;
}

/** One log record, of which this package makes one kind: a breaker's change. */
export interface OtelLogRecord {
  /** What kind of event it is. */
  eventName?: string;
  /** `SeverityNumber`: 9 is `INFO`, 13 is `WARN`. */
  severityNumber?: number;
  /** The severity in a word. */
  severityText?: string;
  /** What happened, in a sentence. */
  body?: string;
  /** Which breaker, and from which state to which. */
  attributes?: OtelAttributes;
}

/** What is used of a `Logger`. */
export interface OtelLogger {
  /** Writes a record, in the active context. */
  emit(record: OtelLogRecord): void;
}

/** What a tracer, a meter or a logger says of the telemetry that it makes. */
export interface OtelScopeOptions {
  /** The version of the semantic conventions that names follow. */
  schemaUrl?: string;
}

/** What is used of the module `@opentelemetry/api`, from 1.9.0 on: hand it in as one object. */
export interface OtelApi {
  /** The tracing API. */
  readonly trace: {
    /** Gives the tracer of a scope. */
    getTracer(name: string, version?: string, options?: OtelScopeOptions): OtelTracer;
    /** A context in which the span is the active one. */
    setSpan(context: OtelContext, span: OtelSpan): OtelContext;
    /** A context in which a span of another process is the active one. */
    setSpanContext(context: OtelContext, spanContext: OtelSpanContext): OtelContext;
  };
  /** The context API. */
  readonly context: {
    /** The context that is active where it is called. */
    active(): OtelContext;
    /** Runs `work` with the context active, and gives what it gives. */
    with(context: OtelContext, work: () => unknown): unknown;
  };
  /** The baggage API: what the host has put into its context goes out with each attempt. */
  readonly propagation?: {
    /** Gives the baggage of a context. */
    getBaggage(context: OtelContext): OtelBaggage | undefined;
  };
  /** Reads a `tracestate`. Without it the caller's goes no further. */
  readonly createTraceState?: (tracestate: string) => OtelTraceState;
  /** The metrics API. */
  readonly metrics: {
    /** Gives the meter of a scope. */
    getMeter(name: string, version?: string, options?: OtelScopeOptions): OtelMeter;
  };
  /** Part of the API from 1.10 on; before, `logs` of `@opentelemetry/api-logs`. Without it no log records are made. */
  readonly logs?: {
    /** Gives the logger of a scope. */
    getLogger(name: string, version?: string, options?: OtelScopeOptions): OtelLogger;
  };
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
export function carrierOf(
  { propagation }: OtelApi,
  span: OtelSpanContext,
  context: OtelContext,
): TraceContext | undefined {
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
