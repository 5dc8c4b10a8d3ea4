import type { RetryRecord } from '../contract/envelope.ts';
import type { ToolEvent, TraceEvent } from '../contract/event.ts';
import type { Runtime } from '../contract/runtime.ts';
import type { Layer } from './layer.ts';
import type { Call } from './request.ts';
import type { History } from './result.ts';
import { STAMP } from './trace.ts';

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

interface Header {
  readonly source: 'call';
  readonly callId: string;
  readonly toolName: string;
  readonly turnId?: string;
  readonly nodeId?: string;
}

const NO_RETRIES: readonly RetryRecord[] = [];

/** One call: where it happens, what it has done so far, and how it tells of it. */
export class CallRecord {
  readonly layer: Layer;
  readonly site: CallSite;
  readonly call: Call;
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
  #retriedBy: RetryRecord[] | undefined;
  #made: Header | undefined;

  constructor(layer: Layer, site: CallSite, call: Call) {
    this.layer = layer;
    this.site = site;
    this.call = call;
    this.toolName = call.toolName;
    this.startedAtMs = site.runtime.now();
  }

  /** Until the call's or its turn's deadline. */
  get remainingMs(): number {
    return Math.min(this.call.deadlineMs, this.site.deadlineMs) - this.site.runtime.now();
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

  /** Tells an event to those who listen; without any, nothing is made. */
  emit(body: EventBody): void {
    const { report } = this.site;
    const { trace } = this.layer;
    if (this.ended || (report === undefined && !trace.observed)) return;
    // The turn of a late call has ended: only the trace still hears it.
    if (this.late) trace.publish({ ...STAMP, ...this.#header(), late: true, ...body });
    else trace.publish({ ...STAMP, ...this.#header(), ...body }, report as ((event: TraceEvent) => void) | undefined);
  }

  /** What all events of the call begin with, made once for each tool in use. */
  #header(): Header {
    const { call, site, toolName } = this;
    if (this.#made?.toolName !== toolName) {
      const { callId, nodeId } = call;
      const { turnId } = site;
      this.#made = { source: 'call', callId, toolName, ...(turnId === undefined ? {} : { turnId }), ...(nodeId === undefined ? {} : { nodeId }) };
    }
    return this.#made;
  }
}
