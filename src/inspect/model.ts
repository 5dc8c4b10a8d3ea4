import type { BreakerStateName } from '../contract/breaker-state.ts';
import type { ToolResultStatus } from '../contract/envelope.ts';
import type { Classification } from '../contract/error-kind.ts';
import type { BreakerAtStart, DedupeStep, ErrorReport, ToolInForce, TraceEvent } from '../contract/event.ts';
import type { RecoveryCode, RecoveryStrategy } from '../contract/recovery.ts';
import type { NodeState, TurnStatus } from '../contract/turn.ts';
import type { BreakerTold, BudgetTold } from './model/layer.ts';
import type { Mark } from './model/mark.ts';
import type { TraceLimits } from './model/limits.ts';

export type { BreakerChangeSeen, BreakerTold, BudgetTold } from './model/layer.ts';
export type { Mark, MarkKind } from './model/mark.ts';

/** What was decided about a failure. */
export interface DecisionTold {
  /** When, on the clock of the events. */
  readonly atMs: number;
  /** What follows. */
  readonly strategy: RecoveryStrategy;
  /** Why, for programs: what forbade a retry, or `transient`. */
  readonly code: RecoveryCode;
  /** Why, as a sentence. */
  readonly reason: string;
  /** With `retry`: the wait. */
  readonly delayMs?: number;
  /** Retries that the layer had left; absent without a budget. */
  readonly budgetLeft?: number;
}

/** How an attempt ended, or that it has not. `rejected`: nothing was attempted. */
export type AttemptOutcome = 'running' | 'succeeded' | 'failed' | 'timed_out' | 'canceled' | 'rejected';

/** One attempt of a call, or its refusal. */
export interface AttemptTold {
  /** Counted from 1 over the whole call; of a refusal the attempt that was to come, or 0. */
  readonly attempt: number;
  /** The tool that it asked. */
  readonly toolName: string;
  /** Whether the tool is an alternative. */
  readonly alternative: boolean;
  /** When it began. */
  readonly startMs: number;
  /** When it is or was to be cut off; absent without a limit. */
  readonly dueAtMs?: number;
  /** When it ended; absent while it runs, and where the trace does not tell. */
  endMs?: number;
  /** How it ended. */
  outcome: AttemptOutcome;
  /** How it failed. */
  error?: ErrorReport;
  /** The class of the failure. */
  classification?: Classification;
  /** The rule that gave the class. */
  rule?: string;
  /** The breaker's state once it had counted the failure. */
  breakerState?: BreakerStateName;
  /** The limit that passed, when the failure is the layer's own timeout. */
  timeoutMs?: number;
  /** What was decided about its failure. */
  decision?: DecisionTold;
  /** What it last reported of its progress. */
  progress?: string;
  /** Whether it went on after its turn had settled. */
  late: boolean;
}

/** A step of a call's idempotency key. */
export interface KeyTold {
  /** When. */
  readonly atMs: number;
  /** Which step. */
  readonly step: DedupeStep;
  /** Tells keys apart and gives none away. */
  readonly keyFingerprint: string;
  /** The call that ran under the key, when it is another. */
  readonly leaderCallId?: string;
  /** With `waiting`: when the other's lease ends. */
  readonly leaseUntilMs?: number;
  /** With `replayed`: milliseconds since the result was recorded. */
  readonly ageMs?: number;
  /** A sentence, where the step alone does not say why. */
  readonly message?: string;
}

/** A remark on a call: what a hook did, what shadow mode would do, what a person has to choose. */
export interface NoteTold {
  /** When. */
  readonly atMs: number;
  /** The remark, a sentence. */
  readonly text: string;
}

/** A call, as far as the trace tells of it. */
export interface CallTold {
  /** The call's id. */
  readonly callId: string;
  /** The turn it is part of; absent outside of turns. */
  readonly turnId?: string;
  /** Its node; absent outside of turns. */
  readonly nodeId?: string;
  /** The tool that was asked for. */
  readonly askedTool: string;
  /** The tool in use: an alternative's name once one was tried. */
  toolName: string;
  /** When it began, or when the trace first tells of it. */
  readonly startMs: number;
  /** When it ended. */
  endMs?: number;
  /** How it ended. */
  status: ToolResultStatus | 'running' | 'abandoned';
  /** Its attempts and refusals in order; of very many the last ones. */
  readonly attempts: AttemptTold[];
  /** How many attempts were made, those that are not kept included. */
  attemptCount: number;
  /** The steps of its key, in order; of very many the last ones. */
  readonly key: KeyTold[];
  /** Remarks, in order; of very many the last ones. */
  readonly notes: NoteTold[];
  /** The tenant; absent without one. */
  tenant?: string;
  /** The session; absent without one. */
  session?: string;
  /** How its breaker stood when it began. */
  breaker?: BreakerAtStart;
  /** Whether a person was asked whether it may run. */
  isGated: boolean;
  /** Since when a person is asked whether it may run; absent while nobody is. */
  waitsSinceMs?: number;
  /** Whether the time of its turn stands still for that. */
  isHolding: boolean;
  /** Whether its result is that of another call of the same key. */
  replayed: boolean;
  /** Whether its tool's `verify` was asked. */
  isVerified: boolean;
  /** The error of its result. */
  error?: {
    /** Its kind. */
    readonly code: string;
    /** Its text. */
    readonly message: string;
    /** Whether the tool may have taken effect. */
    readonly uncertain: boolean;
  };
}

