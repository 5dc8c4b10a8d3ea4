import type { BreakerStateName } from '../../contract/breaker-state.ts';
import type { BudgetEvent } from '../../contract/event.ts';

/** A change of a breaker's state. */
export interface BreakerChangeSeen {
  /** When. */
  readonly atMs: number;
  /** The state it left. */
  readonly from: BreakerStateName;
  /** The state it is in. */
  readonly to: BreakerStateName;
  /** With `open`: when it lets a probe through. */
  readonly untilMs?: number;
  /** The call that brought it about. */
  readonly callId?: string;
  /** An order brought it about, given in the process of the trace. */
  readonly ordered?: true;
}

/** A breaker over time. */
export interface BreakerTold {
  /** Its name, as `breaker_changed.toolName` has it. */
  readonly key: string;
  /** The tenant; empty without one. */
  readonly scope: string;
  /** The state in which the trace found it. */
  readonly firstState: BreakerStateName;
  /** When the trace first told of it. */
  readonly firstMs: number;
  /** Its changes in order; of very many the last ones. */
  readonly changes: BreakerChangeSeen[];
  /** How many changes there were. */
  changeCount: number;
  /** The state that it is in. */
  state: BreakerStateName;
}

/** That a budget runs short, or is too short for an attempt. */
export interface BudgetTold {
  /** When. */
  readonly atMs: number;
  /** `warned`: it is used to 80 % or beyond. `refused`: too little is left for an attempt. */
  readonly step: BudgetEvent['step'];
  /** Whose budget it is. */
  readonly per: BudgetEvent['per'];
  /** The id of that turn, or the name of that session or tenant; empty without one. */
  readonly scope: string;
  /** What of it is short. */
  readonly unit: BudgetEvent['unit'];
  /** How much there is. */
  readonly limit: number;
  /** How much is left. */
  readonly left: number;
}
