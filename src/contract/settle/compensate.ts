import type { ToolOutput } from '../output.ts';
import type { RetryPolicy } from '../policy.ts';

/**
 * Why a turn undoes what it did: it ended `escalated` or `failed`, its caller `canceled` it or went away, its
 * `deadline` passed, or its process died (`crashed`).
 */
export type CompensationReason = 'escalated' | 'failed' | 'canceled' | 'deadline' | 'crashed';

/** What `compensate` is given beside the output of the call that it undoes. */
export interface CompensateContext<I = unknown> {
  /** The input of the call that is undone, as its tool's schema gives it. */
  readonly input: I;
  /** The key that the call had: look for what it did by it. */
  readonly callKey: string;
  /** The undoing's own key, `callKey/undo`: the same however often and in whichever process it is tried. */
  readonly undoKey: string;
  /** Why it is undone. */
  readonly reason: CompensationReason;
  /** The attempt at undoing, counted from 1. */
  readonly attempt: number;
  /** Aborted when the attempt is over before it is done. */
  readonly signal: AbortSignal;
  /** As a tool's own: grows with each claim of the undoing's key. Absent without a claim. */
  readonly fence?: number;
}

/**
 * Undoes what a call did. `output` is what the call gave; `undefined` where only `verify` knows that it took effect,
 * and gave none, and in another process for one that is no JSON or longer than 100,000 characters. What it gives counts
 * for nothing; what it throws is a failure to undo.
 */
export type Compensate<I = never, O = never> = (output: O, context: CompensateContext<I>) => ToolOutput<unknown>;

/** An undoing by data: another tool, and what it is given. */
export interface CompensateCall {
  /** The tool that undoes, by its name in the layer; its own policy guards the call. */
  readonly tool: string;
  /**
   * Its input. In its texts `${output.id}` is a part of what the call gave, `${input.from}` of what it was given,
   * `${callKey}` its key and `${reason}` why; `$${` is a plain `${`. Default: what the call gave.
   */
  readonly input?: unknown;
}

/** How what a tool's calls did is undone (`compensate` of its policy). Units are milliseconds. */
export interface CompensatePolicy extends Partial<CompensateCall> {
  /** Limit on one attempt of the tool's own `compensate`; refused beside `tool`. Default: that of the tool. */
  readonly timeoutMs?: number;
  /**
   * How failed attempts of the tool's own `compensate` are repeated; refused beside `tool`, whose own policy says it.
   * Default: the profile `resilient`, 4 within 30 s.
   */
  readonly retry?: Partial<RetryPolicy>;
  /**
   * The resource checks `undoKey`, or undoing twice does no harm: an attempt whose end is uncertain may be repeated.
   * Default false; by another tool, what that tool's own policy says.
   */
  readonly enforcesKey?: boolean;
  /** Who must act when it cannot be undone, for the sentence of the escalation. Default: `a person`. */
  readonly owner?: string;
}
