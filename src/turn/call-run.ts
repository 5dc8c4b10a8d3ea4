import type { RetryRecord } from '../contract/envelope.ts';
import type { ToolEvent } from '../contract/event.ts';
import type { Runtime } from '../contract/runtime.ts';
import type { Layer } from './layer.ts';
import type { Call } from './request.ts';
import type { History } from './result.ts';

/** Where a call happens: what whoever makes it says, and may look at while it runs. */
export interface CallSeat {
  readonly runtime: Runtime;
  readonly turnId?: string;
  readonly nodeId?: string;
  /** Whether the turn cannot do without it. */
  readonly required: boolean;
  /** The turn's deadline, monotonic. The turn keeps it; the call only decides by it. */
  readonly deadlineMs: number;
  readonly signal?: AbortSignal;
  /** Hears this call's events, beside the trace. */
  readonly report?: (event: ToolEvent) => void;
  /** Set by the call: its tool ran. */
  executed: boolean;
  /** Set by the turn: it has settled without this call. */
  late: boolean;
}

type WithoutHeader<E> = E extends ToolEvent ? Omit<E, 'seq' | 'atMs' | 'source' | 'callId' | 'toolName' | 'turnId' | 'nodeId' | 'late'> : never;
type EventBody = WithoutHeader<ToolEvent>;

/** One call while it runs: what it has done so far, and how it tells of it. */
export class CallRun {
  readonly layer: Layer;
  readonly call: Call;
  readonly seat: CallSeat;
  readonly startedAtMs: number;
  readonly retriedBy: RetryRecord[] = [];
  /** Physical executions, those of alternatives included. */
  attempts = 0;
  /** True between an attempt's start and its end. */
  attempting = false;
  /** The tool in use. */
  toolName: string;

  constructor(layer: Layer, call: Call, seat: CallSeat) {
    this.layer = layer;
    this.call = call;
    this.seat = seat;
    this.toolName = call.toolName;
    this.startedAtMs = seat.runtime.now();
  }

  /** Until the call's or its turn's deadline. */
  get remainingMs(): number {
    return Math.min(this.call.deadlineMs, this.seat.deadlineMs) - this.seat.runtime.now();
  }

  get history(): History {
    return {
      requestId: this.call.callId,
      toolName: this.toolName,
      durationMs: Math.max(0, this.seat.runtime.now() - this.startedAtMs),
      attempts: this.attempts,
      retriedBy: this.retriedBy,
    };
  }

  /** Tells an event to those who listen; without any, nothing is made. */
  emit(body: EventBody): void {
    const { report, turnId, nodeId, late } = this.seat;
    const { trace } = this.layer;
    if (report === undefined && !trace.observed) return;
    const event = trace.publish({
      source: 'call',
      callId: this.call.callId,
      toolName: this.toolName,
      ...(turnId === undefined ? {} : { turnId }),
      ...(nodeId === undefined ? {} : { nodeId }),
      ...(late ? { late } : {}),
      ...body,
    });
    if (!late) report?.(event as ToolEvent);
  }
}