/** A node of a turn. */
export interface NodeTold {
  /** Its id in the plan. */
  readonly nodeId: string;
  /** The tool in use: an alternative's name once one was tried. */
  toolName: string;
  /** The ids of the nodes that it waits for. */
  readonly needs: readonly string[];
  /** Its signs, in order; of very many the last ones. */
  readonly marks: Mark[];
  /** How many attempts were made before it had its state. */
  attempts: number;
  /** How it ended; absent before that. */
  state?: NodeState;
  /** What it is doing, or why it ended as it did. */
  note: string;
  /** Why it is not simply succeeded, as the turn's result has it; absent before that, and without a reason. */
  reason?: string;
  /** Whether an alternative was used. */
  usedAlternative: boolean;
  /** Its turn has failed, and what it did is being undone, or was. */
  isUndone?: boolean;
  /** What stood in for a need's value, as a sentence; absent without a default. */
  defaulted?: string;
  /** When its needs had settled and its call began. */
  startMs?: number;
  /** When it had its state. */
  settledMs?: number;
  /** Its call; absent before it is made. */
  call?: CallTold;
  /** The call that undoes what it did; absent where none was made. */
  undoing?: CallTold;
}

/** When another worker went on with a turn. */
export interface MoveTold {
  /** When. */
  readonly atMs: number;
  /** The worker that had it. */
  readonly from: string;
  /** The worker that has it now. */
  readonly to: string;
  /** Milliseconds from the last sign of life of the one to the start of the other. */
  readonly afterMs: number;
}

/** A turn, as far as the trace tells of it. */
export interface TurnTold {
  /** The turn's id. */
  readonly turnId: string;
  /** Its place among the turns of the trace, from 1. */
  readonly number: number;
  /** When it began, or when the trace first tells of it. */
  startMs: number;
  /** How long it may take, `Infinity` where the trace does not tell. */
  timeoutMs: number;
  /** When that is over where nobody is waited for; a fleet had the turn before it began. */
  dueMs: number;
  /** For how long that stood still, since a person was waited for; while it does, less the time of the event. */
  heldMs: number;
  /** How many of its calls wait for a person, so that it stands still. */
  heldBy: number;
  /** Whether the trace tells of its start. */
  begun: boolean;
  /** The worker of a fleet that has it; absent where none does. */
  worker?: string;
  /** Its nodes in plan order. */
  readonly nodes: NodeTold[];
  /** How many nodes it has beside those, which were too many to keep. */
  moreNodes: number;
  /** When its deadline passed, if it did. */
  deadlineMs?: number;
  /** What became of running calls at the deadline. */
  onDeadline?: 'detach' | 'abort';
  /** How many of its calls run at a time; absent without a limit. */
  concurrency?: number;
  /** When it settled or was abandoned. */
  settledMs?: number;
  /** How it ended. */
  status: TurnStatus | 'running' | 'abandoned';
  /** One sentence about it. */
  summary: string;
  /** The tenant of its calls; absent without one. */
  tenant?: string;
  /** The nodes for which a person has to choose. */
  readonly escalated: string[];
  /** Where it moved from one worker to another, in order; of very many the last ones. */
  readonly moves: MoveTold[];
  /** Of the last event. */
  lastMs: number;
}

/** What a trace has told so far: bounded, whatever comes. */
export interface TraceModel {
  /** How much is kept. */
  readonly limits: Required<TraceLimits>;
  /** The turns by id, in the order in which they began. */
  readonly turns: Map<string, TurnTold>;
  /** Calls outside of turns by id, in the order in which they began. */
  readonly loose: Map<string, CallTold>;
  /** Every call that is kept, by its id. */
  readonly calls: Map<string, CallTold>;
  /** The breakers, in the order in which the trace told of them. */
  readonly breakers: Map<string, BreakerTold>;
  /** The tools and the policies in force, by name. */
  readonly tools: Map<string, ToolInForce>;
  /** Budgets that ran short, in order; of very many the last ones. */
  readonly budgets: BudgetTold[];
  /** The last events as they came. */
  readonly events: TraceEvent[];
  /** How many events there were. */
  eventCount: number;
  /** How many turns there were. */
  turnCount: number;
  /** How many turns and calls made room for others. */
  readonly forgotten: {
    /** Turns. */
    turns: number;
    /** Calls, those of turns included. */
    calls: number;
  };
  /** Of the first event; 0 without one. */
  firstMs: number;
  /** Of the last event; 0 without one. */
  lastMs: number;
  /** The version of the package that wrote the trace, where it tells. */
  version: string;
  /** What the store last said of itself; absent where it said nothing. */
  store?: {
    /** When. */
    readonly atMs: number;
    /** As `store_changed` has it. */
    readonly state: string;
    /** The same as a sentence. */
    readonly message: string;
  };
}
