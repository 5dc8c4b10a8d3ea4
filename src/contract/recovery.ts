import type { ToolExecutionError } from './tool-error.ts';
import type { ToolErrorKind } from './error-kind.ts';
import type { Effects } from './policy.ts';

/** What to do about a failure. */
export type RecoveryStrategy = 'retry' | 'alternative' | 'partial' | 'escalate' | 'fail';

/**
 * Why: `transient` allows a retry, every other code forbids one. The order is the one in which they are asked.
 */
export type RecoveryCode =
  | 'canceled'
  | 'turn_deadline'
  | 'transient'
  | 'permanent'
  | 'attempts_exhausted'
  | 'time_exhausted'
  | 'budget_exhausted'
  | 'circuit_open'
  | 'uncertain_mutation'
  | 'retry_after_too_long'
  | 'no_retry_hint'
  /** A host's rule decided. */
  | 'guidance'
  /** What was learnt of earlier failures decided. */
  | 'experience';

/**
 * A host's rule about failures: which strategies it forbids, forces or prefers, and when. It chooses among what
 * is possible and never unlocks more.
 */
export interface GuidanceRule {
  /** What it applies to; each condition that is given must hold. */
  readonly when?: {
    /** Names of tools, one of which failed. */
    readonly tools?: readonly string[];
    /** Error kinds, one of which it was. */
    readonly kinds?: readonly ToolErrorKind[];
    /** The class of the failure. */
    readonly classification?: 'transient' | 'permanent';
    /** The tool's declared cost is at least this. */
    readonly costFrom?: number;
    /** The attempt that failed is this one or a later one. */
    readonly attemptFrom?: number;
  };
  /** Strategies that may not be chosen; the next that is possible is. */
  readonly forbid?: readonly RecoveryStrategy[];
  /** The strategy to choose, where it is possible. */
  readonly force?: RecoveryStrategy;
  /** Best first. */
  readonly prefer?: readonly RecoveryStrategy[];
  /** Why, for the trace. */
  readonly reason: string;
}

/** How often something was tried after similar failures, and how often it helped. */
export interface Tally {
  /** How many times it was tried. */
  readonly tried: number;
  /** How many of those times the call then succeeded. */
  readonly recovered: number;
}

/** What is known of failures like the present one: same tool, kind, and code or status. */
export interface Evidence {
  /** How retries of the same tool did. */
  readonly retry: Tally;
  /** By the alternative's name. */
  readonly alternatives: Readonly<Record<string, Tally>>;
  /** So many tries without one success are enough to stop trying. */
  readonly enough: number;
}

/** A failure, and everything a decision about it may rest on. */
export interface FailureNotification {
  /** The tool that failed. */
  readonly toolName: string;
  /** The call's id, the same in all its events. */
  readonly callId: string;
  /** The turn that the call belongs to; absent outside of one. */
  readonly turnId?: string | undefined;
  /** How it failed. */
  readonly error: ToolExecutionError;
  /** `transient` or `permanent`. */
  readonly classification: string;
  /** The breaker's state after this failure was counted; absent where no breaker saw the call. */
  readonly breakerState?: string | undefined;
  /** The attempt that failed, counted from 1; 0 when none was made. */
  readonly attempt: number;
  /** How many attempts the tool's policy allows, the first included. */
  readonly maxAttempts: number;
  /** Since the first attempt started. */
  readonly elapsedMs: number;
  /** No attempt may start this many milliseconds after the first, or later. */
  readonly maxTotalTimeMs: number;
  /** The backoff before the next attempt, before any `Retry-After`. */
  readonly nextDelayMs: number;
  /** Until the turn's or the call's deadline; `Infinity` without one. */
  readonly turnRemainingMs: number;
  /** Whether the layer's retry budget allows a retry now. */
  readonly budgetAvailable: boolean;
  /** The tools that may still be tried, in order. */
  readonly alternatives: readonly string[];
  /** False for an `optional` node or call: its failure is `partial`, and nobody is asked. */
  readonly required: boolean;
  /** What the tool does to the world; an uncertain failure of a `mutating` one is not retried. */
  readonly effects: Effects;
  /** The resource checks the call's key (the tool declares `enforcesKey`). */
  readonly hasIdempotencyKey: boolean;
  /** The caller said that a retry does no harm. */
  readonly retrySafe: boolean;
  /** True when no uncertain mutation may be retried, whatever else allows it. */
  readonly safetyCritical?: boolean | undefined;
  /** What one call of the tool costs, in the host's own unit. */
  readonly cost?: number | undefined;
  /** The host's rules, asked after the rules of the layer. */
  readonly guidance?: readonly GuidanceRule[] | undefined;
  /** What earlier failures of this sort came to; absent when nothing is known. */
  readonly experience?: Evidence | undefined;
}

/** What is done about a failure, as `decideRecovery` or the host's error handler gives it. */
export interface RecoveryDecision {
  /** What is done. */
  readonly strategy: RecoveryStrategy;
  /** Why, for programs and the trace. A host's handler may leave it out in JavaScript: then it is `guidance`. */
  readonly code: RecoveryCode;
  /** A sentence. */
  readonly reason: string;
  /** With `retry`: the wait. */
  readonly delayMs?: number;
  /** With `alternative`: the tool to use. */
  readonly toolName?: string;
}
