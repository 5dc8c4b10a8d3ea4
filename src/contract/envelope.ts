import * as z from 'zod/mini';
import type { BreakerStateName } from './breaker-state.ts';
import type { VerifyFinding } from './settle/verify.ts';

/** A request to run a tool, version 1.1. Every field acts. */
export interface ToolCallEnvelope {
  /** The version of this shape. Another one is refused. */
  contractVersion: '1.1';
  /** UUIDv7 or ULID. */
  requestId: string;
  /** The id the model gave the call. It changes on every model retry: kept for observability, never a key. */
  toolCallId?: string;
  /** The tool to run, 1 to 256 characters. */
  toolName: string;
  /** Part of the computed idempotency key, so that tools of the same name in two places are apart. */
  toolNamespace: string;
  /** On whose behalf the call is made. */
  target: {
    /** The agent that asks; it is in the event `call_started` and in spans. */
    agentId?: string;
    /** The session: part of the call's idempotency key, and what `flush({ session })` finds it by. */
    sessionKey: string;
    /** The user or service: part of a computed idempotency key. */
    actorId: string;
    /** The workspace of the agent; it is in the event `call_started` and in spans. */
    workspaceId?: string;
    /** Ties the call to others of the host; it is in the event `call_started` and in logs. */
    correlationId?: string;
    /** The tenant: part of every key, and a tenant's calls have breakers of their own. */
    tenantId?: string;
  };
  /** What is asked of the tool. */
  payload: {
    /** The version of the payload's shape. Another one is refused. */
    version: '1.0';
    /** The tool's input, before its schema. */
    params: Record<string, unknown>;
    /** The caller's own key, 1 to 512 characters; without one the key is computed from the input. */
    idempotencyKey?: string;
    /** What the caller knows about this one call. */
    callHints?: {
      /** Forbids every retry of an uncertain mutation, as `safetyCritical` of the tool's policy does. */
      safetyCritical?: boolean;
      /** Says that repeating the call does no harm: an uncertain mutation may then be retried. */
      expectedRetrySafe?: boolean;
      /** The attempt's timeout; it can shorten the tool's own, never lengthen it. */
      timeoutMs?: number;
    };
  };
  /** How the call is to be guarded. */
  transport: {
    /**
     * `enforced`: waits for a call of the same key that runs, and fails without the store. `bestEffort`: fails at once
     * while another runs, and runs unprotected without the store. `disabled`: no key, no store.
     */
    dedupeMode: 'enforced' | 'bestEffort' | 'disabled';
    /** Replaces the tool's `maxAttempts` and `maxTotalTimeMs` for this call. */
    retryBudget: {
      /** Attempts in all, the first included: 1 to 1,000. */
      maxAttempts: number;
      /** No attempt starts this many milliseconds after the first, or later. */
      maxElapsedMs: number;
    };
    /** The scope of the breaker that guards the call. */
    circuitBreakerHint?: 'tool' | 'dependency' | 'global';
  };
  /** What bounds the call, and what the host wants to find it by. */
  control: {
    /** Wall clock, milliseconds since the Unix epoch. */
    deadlineAtMs?: number;
    /** Labels of the host's, at most 64; they are in the event `call_started`, in logs, and given to hooks. */
    requestTags?: string[];
    /** The hook of the host's that asked for the call; it is in the event `call_started` and in logs. */
    fromHook?: string;
  };
  /** The trace that the call continues. */
  trace: {
    /** W3C trace context: each attempt goes on from it, unless the layer's option `traceContext` gives a nearer one. */
    traceparent?: string;
    /** The vendors' part of it, 2,048 characters at most. */
    tracestate?: string;
    /** W3C baggage by name, given on to the tool. */
    baggage?: Record<string, string>;
  };
}

