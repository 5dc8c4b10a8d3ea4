import type { Classification, ToolErrorKind } from '../contract/error-kind.ts';
import type { TurnEvent } from '../contract/event.ts';
import type { LlmError, LlmErrorKind } from '../contract/llm-error.ts';
import type { Effect } from '../policy/model-text.ts';
import type { AgentMessage, AssistantMessage, ToolMessage, ToolResult } from './message.ts';
import type { ModelUsage, StopReason } from './model.ts';
import type { TranscriptRepair } from './loop/transcript.ts';

/** A model's error as events show it. It is for the host: the message is the provider's own. */
export interface ModelErrorReport {
  /** What went wrong, as one of the closed list of kinds. */
  readonly kind: LlmErrorKind;
  /** Whether asking again can help; the run asks again only after a transient error. */
  readonly classification: Classification;
  /** The provider's message, which may hold anything: do not show it to a model. */
  readonly message: string;
  /** The HTTP status, where the provider answered with one. */
  readonly status?: number;
  /** The provider's own code, such as `overloaded_error`. */
  readonly code?: string;
  /** How long the provider asked to wait, in milliseconds. Negative or `NaN`: it asked for no retry. */
  readonly retryAfterMs?: number;
}

export function modelErrorReport({
  kind,
  classification,
  message,
  status,
  code,
  retryAfterMs,
}: LlmError): ModelErrorReport {
  return {
    kind,
    classification,
    message,
    ...(status === undefined ? {} : { status }),
    ...(code === undefined ? {} : { code }),
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
  };
}

/**
 * How a run ended. `completed`: the model gave its answer. `limit`: a limit ended it, `reason` says which; what was
 * done is in the messages. `failed`: the model failed or refused, or all turns were used and no tool ever ran.
 * `canceled`: the caller's signal.
 */
export type AgentStatus = 'completed' | 'failed' | 'limit' | 'canceled';

/**
 * Why a run did not complete.
 *
 * `model_error`: the model failed, retries included, see `error`. `refused`: the model will not answer.
 * `no_tool_executed`: all turns were used and every tool call failed before its tool ran. `turns`, `time`: a limit of
 * the run was reached. `output_tokens`: the answer was cut off at the provider's limit. `context_full`: the transcript
 * fills the model's window. `budget`: the tokens or the money of the run are used up.
 */
export type AgentReason =
  | 'model_error'
  | 'refused'
  | 'no_tool_executed'
  | 'turns'
  | 'time'
  | 'budget'
  | 'output_tokens'
  | 'context_full';

/** How a run ended, and what it left: the value of the event `settled`. */
export interface AgentResult {
  /** How the run ended. */
  readonly status: AgentStatus;
  /** Why the run did not complete; absent with `completed` and `canceled`. */
  readonly reason?: AgentReason;
  /** With the reason `model_error`: the last error of the model. */
  readonly error?: ModelErrorReport;
  /**
   * The whole transcript: the messages given, repaired, and those of this run. It can be stored, sent or run again as
   * it is.
   */
  readonly messages: readonly AgentMessage[];
  /** The text of the model's last answer; empty where it had none. */
  readonly text: string;
  /** How many times the model was asked, retries of one step counted once. */
  readonly turns: number;
  /** The calls of this run whose tool ran, in call order. An output that was cut counts like any other. */
  readonly executedToolCallIds: readonly string[];
  /** Why calls failed, by call id: one entry for each call that failed. */
  readonly toolFailureKinds: Readonly<Record<string, ToolErrorKind>>;
  /** Whether any call of the run failed, even if a later one succeeded. */
  readonly hadToolFailure: boolean;
  /**
   * How the run ended and what its calls did, in sentences for a person. They name calls whose outcome nobody knows. No
   * model and no tool wrote a word of them but the tools' names.
   */
  readonly summary: string;
  /** Tokens summed over all answers of the run, broken ones included; absent where the provider counts none. */
  readonly usage?: ModelUsage;
  /** What the tokens cost by the option `price`, in US dollars; absent without it, or where it gave no amount. */
  readonly costUsd?: number;
  /** Why the model stopped in its last answer; absent where it never finished one. */
  readonly stopReason?: StopReason;
}

/** What all events of one turn have in common. */
interface OfTurn {
  /** The number of the turn in this run, from 1. */
  readonly turn: number;
}

/** What happens in a run. A turn is one step of the model and the tool calls it makes; `settled` is the last event. */
export type AgentEvent =
  | {
      /** Emitted first, and only where the messages that were given could not be sent as they were. */
      readonly type: 'repaired';
      /** What was changed. */
      readonly repairs: readonly TranscriptRepair[];
    }
  | (OfTurn & {
      /** Emitted before the model is asked, once a turn. */
      readonly type: 'turn_started';
    })
  | (OfTurn & {
      /** Emitted for each piece of the answer's text, as it arrives. */
      readonly type: 'text';
      /** The piece; pieces that follow each other are one text. */
      readonly text: string;
    })
  | (OfTurn & {
      /** Emitted for each piece of the model's reasoning that its provider shows. */
      readonly type: 'thinking';
      /** The piece; pieces that follow each other are one text. */
      readonly text: string;
    })
  | (OfTurn & {
      /** Emitted when asking the model failed; the model is asked again unless `settled` follows. */
      readonly type: 'model_failed';
      /** What went wrong, for the host. */
      readonly error: ModelErrorReport;
    })
  | (OfTurn & {
      /** Emitted after a failure in mid-answer: the text and thinking shown of this turn so far are void. */
      readonly type: 'discarded';
    })
  | (OfTurn & {
      /** Emitted when a message is added to the transcript: store it now. */
      readonly type: 'message';
      /** The whole message, as it will be sent from now on. */
      readonly message: AssistantMessage | ToolMessage;
    })
  | (OfTurn & {
      /** Emitted for each event of the turn in which the layer runs the tool calls. */
      readonly type: 'tools';
      /** The event, as `spillway.turn` emits it. */
      readonly event: TurnEvent;
    })
  | (OfTurn & {
      /** Emitted once a call, in call order, when all calls of the turn have their answers. */
      readonly type: 'tool_result';
      /** The answer, as the model will read it. */
      readonly result: ToolResult;
      /** Whether the tool ran. */
      readonly effect: Effect;
      /** The kind of the failure; absent for a call that succeeded. */
      readonly kind?: ToolErrorKind;
    })
  | (OfTurn & {
      /** Emitted last in a turn whose model answered. */
      readonly type: 'turn_settled';
      /** `failed`: there were tool calls and none of them ran. The model reads why, and the run goes on. */
      readonly status: 'completed' | 'failed';
      /** How many calls the model made. */
      readonly toolCalls: number;
      /** How many of them had their tool run in this turn; a replayed result is not counted. */
      readonly executedTools: number;
    })
  | {
      /** Emitted once, last; then the stream completes. */
      readonly type: 'settled';
      /** How the run ended, and its whole transcript. */
      readonly result: AgentResult;
    };
