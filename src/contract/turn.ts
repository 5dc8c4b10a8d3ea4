import type { ToolResultEnvelope } from './envelope.ts';
import type { ToolErrorKind } from './error-kind.ts';
import type { NeedsApproval } from './gate/approval.ts';
import type { Compensate, CompensateCall, CompensationReason } from './settle/compensate.ts';
import type { AnyTool } from './tool.ts';

/** A call inside a plan. */
export interface PlanNode {
  /** The node's name, unique in the plan and not empty. */
  readonly id: string;
  /** A tool, or the name of one that the layer knows. */
  readonly tool: AnyTool | string;
  /** The input, or a function that makes it of the values of `needs`. */
  readonly input?: unknown;
  /** Nodes whose values this one is given; it starts when all of them have settled. */
  readonly needs?: readonly string[];
  /** May be left out without harm to the turn. */
  readonly optional?: boolean;
  /** Stands in for the value of a need that failed, so that this node runs all the same. */
  readonly default?: unknown;
  /** The id the model gave the call, for the trace. */
  readonly toolCallId?: string;
  /**
   * The same key of the same session gives the same result, also in a later turn; without one the call is not deduped.
   */
  readonly idempotencyKey?: string;
  /**
   * A person has to approve this call, whatever its tool says: `true`, or a function of its input. Default: as the tool
   * has it.
   */
  readonly needsApproval?: NeedsApproval;
  /**
   * Undoes what this call did, in place of its tool's own `compensate`: a function, or another tool and what it is
   * given. `false`: there is nothing to undo. Default: as the tool has it.
   */
  readonly compensate?: Compensate | CompensateCall | false;
}

/** How long a turn may take, and how it runs. */
export interface PlanOptions {
  /** When the turn settles at the latest, in milliseconds from its start. Default 300,000 (SI 4.2). */
  readonly timeoutMs?: number;
  /**
   * What happens to running calls then: `detach` lets them finish in the background, `abort` stops them. Default
   * `detach`.
   */
  readonly onDeadline?: 'detach' | 'abort';
  /** How many calls run at a time. Default: no limit. */
  readonly concurrency?: number;
  /**
   * `compensate`: a turn that ends escalated, failed, canceled or past its deadline undoes what its mutating nodes did,
   * in reverse order, before it settles. `keep`: what was done stays. Default `keep`.
   */
  readonly onFailure?: 'keep' | 'compensate';
  /** What `resume()` of another process finds the plan by, 1 to 256 characters. Default: none. */
  readonly name?: string;
  /**
   * With `compensate`: how long after this process has died another may undo what the turn did, in milliseconds.
   * Default 120,000.
   */
  readonly leaseMs?: number;
}

/**
 * A checked plan. `Values` is what its nodes give, by id. Make one with `plan()` or `plan.from()`; it can run any
 * number of times.
 */
export interface Plan<Values = Readonly<Record<string, unknown>>> {
  /** The nodes, in the order in which they were given. */
  readonly nodes: readonly PlanNode[];
  /** How long the turn may take, and how it runs. */
  readonly options: PlanOptions;
  /** By node: the places of its needs, and of those that need it. */
  readonly needs: ReadonlyArray<readonly number[]>;
  /** By node: the indexes of the nodes that need it. */
  readonly dependents: ReadonlyArray<readonly number[]>;
  /** Only a type: the values of the nodes. */
  readonly values?: Values;
}

/**
 * How a node ended. `succeeded`. `failed`: its call failed for good. `skipped`: a need has no value. `defaulted`: it
 * ran and succeeded with its default in place of a need's value. `timed_out`: unfinished at the turn's deadline.
 * `canceled`: unfinished when the turn was aborted. `compensated`: what it did was undone, since the turn failed.
 * `compensation_failed`: it could not be undone, or it is not known whether there was anything to undo, and a person
 * must act.
 */
export type NodeState =
  | 'succeeded'
  | 'failed'
  | 'skipped'
  | 'defaulted'
  | 'timed_out'
  | 'canceled'
  | 'compensated'
  | 'compensation_failed';

/** How one node of a turn ended. */
export interface NodeResult {
  /** The node's id in the plan. */
  readonly id: string;
  /** The tool that answered: an alternative's name when one did. */
  readonly toolName: string;
  /** How it ended. */
  readonly state: NodeState;
  /** The call's result; absent when no call was made or none had settled. */
  readonly result?: ToolResultEnvelope;
  /** A sentence: why it is not simply `succeeded`. */
  readonly reason?: string;
}

/**
 * `completed`: every node succeeded or defaulted. `escalated`: something required is missing. `failed`: no tool ran.
 * `partial`: the rest.
 */
export type TurnStatus = 'completed' | 'partial' | 'escalated' | 'failed';

/** What a failed turn left behind, although it should have been undone. */
export interface LeftBehind {
  /** The node. */
  readonly id: string;
  /** The tool whose effect stays, or may stay. */
  readonly toolName: string;
  /** The key that the call had: what to look for it by. */
  readonly callKey: string;
  /** Why it stays, as a sentence. */
  readonly why: string;
  /** Who must act: `owner` of the tool's `compensate`, or `a person`. */
  readonly owner: string;
  /** Its undoing was tried, and may have taken effect: look before it is undone by hand. Absent where it has not. */
  readonly halfUndone?: true;
}

/** What was undone of a turn, and what was not. */
export interface Compensation {
  /** Why it was undone. */
  readonly reason: CompensationReason;
  /** The ids of the nodes whose effects were undone, in the order in which they had begun. */
  readonly compensated: readonly string[];
  /** What stays, in the same order. */
  readonly stays: readonly LeftBehind[];
  /**
   * The ids of the nodes whose effects others rely on, which got them by the same idempotency key: they stay, and are
   * no longer this turn's. Absent without any.
   */
  readonly shared?: readonly string[];
}

/** What a turn found. `Values` is what the plan's nodes give, by id. */
export interface TurnResult<Values = Readonly<Record<string, unknown>>> {
  /** How the turn as a whole ended. */
  readonly status: TurnStatus;
  /** In plan order, one per node. */
  readonly nodes: readonly NodeResult[];
  /** The outputs of the nodes that succeeded or defaulted, by id. */
  readonly values: Partial<Values>;
  /** How many calls' tools ran. */
  readonly executedTools: number;
  /** Whether any call failed, optional ones and those that a default stood in for included. */
  readonly hadToolFailure: boolean;
  /** The distinct kinds of failure, in plan order. */
  readonly toolFailureKinds: readonly ToolErrorKind[];
  /** One sentence for a person. */
  readonly summary: string;
  /** What was undone, with `onFailure: 'compensate'`. Absent where there was nothing to undo. */
  readonly compensation?: Compensation;
  /**
   * With `onFailure: 'compensate'`, of a turn whose end the store does not have. `unrecorded`: the store did not get
   * it, and `resume()` may undo what it did. `superseded`: another process has taken the turn over, and undoes it.
   */
  readonly recorded?: 'superseded' | 'unrecorded';
}
