import type { BreakerStateName } from '../../contract/breaker-state.ts';

/**
 * What happened, in CLAW's words. Five are ours: `tool_call_dedupe`, where a key did not protect as promised,
 * `tool_call_verified`, `tool_call_approval`, `tool_call_budget`, and `tool_call_store_state`.
 */
export type ToolLogEvent =
  | 'tool_call_start'
  | 'tool_call_end'
  | 'tool_call_blocked'
  | 'tool_call_retry'
  | 'tool_call_circuit_state'
  | 'tool_call_dedupe'
  | 'tool_call_verified'
  | 'tool_call_approval'
  | 'tool_call_budget'
  | 'tool_call_store_state';

/** The fields of a line (CLAW 1.6). Inputs, outputs and keys are in none. */
export interface ToolLogFields {
  /** What happened. */
  readonly event: ToolLogEvent;
  /** The id of the call; absent for breakers and stores. */
  readonly requestId?: string;
  /** The tool's name, or the breaker's; absent for stores. */
  readonly toolName?: string;
  /** The session of the call, where it has one. */
  readonly sessionKey?: string;
  /** The fingerprint of the idempotency key, from the first event on that has one; the key itself is not written. */
  readonly idempotencyKeyHash?: string;
  /** The correlation id that the caller gave. */
  readonly correlationId?: string;
  /** The turn that the call is part of; absent for a call of its own. */
  readonly turnId?: string;
  /** The node of the plan that the call is made for. */
  readonly nodeId?: string;
  /**
   * Of a call, as the store has it: `inflight`, `done`, `failed`, `cancelled`. With `tool_call_dedupe` the step of the
   * claim, with `tool_call_verified` what was found, with `tool_call_approval` and `tool_call_budget` the step; else
   * the state of the breaker or the store, or how a hook ended.
   */
  readonly state?: string;
  /** The number of the attempt, from 1; at a call's end, how many attempts it had. */
  readonly attempt?: number;
  /** Milliseconds since the call began. */
  readonly elapsedMs?: number;
  /** Whether the result was replayed; on lines of a call's end. */
  readonly fromCache?: boolean;
  /** The kind of the error. */
  readonly errorCode?: string;
  /** Whether calling again can help. */
  readonly retriable?: boolean;
  /** The state of the call's breaker; absent where it was not asked. */
  readonly breakerState?: BreakerStateName;
  /** The result's status, such as `success` or `retry_exhausted`; on lines of a call's end. */
  readonly status?: string;
  /** How long the call waits before its next attempt, in milliseconds. */
  readonly delayMs?: number;
  /** The error's message, or what happened, on one line. */
  readonly reason?: string;
}

/** How much a line matters. */
export type Level = 'info' | 'warn' | 'error';
/** The fields of a line while it is made. */
export type Fields = { -readonly [Name in keyof ToolLogFields]: ToolLogFields[Name] };
/** A line before it is known whose it is. */
export interface Line {
  readonly level: Level;
  readonly event: ToolLogEvent;
  readonly fields: Partial<ToolLogFields>;
}
