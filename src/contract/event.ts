import type { BreakerStateName } from './breaker-state.ts';
import type { ToolResultEnvelope } from './envelope.ts';
import type { Classification } from './error-kind.ts';
import type { BreakerOptions, ClassificationOverrides, DedupePolicy, Effects, Mode, RetryPolicy } from './policy.ts';
import type { RecoveryCode, RecoveryStrategy } from './recovery.ts';
import type { Progress } from './tool.ts';
import type { NodeState, TurnResult } from './turn.ts';

/** What every event carries. */
interface EventHeader {
  /** Grows by one with each event of the layer; `layer_started` has the number of the last one before it. */
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

/**
 * `claimed`: it runs; `taken_over`: it runs where another lost its lease; `waiting`: another runs; `replayed`: it got the other's result;
 * `conflict`: the key stands for other parameters, an alarm; `busy`: refused, since another runs; `lease_lost`: another may run now;
 * `recorded`, `released`: the claim ended; `superseded`: the outcome was refused, another holds the key; `unrecorded`: it could not be stored;
 * `unprotected`: it runs without a store.
 */
export type DedupeStep =
  | 'claimed'
  | 'taken_over'
  | 'waiting'
  | 'replayed'
  | 'conflict'
  | 'busy'
  | 'lease_lost'
  | 'recorded'
  | 'released'
  | 'superseded'
  | 'unrecorded'
  | 'unprotected';

export type HookName = 'prepareCall' | 'beforeToolCall' | 'afterToolCall';
export type ShadowAct = 'replay' | 'wait' | 'reject' | 'retry' | 'time_out';

/** What happens in one call, in the order in which it happens. Exactly one `settled` is the last. */
export type ToolEvent = CallHeader &
  (
    | {
        readonly type: 'call_started';
        readonly toolCallId?: string;
        readonly tags?: readonly string[];
        readonly correlationId?: string;
        readonly fromHook?: string;
        readonly session?: string;
        readonly tenant?: string;
        /** The W3C trace context that the caller gave. */
        readonly traceparent?: string;
        readonly tracestate?: string;
        /** The breaker of its tool as this process sees it now; absent where the tool is unknown or has none. */
        readonly breaker?: BreakerAtStart;
        /** With `capture`; in the trace, only what it lists. */
        readonly input?: unknown;
      }
    /** Something about the call's idempotency key. */
    | {
        readonly type: 'dedupe';
        readonly step: DedupeStep;
        /** Tells keys apart and gives none away. */
        readonly keyFingerprint: string;
        /** The call that runs or ran under the key, when it is another. */
        readonly leaderCallId?: string;
        /** With `waiting`: when the other's lease ends, on the clock of `atMs`, unless it is renewed until then. */
        readonly leaseUntilMs?: number;
        /** With `claimed`: grows with each claim of the key. */
        readonly fence?: number;
        /** With `replayed`. */
        readonly ageMs?: number;
        readonly message?: string;
      }
    /** A hook had its say: it blocked, it changed the call, or it failed, which blocks as well. */
    | { readonly type: 'hook'; readonly hook: HookName; readonly outcome: 'blocked' | 'changed' | 'failed' | 'timed_out'; readonly attempt: number; readonly message?: string }
    /** In shadow mode: what the layer would have done. */
    | { readonly type: 'shadow'; readonly would: ShadowAct; readonly reason: string; readonly message: string }
    | {
        readonly type: 'attempt_started';
        readonly attempt: number;
        /** When it is cut off, on the clock of `atMs`: its timeout, or the call's own deadline if that is sooner. Absent without a limit. */
        readonly dueAtMs?: number;
      }
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
    /**
     * The call was refused without an attempt: a breaker, invalid input, an unknown tool. `breakerState` is there, here
     * and below, if a breaker saw it.
     */
    | {
        readonly type: 'rejected';
        readonly error: ErrorReport;
        readonly classification: Classification;
        readonly rule: string;
        readonly breakerState?: BreakerStateName;
      }
    | {
        readonly type: 'decision';
        readonly strategy: RecoveryStrategy;
        readonly code: RecoveryCode;
        readonly reason: string;
        readonly classification: Classification;
        readonly breakerState?: BreakerStateName;
        /** What was decided about. */
        readonly error: ErrorReport;
        /** The attempt that failed; 0 when none was made. */
        readonly attempt: number;
        /** With `retry`. */
        readonly delayMs?: number;
        /** Retries that all calls of the layer could make when this was decided, a retry that it orders included. Absent without a budget. */
        readonly budgetLeft?: number;
      }
    /** A person has to choose. */
    | {
        readonly type: 'escalated';
        readonly message: string;
        readonly choices: readonly string[];
        readonly error: ErrorReport;
        readonly classification: Classification;
        readonly breakerState?: BreakerStateName;
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
        readonly nodes: ReadonlyArray<{
          readonly id: string;
          readonly toolName: string;
          readonly needs: readonly string[];
          readonly toolCallId?: string;
        }>;
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

/** How a breaker stood when a call began. */
export interface BreakerAtStart {
  /** As `breaker_changed.toolName` has it; its scope is the call's `tenant`. */
  readonly key: string;
  readonly state: BreakerStateName;
}

/** A policy with every part decided: by the tool, the layer's defaults and its profile. */
export interface PolicyInForce {
  readonly timeoutMs: number;
  readonly idleTimeoutMs?: number;
  readonly retry: RetryPolicy;
  /** Every option but those that are off: they are `Infinity`, which JSON has no word for. Absent without a breaker. */
  readonly breaker?: BreakerOptions;
  readonly alternatives: readonly string[];
  readonly classification: ClassificationOverrides;
  readonly enforcesKey: boolean;
  readonly safetyCritical: boolean;
  readonly cost: number;
  readonly dedupe: Required<DedupePolicy>;
}

/** A tool as its calls run. */
export interface ToolInForce {
  readonly name: string;
  readonly effects: Effects;
  /** As the switches stand. */
  readonly mode: Mode;
  readonly policy: PolicyInForce;
  /** The name of its breaker, as `breaker_changed.toolName` has it; absent when it has none. */
  readonly breakerKey?: string;
}

/** What concerns no single call. */
export type LayerEvent = EventHeader & { readonly source: 'layer' } & (
    /**
     * The first event that each subscriber of a trace hears, told to it alone when it subscribes, however late that is: which policies are in force. Of
     * the tools that the layer and its providers have at that moment, in the layer's order; one that a call brings along is not among them.
     */
    | { readonly type: 'layer_started'; readonly version: string; readonly tools: readonly ToolInForce[] }
    | {
        readonly type: 'breaker_changed';
        readonly toolName: string;
        readonly from: BreakerStateName;
        readonly to: BreakerStateName;
        readonly scope: string;
        readonly message: string;
        /** With `open`: when it lets a probe through, on the clock of `atMs`. */
        readonly untilMs?: number;
        /** The call whose attempt or admission brought it about; absent where time, an order or another process did. */
        readonly callId?: string;
      }
    | { readonly type: 'breaker_evicted'; readonly toolName: string; readonly scope: string }
    /** The store stopped or started answering, is full, or keeps less than it should. */
    | { readonly type: 'store_changed'; readonly state: 'lost' | 'back' | 'full' | 'weak'; readonly message: string }
  );

/** Everything a layer tells: one union, one sequence. Inputs and outputs are not in it. */
export type TraceEvent = TurnEvent | LayerEvent;
