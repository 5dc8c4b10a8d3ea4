import type { BreakerStateName, ToolResultEnvelope } from './envelope.ts';
import type { Classification } from './error-kind.ts';
import type { RecoveryCode, RecoveryStrategy } from './recovery.ts';
import type { Progress } from './tool.ts';
import type { NodeState, TurnResult } from './turn.ts';

/** What every event carries. */
interface EventHeader {
  /** Grows by one with each event of the layer. */
  readonly seq: number;
  /** Monotonic milliseconds, as `Runtime.now()`. */
  readonly atMs: number;
  readonly turnId?: string;
}

interface CallHeader extends EventHeader {
  readonly source: 'call';
  readonly callId: string;
  /** The tool in use: an alternative's name while one is tried. */
  readonly toolName: string;
  /** The plan node, when the call is part of a turn. */
  readonly nodeId?: string;
  /** The attempt, counted from 1 over the whole call. */
  readonly attempt?: number;
  /** True for what a detached call does after its turn has settled. */
  readonly late?: true;
}

/** An error as events tell it. */
export interface ErrorReport {
  readonly kind: string;
  readonly message: string;
  readonly code?: string;
  readonly status?: number;
  readonly retryAfterMs?: number;
  readonly uncertain?: true;
}

/** What happens in one call, in the order in which it happens. Exactly one `settled` is the last. */
export type ToolEvent = CallHeader &
  (
    | { readonly type: 'call_started'; readonly toolCallId?: string; readonly tags?: readonly string[]; readonly correlationId?: string; readonly fromHook?: string }
    | { readonly type: 'attempt_started'; readonly attempt: number }
    | { readonly type: 'progress'; readonly attempt: number; readonly report: Progress }
    | { readonly type: 'attempt_succeeded'; readonly attempt: number; readonly durationMs: number; readonly message?: string }
    | {
        readonly type: 'attempt_failed';
        readonly attempt: number;
        readonly durationMs: number;
        readonly error: ErrorReport;
        readonly classification: Classification;
        /** The rule that gave the class. */
        readonly rule: string;
        readonly breakerState: BreakerStateName;
        /** The limit that passed, when the failure is the layer's own timeout. */
        readonly timeoutMs?: number;
      }
    /** The unsubscribed or overtaken attempt was aborted. */
    | { readonly type: 'attempt_canceled'; readonly attempt: number; readonly durationMs: number }
    /** The call was refused without an attempt: a breaker, invalid input, an unknown tool. */
    | { readonly type: 'rejected'; readonly error: ErrorReport; readonly classification: Classification; readonly rule: string; readonly breakerState: BreakerStateName }
    | {
        readonly type: 'decision';
        readonly strategy: RecoveryStrategy;
        readonly code: RecoveryCode;
        readonly reason: string;
        readonly classification: Classification;
        readonly breakerState: BreakerStateName;
        /** What was decided about. */
        readonly error: ErrorReport;
        /** The attempt that failed; 0 when none was made. */
        readonly attempt: number;
        /** With `retry`. */
        readonly delayMs?: number;
      }
    /** A person has to choose. */
    | {
        readonly type: 'escalated';
        readonly message: string;
        readonly choices: readonly string[];
        readonly error: ErrorReport;
        readonly classification: Classification;
        readonly breakerState: BreakerStateName;
        readonly attempt: number;
      }
    | { readonly type: 'alternative_used'; readonly from: string; readonly message: string }
    /** Its caller unsubscribed before it settled: the last event then, and only the trace hears it. */
    | { readonly type: 'abandoned' }
    /** The result, without its output in the trace of a layer. */
    | { readonly type: 'settled'; readonly result: ToolResultEnvelope }
  );

interface TurnHeader extends EventHeader {
  readonly source: 'turn';
  readonly turnId: string;
}

/** What happens in one turn beside its calls. */
export type TurnOwnEvent = TurnHeader &
  (
    | {
        readonly type: 'turn_started';
        readonly timeoutMs: number;
        readonly nodes: ReadonlyArray<{ readonly id: string; readonly toolName: string; readonly needs: readonly string[] }>;
      }
    | { readonly type: 'node_started'; readonly nodeId: string; readonly toolName: string; readonly message?: string }
    | { readonly type: 'node_settled'; readonly nodeId: string; readonly toolName: string; readonly state: NodeState; readonly message?: string }
    | { readonly type: 'deadline'; readonly unfinished: readonly string[]; readonly onDeadline: 'detach' | 'abort' }
    /** A required node was skipped: a person has to choose. */
    | {
        readonly type: 'escalated';
        readonly nodeId: string;
        readonly toolName: string;
        readonly message: string;
        /** The needs without a value. */
        readonly lacking: readonly string[];
        readonly choices: readonly string[];
      }
    /** Its caller unsubscribed before it settled: the last event then, and only the trace hears it. */
    | { readonly type: 'abandoned' }
    | { readonly type: 'settled'; readonly result: TurnResult }
  );

/** A turn's stream: its own events and those of its calls. The last one is the turn's `settled`. */
export type TurnEvent = ToolEvent | TurnOwnEvent;

/** What concerns no single call. */
export type LayerEvent = EventHeader & {
  readonly source: 'layer';
  readonly toolName: string;
} & (
    | {
        readonly type: 'breaker_changed';
        readonly from: BreakerStateName;
        readonly to: BreakerStateName;
        readonly scope: string;
        readonly message: string;
      }
    | { readonly type: 'breaker_evicted'; readonly scope: string }
  );

/** Everything a layer tells: one union, one sequence. Inputs and outputs are not in it. */
export type TraceEvent = TurnEvent | LayerEvent;
