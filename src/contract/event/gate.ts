import type { ApprovalCause } from '../gate/approval.ts';
import type { BudgetPer, BudgetUnit } from '../gate/budget.ts';

/** What became of a question to a person. `expired`: nobody answered in time. `withdrawn`: nobody waits any more. */
export type ApprovalStep = 'asked' | 'approved' | 'denied' | 'expired' | 'withdrawn';

/** When a person is asked whether a call may run, and when that has ended. */
export interface ApprovalEvent {
  /** When a person is asked whether a call may run, and when that has ended. */
  readonly type: 'approval';
  /** Which step it was. */
  readonly step: ApprovalStep;
  /** Names the question: `spillway approve ID`. */
  readonly approvalId: string;
  /** Why it is asked. */
  readonly cause: ApprovalCause;
  /** With `asked`: the time of its turn stands still until the question has its end. */
  readonly holdsTurn?: true;
  /** With all but `asked`: how long the call has waited, in milliseconds. */
  readonly waitedMs?: number;
  /** Who answered, where that is told. */
  readonly by?: string;
  /** Why, in the words of who answered. */
  readonly message?: string;
}

/**
 * When a budget is used to 80 %, and when it refuses an attempt. Of the layer: an attempt's use is known after its end.
 */
export interface BudgetEvent {
  /** When a budget is used to 80 %, and when it refuses an attempt. */
  readonly type: 'budget';
  /** `warned`: it is used to 80 % or beyond, which is told once. `refused`: too little is left for an attempt. */
  readonly step: 'warned' | 'refused';
  /** Whose budget it is. */
  readonly per: BudgetPer;
  /** The id of that turn, or the name of that session or tenant; empty without one. */
  readonly scope: string;
  /** The call that it came to that by; absent where it was no tool's. */
  readonly callId?: string;
  /** What of it is short. */
  readonly unit: BudgetUnit;
  /** How much there is. */
  readonly limit: number;
  /** How much is left, what running attempts have reserved taken off; 0 where more was used. */
  readonly left: number;
}
