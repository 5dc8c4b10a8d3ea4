import type { BreakerStateName } from '../breaker-state.ts';

/** How a breaker stood when a call began. */
export interface BreakerAtStart {
  /** As `breaker_changed.toolName` has it; its scope is the call's `tenant`. */
  readonly key: string;
  /** The state it was in. */
  readonly state: BreakerStateName;
}

/** What one call asks for itself, beside its tool's policy. Only what it asks for is there. */
export interface CallTerms {
  /** Its own deadline, on the clock of `atMs`. */
  readonly deadlineAtMs?: number;
  /** `transport.retryBudget.maxAttempts` of its envelope. */
  readonly maxAttempts?: number;
  /** `transport.retryBudget.maxElapsedMs` of its envelope. */
  readonly maxElapsedMs?: number;
  /** `callHints.timeoutMs`: the limit of each attempt, where it is below the tool's own. */
  readonly timeoutMs?: number;
  /** `callHints.expectedRetrySafe`. */
  readonly retrySafe?: boolean;
  /** `callHints.safetyCritical`. */
  readonly safetyCritical?: boolean;
  /** `transport.circuitBreakerHint`: the scope of the breaker. */
  readonly breakerHint?: 'tool' | 'dependency' | 'global';
  /** It asks for one effect per key: it runs under one, where it has or is given one. */
  readonly keyed?: true;
  /** Under its key it is refused where another runs, and runs where its store is lost. */
  readonly bestEffort?: true;
  /** The caller can do without it. In a turn the plan says that, not the call. */
  readonly optional?: true;
}
