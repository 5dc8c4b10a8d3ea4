import type { RetryRecord, ToolResultEnvelope } from '../contract/envelope.ts';
import type { ToolEvent, TraceEvent } from '../contract/event.ts';
import type { Preparation } from '../contract/hooks.ts';
import type { Runtime } from '../contract/runtime.ts';
import type { DedupeExecution } from '../contract/store.ts';
import type { Lease } from '../operators/lease.ts';
import type { Layer } from './layer.ts';
import type { Call } from './request.ts';
import type { History } from './result.ts';
import type { Trace, Unstamped } from './trace.ts';

/** What the calls of one turn have in common; a call of its own has a site of its own. */
export interface CallSite {
  readonly runtime: Runtime;
  readonly turnId?: string;
  /** The turn's deadline, monotonic. The turn keeps it; the call only decides by it. */
  readonly deadlineMs: number;
  readonly signal?: AbortSignal;
  /** Hears the events, beside the trace. */
  readonly report?: (event: ToolEvent) => void;
}

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
  durationMs?: number;
  result?: ToolResultEnvelope;
  toolCallId?: string;
  tags?: readonly string[];
  correlationId?: string;
  fromHook?: string;
  session?: string;
  tenant?: string;
  traceparent?: string;
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

/** Attempts that a record in the store tells of, the last ones. */
const ATTEMPTS_KEPT = 20;

const NO_RETRIES: readonly RetryRecord[] = [];

/** One call: where it happens, what it has done so far, and how it tells of it. */
export class CallRecord {
  readonly layer: Layer;
  readonly site: CallSite;
  /** As it was asked for, or as a hook prepared it. */
  call: Call;
  readonly startedAtMs: number;
  /** Physical executions, those of alternatives included. */
  attempts = 0;
  /** Its tool ran. */
  executed = false;
  /** It may have taken effect already, whatever becomes of it. */
  uncertain = false;
  /** Set by the turn when it has settled without this call. */
  late = false;
  /** It has settled or was abandoned: nothing more is told of it. */
  ended = false;
  /** The tool in use. */
  toolName: string;
  /** The claim of its key, while it holds one: each attempt needs it to be valid. */
  lease: Lease | undefined;
  /** Goes straight through to the tool: nothing is decided about its failure. */
  bare = false;
  /** What a resource can know the call by: its idempotency key, where it has one. */
  callKey: string;
  /** Its hooks have had their say about an attempt. */
  hooked = false;
  /** The tool by whose name its events were found to hold no secret. */
  #innocentAs: string | undefined;
  #retriedBy: RetryRecord[] | undefined;
  #attempts: Array<DedupeExecution['attempts'][number]> | undefined;

  constructor(layer: Layer, site: CallSite, call: Call) {
    this.layer = layer;
    this.site = site;
    this.call = call;
    this.toolName = call.toolName;
    this.callKey = call.idempotencyKey ?? call.callId;
    this.startedAtMs = site.runtime.now();
  }

  /** Until the call's or its turn's deadline. */
  get remainingMs(): number {
    const deadlineMs = Math.min(this.call.deadlineMs, this.site.deadlineMs);
    return deadlineMs === Infinity ? Infinity : deadlineMs - this.site.runtime.now();
  }

  get history(): History {
    return this.historyAt(this.site.runtime.now());
  }

  historyAt(atMs: number): History {
    return {
      requestId: this.call.callId,
      toolName: this.toolName,
      durationMs: Math.max(0, atMs - this.startedAtMs),
      attempts: this.attempts,
      retriedBy: this.#retriedBy ?? NO_RETRIES,
    };
  }

