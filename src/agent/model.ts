import type { Observable } from 'rxjs';
import type { AgentMessage, ProviderData } from './message.ts';

/** What a model is told of a tool that it may call. */
export interface ModelTool {
  /** The tool's name in the layer; a model whose provider takes no such name changes it on the wire and back. */
  readonly name: string;
  /** What the tool does and when to call it, in words for the model. */
  readonly description?: string;
  /** The JSON Schema of the input, which is an object. */
  readonly inputSchema: Readonly<Record<string, unknown>>;
}

/** Tokens of an answer, or of a run. What a provider does not count is absent. */
export interface ModelUsage {
  /** Tokens sent to the model, as the provider counts them; some count cached ones here too. */
  readonly inputTokens?: number;
  /** Tokens that the model wrote, reasoning included. */
  readonly outputTokens?: number;
  /** Input tokens that the provider took from its cache. */
  readonly cacheReadTokens?: number;
  /** Input tokens that the provider put into its cache. */
  readonly cacheWriteTokens?: number;
}

/**
 * Why a model stopped. `end`: it has said what it had to say, or met a stop sequence. `tool_calls`: it waits for
 * results. `max_tokens`: it was cut off. `pause`: it wants to be asked again as it is. `refusal`: it will not answer.
 * `context_full`: the transcript fills its window.
 */
export type StopReason = 'end' | 'tool_calls' | 'max_tokens' | 'pause' | 'refusal' | 'context_full' | 'other';

/**
 * What a model answers, piece by piece. Without `stop` an answer counts as broken off, and the model is asked again.
 */
export type ModelEvent =
  | {
      /** A piece of text. Pieces that follow each other are one text, until `text_end`. */
      readonly type: 'text';
      /** The piece. */
      readonly text: string;
    }
  | {
      /** The text is complete; what comes next is another part of the message. */
      readonly type: 'text_end';
      /** What the provider wants back beside the text, such as citations. */
      readonly data?: ProviderData;
    }
  | {
      /** A piece of the model's reasoning, to be shown; what is stored of it comes as a `block`. */
      readonly type: 'thinking';
      /** The piece. */
      readonly text: string;
    }
  | {
      /** A whole tool call. */
      readonly type: 'tool_call';
      /** The id that the model gave it; the run changes it where it is empty or taken. */
      readonly id: string;
      /** The name of the tool, as it was offered. */
      readonly name: string;
      /** The parsed input. */
      readonly input?: unknown;
      /** What the model wrote as input, where that was not JSON; then there is no `input`. */
      readonly unparsed?: string;
      /** What the provider wants back beside the call, such as a signature. */
      readonly data?: ProviderData;
    }
  | ({
      /** A block that only its provider can read, to be given back untouched. */
      readonly type: 'block';
    } & ProviderData)
  | {
      /** Tokens used so far. */
      readonly type: 'usage';
      /** A later event replaces the fields it has. */
      readonly usage: ModelUsage;
    }
  | {
      /** The answer is complete. Emitted once, as the last event. */
      readonly type: 'stop';
      /** Why the model stopped. */
      readonly reason: StopReason;
    };

/** What a model step has beside messages and tools. */
export interface ModelOptions {
  /** Aborted when the answer is no longer wanted: the run was canceled, or the answer took too long. */
  readonly signal: AbortSignal;
  /** The system prompt; absent for none. */
  readonly system?: string;
}

/**
 * A model: a transcript and tools in, its answer as a cold stream out. It errors with whatever its SDK throws;
 * unsubscribing stops it.
 */
export type AgentModel = (
  messages: readonly AgentMessage[],
  tools: readonly ModelTool[],
  options: ModelOptions,
) => Observable<ModelEvent>;

/** The sum of two usages; a field that neither counts stays absent. */
export function addUsage(a: ModelUsage, b: ModelUsage): ModelUsage {
  const keys = ['inputTokens', 'outputTokens', 'cacheReadTokens', 'cacheWriteTokens'] as const;
  return Object.fromEntries(
    keys
      .filter((key) => a[key] !== undefined || b[key] !== undefined)
      .map((key) => [key, (a[key] ?? 0) + (b[key] ?? 0)]),
  );
}
