/**
 * W3C trace context, as it goes over a wire: the headers `traceparent`, `tracestate` and, member by member, `baggage`.
 */
export interface TraceContext {
  /** The trace, and the span that is continued. */
  readonly traceparent: string;
  /** What vendors add to it. */
  readonly tracestate?: string;
  /** Baggage by name, as it is before it is encoded. */
  readonly baggage?: Readonly<Record<string, string>>;
}
