import type { RetryRecord } from '../contract/envelope.ts';
import type { ToolEvent, TraceEvent } from '../contract/event.ts';
import type { Preparation } from '../contract/hooks.ts';
import type { Runtime } from '../contract/runtime.ts';
import type { DedupeExecution } from '../contract/store.ts';
import type { Lease } from '../operators/lease.ts';
import type { Layer } from './layer.ts';
import type { Call } from './request.ts';
import type { History } from './result.ts';
import type { Unstamped } from './trace.ts';

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
type EventBody = WithoutHeader<ToolEvent>;

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
    return {
      requestId: this.call.callId,
      toolName: this.toolName,
      durationMs: Math.max(0, this.site.runtime.now() - this.startedAtMs),
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
    if (!this.#heard) return;
    const { toolCallId, tags, correlationId, fromHook, session, tenant, traceparent, input } = this.call;
    this.emit(
      {
        type: 'call_started',
        ...(toolCallId === undefined ? undefined : { toolCallId }),
        ...(tags === undefined ? undefined : { tags }),
        ...(correlationId === undefined ? undefined : { correlationId }),
        ...(fromHook === undefined ? undefined : { fromHook }),
        ...(session === undefined ? undefined : { session }),
        ...(tenant === undefined ? undefined : { tenant }),
        ...(traceparent === undefined ? undefined : { traceparent }),
        ...(this.layer.captures ? { input } : undefined),
      },
      this.startedAtMs,
    );
  }

  get #heard(): boolean {
    return this.site.report !== undefined || this.layer.trace.observed;
  }

  /**
   * Tells an event to those who listen; without any, nothing is made.
   * @param atMs now, from one who has just read the clock
   */
  emit(body: EventBody, atMs?: number): void {
    const { report } = this.site;
    const { trace } = this.layer;
    if (this.ended || !this.#heard) return;
    // The turn of a late call has ended: only the trace still hears it.
    if (this.late) trace.publish(this.#event({ late: true, ...body }), undefined, atMs);
    else trace.publish(this.#event(body), report as ((event: TraceEvent) => void) | undefined, atMs);
  }

  /** An event of the call. One literal with one spread: each further one would cost as much as all the rest. */
  #event(body: EventBody & { readonly late?: true }): Unstamped {
    const { toolName } = this;
    const { callId, nodeId } = this.call;
    const { turnId } = this.site;
    if (turnId === undefined || nodeId === undefined) return { seq: 0, atMs: 0, source: 'call', callId, toolName, ...body };
    return { seq: 0, atMs: 0, source: 'call', callId, toolName, turnId, nodeId, ...body };
  }
}
