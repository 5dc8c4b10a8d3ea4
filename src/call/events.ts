import type { ToolResultEnvelope } from '../contract/envelope.ts';
import type { BreakerAtStart, ToolEvent, TraceEvent } from '../contract/event.ts';
import type { CallContext } from './context.ts';
import type { Trace, Unstamped } from '../layer/trace.ts';

type WithoutHeader<E> = E extends ToolEvent ? Omit<E, 'seq' | 'atMs' | 'source' | 'callId' | 'toolName' | 'turnId' | 'nodeId' | 'late'> : never;
/** What an event of a call says beside whose it is. */
export type EventBody = WithoutHeader<ToolEvent>;

/** An event of a call while it is made, in the order of its fields. */
interface CallEvent {
  seq: number;
  atMs: number;
  source: 'call';
  callId: string;
  toolName: string;
  turnId?: string;
  nodeId?: string;
  late?: true;
  type?: ToolEvent['type'];
  attempt?: number;
  dueAtMs?: number;
  durationMs?: number;
  result?: ToolResultEnvelope;
  toolCallId?: string;
  tags?: readonly string[];
  correlationId?: string;
  fromHook?: string;
  session?: string;
  tenant?: string;
  traceparent?: string;
  tracestate?: string;
  breaker?: BreakerAtStart;
  input?: unknown;
}

/** Of a success. */
const withoutOutput = ({ callId, toolName }: { readonly callId: string; readonly toolName: string }, { durationMs, attempts, status }: ToolResultEnvelope): ToolResultEnvelope => ({
  requestId: callId,
  fromCache: false,
  toolName,
  durationMs,
  attempts,
  status,
});

/** How a call tells of itself: to its caller's stream and to the trace, and without anyone who listens not at all. */
export class CallEvents {
  readonly #context: CallContext;
  /** The tool by whose name its events were found to hold no secret. */
  #innocentAs: string | undefined;

  constructor(context: CallContext) {
    this.#context = context;
  }

  /** @param breaker how that of its tool stands, if it has one */
  started(breaker: BreakerAtStart | undefined): void {
    if (!this.heard) return;
    const { toolCallId, tags, correlationId, fromHook, session, tenant, traceparent, tracestate, input } = this.#context.call;
    const { captures, trace } = this.#context.layer;
    const event = this.#event('call_started');
    if (toolCallId !== undefined) event.toolCallId = toolCallId;
    if (tags !== undefined) event.tags = tags;
    if (correlationId !== undefined) event.correlationId = correlationId;
    if (fromHook !== undefined) event.fromHook = fromHook;
    if (session !== undefined) event.session = session;
    if (tenant !== undefined) event.tenant = tenant;
    if (traceparent !== undefined) event.traceparent = traceparent;
    if (tracestate !== undefined) event.tracestate = tracestate;
    if (breaker !== undefined) event.breaker = breaker;
    if (captures) event.input = input;
    const named = toolCallId ?? correlationId ?? fromHook ?? session ?? tenant ?? traceparent ?? tracestate;
    const innocent = (text: string | undefined): boolean => text === undefined || trace.discretion.innocent(text);
    const ownBreaker = breaker === undefined || breaker.key === event.toolName || innocent(breaker.key);
    const wellKnown = named === undefined || [toolCallId, correlationId, fromHook, session, tenant, traceparent, tracestate].every(innocent);
    if (captures || tags !== undefined || !wellKnown || !ownBreaker) this.#publish(event, this.#context.startedAtMs);
    else this.#tell(event, this.#context.startedAtMs);
  }

  /** @param dueAtMs when it is cut off; `Infinity` without a limit */
  attemptStarted(atMs: number, dueAtMs: number): void {
    if (this.#context.ended || !this.heard) return;
    const event = this.#event('attempt_started');
    event.attempt = this.#context.attempts;
    if (dueAtMs !== Infinity) event.dueAtMs = dueAtMs;
    this.#tell(event, atMs);
  }

  /** @param own how many attempts at the tool in use that took */
  attemptSucceeded(durationMs: number, own: number, atMs: number): void {
    if (this.#context.ended || !this.heard) return;
    if (own > 1) return this.emit({ type: 'attempt_succeeded', attempt: this.#context.attempts, durationMs, message: `Tool succeeded on retry ${own}` }, atMs);
    const event = this.#event('attempt_succeeded');
    event.attempt = this.#context.attempts;
    event.durationMs = durationMs;
    this.#tell(event, atMs);
  }

  settled(result: ToolResultEnvelope): void {
    if (this.#context.ended || !this.heard) return;
    const { error, fromCache, retriedBy, recorded } = result;
    const isPlain = error === undefined && !fromCache && retriedBy === undefined && recorded === undefined;
    if (!isPlain || this.#context.layer.captures || this.#report !== undefined) return this.emit({ type: 'settled', result });
    const event = this.#event('settled');
    event.result = withoutOutput(event, result);
    // Nothing came between, neither a hook nor a store: its time was just taken.
    const atOnce = this.#context.layer.hooks === undefined && this.#context.call.dedupeMode === 'disabled';
    this.#tell(event, atOnce ? this.#context.startedAtMs + result.durationMs : undefined);
  }

  /** Whether anyone hears what it tells. */
  get heard(): boolean {
    return this.#context.site.report !== undefined || this.#context.layer.trace.observed;
  }

  /** Who hears of it beside the trace: nobody once the turn has settled without this call. */
  get #report(): ((event: TraceEvent) => void) | undefined {
    return this.#context.late ? undefined : (this.#context.site.report as ((event: TraceEvent) => void) | undefined);
  }

  /**
   * Tells an event to those who listen; without any, nothing is made.
   * @param atMs now, from one who has just read the clock
   */
  emit(body: EventBody, atMs?: number): void {
    if (this.#context.ended || !this.heard) return;
    this.#publish(Object.assign(this.#event(body.type), body), atMs);
  }

  /** Tells what has only numbers, words of ours and the names of the call: where these are no secrets, nothing is. */
  #tell(event: CallEvent, atMs?: number): void {
    const { trace } = this.#context.layer;
    this.#publish(event, atMs, trace.observed && this.#isInnocent(trace));
  }

  #publish(event: object, atMs?: number, innocent?: boolean): void {
    this.#context.layer.trace.publish(event as Unstamped, this.#report, atMs, innocent);
  }

  #isInnocent({ discretion, trustsIds }: Trace): boolean {
    if (this.#innocentAs === this.#context.toolName) return true;
    const { callId, foreignId, nodeId } = this.#context.call;
    const { turnId } = this.#context.site;
    if (!discretion.innocent(this.#context.toolName) || (nodeId !== undefined && !discretion.innocent(nodeId))) return false;
    if (turnId !== undefined && !trustsIds && !discretion.innocent(turnId)) return false;
    const innocent = (trustsIds && foreignId === undefined) || discretion.innocent(callId);
    if (innocent) this.#innocentAs = this.#context.toolName;
    return innocent;
  }

  /** Begins an event of the call. The places of its number and its time are there: it is made once, and not copied. */
  #event(type: ToolEvent['type']): CallEvent {
    const { nodeId } = this.#context.call;
    const { turnId } = this.#context.site;
    const event: CallEvent = { seq: 0, atMs: 0, source: 'call', callId: this.#context.call.callId, toolName: this.#context.toolName };
    if (turnId !== undefined && nodeId !== undefined) {
      event.turnId = turnId;
      event.nodeId = nodeId;
    }
    if (this.#context.late) event.late = true;
    event.type = type;
    return event;
  }
}
