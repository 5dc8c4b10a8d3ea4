import type { Observable } from 'rxjs';
import type { AgentMessage, ProviderData } from './message.ts';

/** A tool as a model is told of it. */
export interface ModelTool {
  readonly name: string;
  readonly description?: string;
  /** JSON Schema of an object. */
  readonly inputSchema: Readonly<Record<string, unknown>>;
}

/** Tokens, where the provider counts them. */
export interface ModelUsage {
  readonly inputTokens?: number;
  readonly outputTokens?: number;
  readonly cacheReadTokens?: number;
  readonly cacheWriteTokens?: number;
}

/**
 * Why a model stopped. `end`: it has said what it had to say, or met a stop sequence. `tool_calls`: it waits for results. `max_tokens`: it was cut
 * off. `pause`: it wants to be asked again as it is. `refusal`: it will not answer. `context_full`: the transcript fills its window.
 */
export type StopReason = 'end' | 'tool_calls' | 'max_tokens' | 'pause' | 'refusal' | 'context_full' | 'other';

/** What a model says, piece by piece. `stop` comes once, at the end; without it the answer counts as broken off. */
export type ModelEvent =
  /** A piece of text. Pieces that follow each other are one text, until `text_end`. */
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'text_end'; readonly data?: ProviderData }
  /** A piece of what it thinks, to be shown; what is stored of it comes as a `block`. */
  | { readonly type: 'thinking'; readonly text: string }
  /** A whole tool call: `input`, or `unparsed` when that was not JSON. */
  | { readonly type: 'tool_call'; readonly id: string; readonly name: string; readonly input?: unknown; readonly unparsed?: string; readonly data?: ProviderData }
  /** A block that only its provider can read, to be given back untouched. */
  | ({ readonly type: 'block' } & ProviderData)
  /** Usage so far; a later one replaces it field by field. */
  | { readonly type: 'usage'; readonly usage: ModelUsage }
  | { readonly type: 'stop'; readonly reason: StopReason };

export interface ModelOptions {
  /** Aborted when the answer is no longer wanted. */
  readonly signal: AbortSignal;
  readonly system?: string;
}

/** A model: a transcript and tools in, its answer as a cold stream out. It errors with whatever its SDK throws; unsubscribing stops it. */
export type AgentModel = (messages: readonly AgentMessage[], tools: readonly ModelTool[], options: ModelOptions) => Observable<ModelEvent>;

/** The sum of two usages; a field that neither counts stays absent. */
export function addUsage(a: ModelUsage, b: ModelUsage): ModelUsage {
  const keys = ['inputTokens', 'outputTokens', 'cacheReadTokens', 'cacheWriteTokens'] as const;
  return Object.fromEntries(keys.filter((key) => a[key] !== undefined || b[key] !== undefined).map((key) => [key, (a[key] ?? 0) + (b[key] ?? 0)]));
}
