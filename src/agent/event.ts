import type { Classification, ToolErrorKind } from '../contract/error-kind.ts';
import type { TurnEvent } from '../contract/event.ts';
import type { LlmError, LlmErrorKind } from '../contract/llm-error.ts';
import type { Effect } from '../policy/model-text.ts';
import type { AgentMessage, AssistantMessage, ToolMessage, ToolResult } from './message.ts';
import type { ModelUsage, StopReason } from './model.ts';
import type { TranscriptRepair } from './loop/transcript.ts';

/** A model's error as events tell it. For the host: the message is the provider's own. */
export interface ModelErrorReport {
  readonly kind: LlmErrorKind;
  readonly classification: Classification;
  readonly message: string;
  readonly status?: number;
  readonly code?: string;
  readonly retryAfterMs?: number;
}

export function modelErrorReport({ kind, classification, message, status, code, retryAfterMs }: LlmError): ModelErrorReport {
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
 * How a run ended. `completed`: the model gave its answer. `limit`: a limit ended it, `reason` says which; what was done is in the messages.
 * `failed`: the model failed or refused, or all turns were used and no tool ever ran. `canceled`: the caller's signal.
 */
export type AgentStatus = 'completed' | 'failed' | 'limit' | 'canceled';

export type AgentReason = 'model_error' | 'refused' | 'no_tool_executed' | 'turns' | 'time' | 'output_tokens' | 'context_full';

export interface AgentResult {
  readonly status: AgentStatus;
  /** Why it is not `completed`. */
  readonly reason?: AgentReason;
  /** With `model_error`. */
  readonly error?: ModelErrorReport;
  /** The whole transcript, repaired and gone on with: valid to be sent, stored or run again. */
  readonly messages: readonly AgentMessage[];
  /** The model's last words; empty when it had none. */
  readonly text: string;
  /** Model steps made. */
  readonly turns: number;
  /** The calls of this run whose tool ran, in call order. An output that was cut counts like any other. */
  readonly executedToolCallIds: readonly string[];
  /** By call id, for each call that failed. */
  readonly toolFailureKinds: Readonly<Record<string, ToolErrorKind>>;
  readonly hadToolFailure: boolean;
  /** Summed over the run, where the model counts. */
  readonly usage?: ModelUsage;
  /** Of the last answer. */
  readonly stopReason?: StopReason;
}

/** What happens in a run. A turn is one step of the model and the tool calls it makes; `settled` is the last event. */
export type AgentEvent =
  /** The messages given could not be sent as they were. */
  | { readonly type: 'repaired'; readonly repairs: readonly TranscriptRepair[] }
  /** `turn` is counted from 1. */
  | { readonly type: 'turn_started'; readonly turn: number }
  | { readonly type: 'text'; readonly turn: number; readonly text: string }
  | { readonly type: 'thinking'; readonly turn: number; readonly text: string }
  /** Asking the model failed; it is asked again unless `settled` follows. */
  | { readonly type: 'model_failed'; readonly turn: number; readonly error: ModelErrorReport }
  /** What was shown of this turn's text and thinking is void. */
  | { readonly type: 'discarded'; readonly turn: number }
  /** A message was added to the transcript: what to store. */
  | { readonly type: 'message'; readonly turn: number; readonly message: AssistantMessage | ToolMessage }
  /** What happens in the calls of the turn, as `spillway.turn` tells it. */
  | { readonly type: 'tools'; readonly turn: number; readonly event: TurnEvent }
  /** A call has its answer. `kind` when it failed; `effect` says whether its tool ran. */
  | { readonly type: 'tool_result'; readonly turn: number; readonly result: ToolResult; readonly effect: Effect; readonly kind?: ToolErrorKind }
  /** `failed`: it had tool calls and none of them ran. The model is told why, and the run goes on. */
  | { readonly type: 'turn_settled'; readonly turn: number; readonly status: 'completed' | 'failed'; readonly toolCalls: number; readonly executedTools: number }
  | { readonly type: 'settled'; readonly result: AgentResult };