/** The short form of a call: everything else is filled in. */
export interface ToolCallRequest {
  /** The tool to run, 1 to 256 characters. */
  readonly toolName: string;
  /** The tool's input, before its schema. */
  readonly input?: unknown;
  /** The id that the model gave the call, for the trace. It changes when a model asks again, so it is no key. */
  readonly toolCallId?: string;
  /** A second call of this key gets the first one's result (`enforced`). Without one the call is not deduped. */
  readonly idempotencyKey?: string;
  /** The session: part of the key. Default: none. */
  readonly session?: string;
  /** The user or service that asks, given to hooks. Default: none. */
  readonly actor?: string;
  /** The tenant: part of the key, and a tenant's calls have breakers of their own. Default: none. */
  readonly tenant?: string;
  /** The W3C trace context that the call is part of, 256 characters at most. */
  readonly traceparent?: string;
  /** The attempt's timeout; it can shorten the tool's own, never lengthen it. Default: the tool's own. */
  readonly timeoutMs?: number;
}

/**
 * How a call ended, in one word. `success`. `circuit_open`: the breaker refused its first attempt.
 * `retry_exhausted`: it was retried, and attempts, time or budget ran out. `timeout`: a time limit ended it without a
 * retry. `retriable_error`: a transient error that was not retried. `error`: all else; asking again the same way cannot
 * help.
 */
export type ToolResultStatus = 'success' | 'error' | 'retriable_error' | 'retry_exhausted' | 'circuit_open' | 'timeout';

/** Why a retry was made, and what it cost. */
export interface RetryRecord {
  /** The attempt that failed, counted from 1. */
  attempt: number;
  /** The wait before the next attempt. */
  delayMs: number;
  /** The kind of the error that led to the retry. */
  reasonCode: string;
  /** How long the failed attempt took. */
  latencyMs: number;
}

/** How a call ended. A result is a value: a call's stream does not error for a tool's failure. */
export interface ToolResultEnvelope {
  /** The id of the call: that of its envelope, or the UUIDv7 that the short form was given. */
  requestId: string;
  /** says when each applies. */
  status: ToolResultStatus;
  /** True when the result is that of another call of the same idempotency key. */
  fromCache: boolean;
  /** Where a result with `fromCache` comes from. */
  cache?: {
    /** `inflight`: this call waited for the other. `completed`: the other had ended before. */
    matchedOn: 'inflight' | 'completed';
    /** Milliseconds since the result was recorded, by the store's clock. */
    ageMs: number;
    /** 16 hex digits that tell keys apart and give none away. */
    keyFingerprint: string;
  };
  /**
   * Of a success under an idempotency key whose own run left no record, so that another may run as well: `superseded`,
   * another took the key over, and its result is given where there is one; `unrecorded`, the store did not get it. An
   * error is `uncertain` then.
   */
  recorded?: 'superseded' | 'unrecorded';
  /**
   * What was found out at last, by the tool's `verify`, of an attempt that ended uncertain. `done`: of a success, that
   * it was found to be one. `not_done`: of an error, that nothing was done. `unknown`: the error is still uncertain.
   * Absent where nothing was asked, or an attempt after it succeeded by itself.
   */
  verified?: VerifyFinding;
  /** The tool that gave this result: an alternative's name when it answered. */
  toolName: string;
  /** How long the call took, with its waits and retries. */
  durationMs: number;
  /** Physical executions, those of alternatives included. */
  attempts: number;
  /** With `success`: what the tool gave. */
  output?: {
    /** The tool's last value, as its output schema makes it. */
    content: unknown;
    /** `{ alternativeFor }` names the tool that was asked for, when an alternative answered. */
    metadata?: Record<string, unknown>;
  };
  /** With every status but `success`: what went wrong. */
  error?: {
    /** The error's kind. */
    code: string;
    /** The error's own text. It may come from outside: show a model `modelText` instead. */
    message: string;
    /** The failure is transient: asking again may help. */
    retriable: boolean;
    /** Asking again the same way cannot help. */
    terminal: boolean;
    /** The breaker's state after the failure; absent where no breaker saw the call. */
    breakerState?: BreakerStateName;
    /** The tool may have taken effect. */
    uncertain?: true;
    /** What a model may be told of it: what happened, and whether trying again can help, and when. */
    modelText?: string;
  };
  /** One entry for each retry, in order; absent when there was none. */
  retriedBy?: RetryRecord[];
}

const text = (max: number): z.ZodMiniString => z.string().check(z.minLength(1), z.maxLength(max));
const ms: z.ZodMiniNumber = z.number().check(z.nonnegative(), z.maximum(Number.MAX_SAFE_INTEGER));
const breakerStateName: z.ZodMiniType<BreakerStateName> = z.enum([
  'closed',
  'open',
  'half_open',
  'forced_open',
  'disabled',
]);

