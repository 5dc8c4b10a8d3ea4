import type { CompensationReason } from '../settle/compensate.ts';
import type { VerifyFinding } from '../settle/verify.ts';
import type { Compensation, NodeState, TurnResult } from '../turn.ts';
import type { EventHeader } from './header.ts';

interface TurnHeader extends EventHeader {
  /** Tells a turn's own events from those of its calls. */
  readonly source: 'turn';
  /** A UUIDv7 that all events of the turn and of its calls carry. */
  readonly turnId: string;
}

/** What happens in one turn beside its calls. */
export type TurnOwnEvent = TurnHeader &
  (
    | {
        /** First of all events of a turn. */
        readonly type: 'turn_started';
        /** When it will settle at the latest, in milliseconds from now. */
        readonly timeoutMs: number;
        /** What is left of that, where a fleet has had the turn for a while before it was begun. */
        readonly remainingMs?: number;
        /** The plan's nodes, in its order. */
        readonly nodes: ReadonlyArray<{
          /** The node's id in the plan. */
          readonly id: string;
          /** The tool that it calls. */
          readonly toolName: string;
          /** The ids of the nodes that it waits for. */
          readonly needs: readonly string[];
          /** The id that the model gave the call. */
          readonly toolCallId?: string;
          /** The turn can do without it. */
          readonly optional?: true;
          /** It has a default, which stands in for a need that failed. */
          readonly hasDefault?: true;
        }>;
        /** What becomes of running calls at the deadline; absent in a trace of a version that did not tell it. */
        readonly onDeadline?: 'detach' | 'abort';
        /** How many calls run at a time; absent without a limit. */
        readonly concurrency?: number;
        /** The W3C trace context that the turn is part of, as its caller gave it. */
        readonly traceparent?: string;
        /** The vendors' part of it. */
        readonly tracestate?: string;
        /** The worker that begins it; absent where no fleet runs it. */
        readonly worker?: string;
      }
    | {
        /** When another worker goes on with the turn: a seam. What had settled is not told again. */
        readonly type: 'turn_moved';
        /** The worker that had it. */
        readonly from: string;
        /** The worker that has it now. */
        readonly to: string;
        /** Milliseconds from the last sign of life of the one to the start of the other. */
        readonly afterMs: number;
        /** Milliseconds since the turn was handed to the fleet; absent in a trace of a version that did not tell it. */
        readonly ranMs?: number;
        /** The trace context that the turn is part of, as `turn_started` tells it. */
        readonly traceparent?: string;
        /** The vendors' part of it. */
        readonly tracestate?: string;
      }
    | {
        /**
         * When the turn goes on elsewhere: its last event here, which only the trace of this process gets. The worker
         * that goes on with it tells `turn_moved`.
         */
        readonly type: 'turn_left';
      }
    | {
        /** When all needs of a node have settled and its call begins. */
        readonly type: 'node_started';
        /** The node's id in the plan. */
        readonly nodeId: string;
        /** The tool that it calls. */
        readonly toolName: string;
        /** Where a default stands in for a need's value: `Used default value for <node>`. */
        readonly message?: string;
      }
    | {
        /** When a node has its state, whether its call was made or not. */
        readonly type: 'node_settled';
        /** The node's id in the plan. */
        readonly nodeId: string;
        /** The tool that answered: an alternative's name when one did. */
        readonly toolName: string;
        /** How it ended. */
        readonly state: NodeState;
        /** A sentence: why it was skipped. */
        readonly message?: string;
      }
    | {
        /** When the turn's time is over and nodes are unfinished. */
        readonly type: 'deadline';
        /** The ids of those nodes. */
        readonly unfinished: readonly string[];
        /** What becomes of their running calls. */
        readonly onDeadline: 'detach' | 'abort';
      }
    | {
        /**
         * When a required node was skipped, so that a person has to choose, and when what a node did could not
         * be undone.
         */
        readonly type: 'escalated';
        /** The node that was skipped, or whose effect stays. */
        readonly nodeId: string;
        /** Its tool. */
        readonly toolName: string;
        /** A sentence for that person. */
        readonly message: string;
        /** The needs without a value. */
        readonly lacking: readonly string[];
        /** What is open to them, each an `EscalationChoice`. */
        readonly choices: readonly string[];
      }
    | {
        /** When a turn that failed begins to undo what it did. */
        readonly type: 'compensation_started';
        /** Why. */
        readonly reason: CompensationReason;
        /** The nodes that may have to be undone, in the order in which they had begun. */
        readonly nodes: readonly string[];
      }
    | {
        /** When it was asked whether an uncertain call took effect, before it is undone. */
        readonly type: 'node_verified';
        /** The node. */
        readonly nodeId: string;
        /** Its tool. */
        readonly toolName: string;
        /** What was found. */
        readonly finding: VerifyFinding;
        /** How long that took. */
        readonly durationMs: number;
        /** With `unknown`: why, as a sentence. */
        readonly message?: string;
      }
    | {
        /** When it is known what became of undoing a node: after `node_settled`, whose state it replaces. */
        readonly type: 'node_compensated';
        /** The node. */
        readonly nodeId: string;
        /** The tool whose effect it is. */
        readonly toolName: string;
        /** Whether it was undone. */
        readonly state: 'compensated' | 'compensation_failed';
        /** With `compensation_failed`: why, as a sentence. */
        readonly message?: string;
      }
    | {
        /** When all that can be undone was, before the turn settles. */
        readonly type: 'compensation_settled';
        /** What was undone, and what stays. */
        readonly compensation: Compensation;
      }
    | {
        /** When the caller unsubscribed before the turn settled: the last event then, which only the trace gets. */
        readonly type: 'abandoned';
      }
    | {
        /** Last of all events of a turn that was not abandoned, exactly once. */
        readonly type: 'settled';
        /** What the turn found; in `trace$` without its values. */
        readonly result: TurnResult;
      }
  );
