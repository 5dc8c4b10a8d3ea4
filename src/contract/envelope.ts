import * as z from 'zod';
import type { BreakerStateName } from './breaker-state.ts';

/** A request to run a tool, version 1.1. Every field acts. */
export interface ToolCallEnvelope {
  contractVersion: '1.1';
  /** UUIDv7 or ULID. */
  requestId: string;
  /** The id the model gave the call. It changes on every model retry: kept for observability, never a key. */
  toolCallId?: string;
  toolName: string;
  toolNamespace: string;
  target: {
    agentId?: string;
    sessionKey: string;
    actorId: string;
    workspaceId?: string;
    correlationId?: string;
    tenantId?: string;
  };
  payload: {
    version: '1.0';
    params: Record<string, unknown>;
    idempotencyKey?: string;
    callHints?: {
      safetyCritical?: boolean;
      expectedRetrySafe?: boolean;
      /** The attempt's timeout; it can shorten the tool's own, never lengthen it. */
      timeoutMs?: number;
    };
  };
  transport: {
    dedupeMode: 'enforced' | 'bestEffort' | 'disabled';
    /** Replaces the tool's `maxAttempts` and `maxTotalTimeMs` for this call. */
    retryBudget: { maxAttempts: number; maxElapsedMs: number };
    /** The scope of the breaker that guards the call. */
    circuitBreakerHint?: 'tool' | 'dependency' | 'global';
  };
  control: {
    /** Wall clock, milliseconds since the Unix epoch. */
    deadlineAtMs?: number;
    requestTags?: string[];
    fromHook?: string;
  };
  /** W3C trace context: every attempt goes on from it, unless the layer's option `traceContext` knows of a nearer one. */
  trace: { traceparent?: string; tracestate?: string; baggage?: Record<string, string> };
}

/** The short form of a call: everything else is filled in. */
export interface ToolCallRequest {
  readonly toolName: string;
  readonly input?: unknown;
  readonly toolCallId?: string;
  readonly idempotencyKey?: string;
  readonly session?: string;
  readonly actor?: string;
  readonly tenant?: string;
  /** The W3C trace context that the call is part of, 256 characters at most. */
  readonly traceparent?: string;
}

export type ToolResultStatus = 'success' | 'error' | 'retriable_error' | 'retry_exhausted' | 'circuit_open' | 'timeout';

/** Why a retry was made, and what it cost. */
export interface RetryRecord {
  /** The attempt that failed, counted from 1. */
  attempt: number;
  /** The wait before the next attempt. */
  delayMs: number;
  reasonCode: string;
  /** How long the failed attempt took. */
  latencyMs: number;
}

/** How a call ended. A result is a value: a call's stream does not error for a tool's failure. */
export interface ToolResultEnvelope {
  requestId: string;
  /** says when each applies. */
  status: ToolResultStatus;
  fromCache: boolean;
  cache?: { matchedOn: 'inflight' | 'completed'; ageMs: number; keyFingerprint: string };
  /**
   * Of a success under an idempotency key whose own run left no record, so that another may run as well: `superseded`,
   * another took the key over, and its result is given where there is one; `unrecorded`, the store did not get it. An
   * error is `uncertain` then.
   */
  recorded?: 'superseded' | 'unrecorded';
  /** The tool that gave this result: an alternative's name when it answered. */
  toolName: string;
  durationMs: number;
  /** Physical executions, those of alternatives included. */
  attempts: number;
  output?: { content: unknown; metadata?: Record<string, unknown> };
  error?: {
    /** The error's kind. */
    code: string;
    message: string;
    retriable: boolean;
    /** Asking again the same way cannot help. */
    terminal: boolean;
    breakerState?: BreakerStateName;
    /** The tool may have taken effect. */
    uncertain?: true;
    /** What a model may be told of it: what happened, and whether trying again can help, and when. */
    modelText?: string;
  };
  retriedBy?: RetryRecord[];
}

const text = (max: number): z.ZodString => z.string().min(1).max(max);
const ms: z.ZodNumber = z.number().nonnegative().max(Number.MAX_SAFE_INTEGER);
const breakerStateName: z.ZodType<BreakerStateName> = z.enum(['closed', 'open', 'half_open', 'forced_open', 'disabled']);

export const toolCallEnvelopeSchema: z.ZodType<ToolCallEnvelope> = z.strictObject({
  contractVersion: z.literal('1.1'),
  requestId: text(128),
  toolCallId: text(256).exactOptional(),
  toolName: text(256),
  toolNamespace: text(256),
  target: z.strictObject({
    agentId: text(256).exactOptional(),
    sessionKey: text(512),
    actorId: text(512),
    workspaceId: text(512).exactOptional(),
    correlationId: text(512).exactOptional(),
    tenantId: text(512).exactOptional(),
  }),
  payload: z.strictObject({
    version: z.literal('1.0'),
    params: z.record(z.string(), z.unknown()),
    idempotencyKey: text(512).exactOptional(),
    callHints: z
      .strictObject({ safetyCritical: z.boolean().exactOptional(), expectedRetrySafe: z.boolean().exactOptional(), timeoutMs: ms.positive().exactOptional() })
      .exactOptional(),
  }),
  transport: z.strictObject({
    dedupeMode: z.enum(['enforced', 'bestEffort', 'disabled']),
    retryBudget: z.strictObject({ maxAttempts: z.number().int().min(1).max(1000), maxElapsedMs: ms }),
    circuitBreakerHint: z.enum(['tool', 'dependency', 'global']).exactOptional(),
  }),
  control: z.strictObject({
    deadlineAtMs: ms.exactOptional(),
    requestTags: z.array(text(256)).max(64).exactOptional(),
    fromHook: text(256).exactOptional(),
  }),
  trace: z.strictObject({ traceparent: text(256).exactOptional(), tracestate: text(2_048).exactOptional(), baggage: z.record(z.string(), z.string()).exactOptional() }),
});

export const toolResultEnvelopeSchema: z.ZodType<ToolResultEnvelope> = z.strictObject({
  requestId: text(128),
  status: z.enum(['success', 'error', 'retriable_error', 'retry_exhausted', 'circuit_open', 'timeout']),
  fromCache: z.boolean(),
  cache: z.strictObject({ matchedOn: z.enum(['inflight', 'completed']), ageMs: ms, keyFingerprint: text(256) }).exactOptional(),
  recorded: z.enum(['superseded', 'unrecorded']).exactOptional(),
  toolName: text(256),
  durationMs: ms,
  attempts: z.number().int().nonnegative(),
  output: z.strictObject({ content: z.unknown(), metadata: z.record(z.string(), z.unknown()).exactOptional() }).exactOptional(),
  error: z
    .strictObject({ code: z.string(), message: z.string(), retriable: z.boolean(), terminal: z.boolean(), breakerState: breakerStateName.exactOptional(), uncertain: z.literal(true).exactOptional(), modelText: z.string().exactOptional() })
    .exactOptional(),
  retriedBy: z.array(z.strictObject({ attempt: z.number().int().min(1), delayMs: ms, reasonCode: z.string(), latencyMs: ms })).exactOptional(),
});