/**
 * Checks a `ToolCallEnvelope`; the package's `schemas/tool-call.schema.json` is made from it. A key that is not in it
 * is refused. Texts are 1 to 256 characters long (ids of requests 128; keys, sessions, actors, tenants 512), tags at
 * most 64.
 *
 * @example
 * const { success, error } = toolCallEnvelopeSchema.safeParse(JSON.parse(body));
 */
export const toolCallEnvelopeSchema: z.ZodMiniType<ToolCallEnvelope> = z.strictObject({
  contractVersion: z.literal('1.1'),
  requestId: text(128),
  toolCallId: z.exactOptional(text(256)),
  toolName: text(256),
  toolNamespace: text(256),
  target: z.strictObject({
    agentId: z.exactOptional(text(256)),
    sessionKey: text(512),
    actorId: text(512),
    workspaceId: z.exactOptional(text(512)),
    correlationId: z.exactOptional(text(512)),
    tenantId: z.exactOptional(text(512)),
  }),
  payload: z.strictObject({
    version: z.literal('1.0'),
    params: z.record(z.string(), z.unknown()),
    idempotencyKey: z.exactOptional(text(512)),
    callHints: z.exactOptional(
      z.strictObject({
        safetyCritical: z.exactOptional(z.boolean()),
        expectedRetrySafe: z.exactOptional(z.boolean()),
        timeoutMs: z.exactOptional(z.number().check(z.positive(), z.maximum(Number.MAX_SAFE_INTEGER))),
      }),
    ),
  }),
  transport: z.strictObject({
    dedupeMode: z.enum(['enforced', 'bestEffort', 'disabled']),
    retryBudget: z.strictObject({
      maxAttempts: z.number().check(z.int(), z.minimum(1), z.maximum(1000)),
      maxElapsedMs: ms,
    }),
    circuitBreakerHint: z.exactOptional(z.enum(['tool', 'dependency', 'global'])),
  }),
  control: z.strictObject({
    deadlineAtMs: z.exactOptional(ms),
    requestTags: z.exactOptional(z.array(text(256)).check(z.maxLength(64))),
    fromHook: z.exactOptional(text(256)),
  }),
  trace: z.strictObject({
    traceparent: z.exactOptional(text(256)),
    tracestate: z.exactOptional(text(2_048)),
    baggage: z.exactOptional(z.record(z.string(), z.string())),
  }),
});

/**
 * Checks a `ToolResultEnvelope`; the package's `schemas/tool-result.schema.json` is made from it. A key that is not in
 * it is refused.
 */
export const toolResultEnvelopeSchema: z.ZodMiniType<ToolResultEnvelope> = z.strictObject({
  requestId: text(128),
  status: z.enum(['success', 'error', 'retriable_error', 'retry_exhausted', 'circuit_open', 'timeout']),
  fromCache: z.boolean(),
  cache: z.exactOptional(
    z.strictObject({ matchedOn: z.enum(['inflight', 'completed']), ageMs: ms, keyFingerprint: text(256) }),
  ),
  recorded: z.exactOptional(z.enum(['superseded', 'unrecorded'])),
  verified: z.exactOptional(z.enum(['done', 'not_done', 'unknown'])),
  toolName: text(256),
  durationMs: ms,
  attempts: z.number().check(z.int(), z.nonnegative()),
  output: z.exactOptional(
    z.strictObject({ content: z.unknown(), metadata: z.exactOptional(z.record(z.string(), z.unknown())) }),
  ),
  error: z.exactOptional(
    z.strictObject({
      code: z.string(),
      message: z.string(),
      retriable: z.boolean(),
      terminal: z.boolean(),
      breakerState: z.exactOptional(breakerStateName),
      uncertain: z.exactOptional(z.literal(true)),
      modelText: z.exactOptional(z.string()),
    }),
  ),
  retriedBy: z.exactOptional(
    z.array(
      z.strictObject({
        attempt: z.number().check(z.int(), z.minimum(1)),
        delayMs: ms,
        reasonCode: z.string(),
        latencyMs: ms,
      }),
    ),
  ),
});