  recordRetry(record: RetryRecord): void {
    (this.#retriedBy ??= []).push(record);
  }

  /** Takes what a hook changed. The caller's own key goes before the hook's. */
  prepare({ idempotencyKey, ...changes }: Preparation): void {
    const { call } = this;
    const keyed = idempotencyKey !== undefined && call.idempotencyKey === undefined;
    // An envelope says by itself whether it is deduped; the short form is once it has a key.
    const dedupeMode = keyed && call.toolNamespace === undefined ? 'enforced' : call.dedupeMode;
    this.call = { ...call, ...('input' in changes ? { input: changes.input } : {}), ...(keyed ? { idempotencyKey, dedupeMode } : {}) };
    this.callKey = this.call.idempotencyKey ?? call.callId;
  }

  /** From now on it is the tool's own call: hints about how to guard it do not count. */
  goBare(): void {
    const { hints: _, ...call } = this.call;
    this.call = call;
    this.bare = true;
  }

  /** Notes an attempt that ended, for the store; without a claim nobody asks. */
  recordAttempt(durationMs: number, failure?: { readonly retriable: boolean; readonly errorCode: string }): void {
    if (this.lease === undefined) return;
    const finishedAtMs = this.site.runtime.wallNow();
    const end = failure === undefined ? { status: 'success' as const, retriable: false } : { status: 'error' as const, ...failure };
    (this.#attempts ??= []).push({ startedAtMs: Math.max(0, finishedAtMs - durationMs), finishedAtMs, ...end });
  }

  get execution(): DedupeExecution | undefined {
    return this.#attempts === undefined ? undefined : { attemptCount: this.attempts, attempts: this.#attempts.slice(-ATTEMPTS_KEPT) };
  }

  emitStart(): void {
    if (!this.heard) return;
    const { toolCallId, tags, correlationId, fromHook, session, tenant, traceparent, input } = this.call;
    const { captures, trace } = this.layer;
    const event = this.#event('call_started');
    if (toolCallId !== undefined) event.toolCallId = toolCallId;
    if (tags !== undefined) event.tags = tags;
    if (correlationId !== undefined) event.correlationId = correlationId;
    if (fromHook !== undefined) event.fromHook = fromHook;
    if (session !== undefined) event.session = session;
    if (tenant !== undefined) event.tenant = tenant;
    if (traceparent !== undefined) event.traceparent = traceparent;
    if (captures) event.input = input;
    const named = toolCallId ?? correlationId ?? fromHook ?? session ?? tenant ?? traceparent;
    const innocent = (text: string | undefined): boolean => text === undefined || trace.discretion.innocent(text);
    const wellKnown = named === undefined || [toolCallId, correlationId, fromHook, session, tenant, traceparent].every(innocent);
    if (captures || tags !== undefined || !wellKnown) this.#publish(event, this.startedAtMs);
    else this.#tell(event, this.startedAtMs);
  }

  emitAttemptStarted(atMs: number): void {
    if (this.ended || !this.heard) return;
    const event = this.#event('attempt_started');
    event.attempt = this.attempts;
    this.#tell(event, atMs);
  }

  /** @param own how many attempts at the tool in use that took */
  emitAttemptSucceeded(durationMs: number, own: number, atMs: number): void {
    if (this.ended || !this.heard) return;
    if (own > 1) return this.emit({ type: 'attempt_succeeded', attempt: this.attempts, durationMs, message: `Tool succeeded on retry ${own}` }, atMs);
    const event = this.#event('attempt_succeeded');
    event.attempt = this.attempts;
    event.durationMs = durationMs;
    this.#tell(event, atMs);
  }

  emitSettled(result: ToolResultEnvelope): void {
    if (this.ended || !this.heard) return;
    const { error, fromCache, retriedBy } = result;
    if (error !== undefined || fromCache || retriedBy !== undefined || this.layer.captures || this.#report !== undefined) return this.emit({ type: 'settled', result });
    const event = this.#event('settled');
    event.result = withoutOutput(event, result);
    // Nothing came between, neither a hook nor a store: its time was just taken.
    const atOnce = this.layer.hooks === undefined && this.call.dedupeMode === 'disabled';
    this.#tell(event, atOnce ? this.startedAtMs + result.durationMs : undefined);
  }

  /** Whether anyone hears what it tells. */
  get heard(): boolean {
    return this.site.report !== undefined || this.layer.trace.observed;
  }

  /** Who hears of it beside the trace: nobody once the turn has settled without this call. */
  get #report(): ((event: TraceEvent) => void) | undefined {
    return this.late ? undefined : (this.site.report as ((event: TraceEvent) => void) | undefined);
  }

  /**
   * Tells an event to those who listen; without any, nothing is made.
   * @param atMs now, from one who has just read the clock
   */
  emit(body: EventBody, atMs?: number): void {
    if (this.ended || !this.heard) return;
    this.#publish(Object.assign(this.#event(body.type), body), atMs);
  }

  /** Tells what has only numbers, words of ours and the names of the call: where these are no secrets, nothing is. */
  #tell(event: CallEvent, atMs?: number): void {
    const { trace } = this.layer;
    this.#publish(event, atMs, trace.observed && this.#isInnocent(trace));
  }

  #publish(event: object, atMs?: number, innocent?: boolean): void {
    this.layer.trace.publish(event as Unstamped, this.#report, atMs, innocent);
  }

  #isInnocent({ discretion, trustsIds }: Trace): boolean {
    if (this.#innocentAs === this.toolName) return true;
    const { callId, foreignId, nodeId } = this.call;
    const { turnId } = this.site;
    if (!discretion.innocent(this.toolName) || (nodeId !== undefined && !discretion.innocent(nodeId))) return false;
    if (turnId !== undefined && !trustsIds && !discretion.innocent(turnId)) return false;
    const innocent = (trustsIds && foreignId === undefined) || discretion.innocent(callId);
    if (innocent) this.#innocentAs = this.toolName;
    return innocent;
  }

  /** Begins an event of the call. The places of its number and its time are there: it is made once, and not copied. */
  #event(type: ToolEvent['type']): CallEvent {
    const { nodeId } = this.call;
    const { turnId } = this.site;
    const event: CallEvent = { seq: 0, atMs: 0, source: 'call', callId: this.call.callId, toolName: this.toolName };
    if (turnId !== undefined && nodeId !== undefined) {
      event.turnId = turnId;
      event.nodeId = nodeId;
    }
    if (this.late) event.late = true;
    event.type = type;
    return event;
  }
}
