import * as z from 'zod/mini';
import type { ToolCallRequest } from '../envelope.ts';
import type { TraceContext } from '../event/trace-context.ts';

const text = (max: number): z.ZodMiniString => z.string().check(z.minLength(1), z.maxLength(max));

/** Checks a `TraceContext` that comes from elsewhere. */
export const traceContextSchema: z.ZodMiniType<TraceContext> = z.strictObject({
  traceparent: text(256),
  tracestate: z.exactOptional(text(2_048)),
  baggage: z.exactOptional(z.record(z.string(), z.string())),
});

/** Checks the short form of a call. A key that is not in it is refused. */
export const toolCallRequestSchema: z.ZodMiniType<ToolCallRequest> = z.strictObject({
  toolName: text(256),
  input: z.optional(z.unknown()),
  toolCallId: z.exactOptional(text(256)),
  idempotencyKey: z.exactOptional(text(512)),
  session: z.exactOptional(text(512)),
  actor: z.exactOptional(text(512)),
  tenant: z.exactOptional(text(512)),
  traceparent: z.exactOptional(text(256)),
  timeoutMs: z.exactOptional(z.number().check(z.positive(), z.maximum(Number.MAX_SAFE_INTEGER))),
});
