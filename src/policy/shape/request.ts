import type { ToolCallEnvelope, ToolCallRequest } from '../../contract/envelope.ts';
import type { ApprovalWhen } from '../../contract/gate/approval.ts';
import type { TraceContext } from '../../contract/event/trace-context.ts';
import { anything, byName, flag, list, maybe, number, object, oneOf, text, type Shape } from './parts.ts';

/**
 * What calls are asked for with. The schemas of `spillway/contract` say the same, for programs that have zod and for
 * the package's JSON schemas; a layer does without them, since a browser would load all that they need.
 * `test/laws/shapes.test.ts` holds both to each other.
 */
export const NAME_MAX = 256;
export const KEY_MAX = 512;
const STATE_MAX = 2_048;

const name = text(NAME_MAX);
const key = text(KEY_MAX);
const anyText = text(Infinity, 0);
const anyNumber = number(-Infinity, Infinity);
const ms = number(0, Number.MAX_SAFE_INTEGER);
const positiveMs = number(0, Number.MAX_SAFE_INTEGER, 'positive');

export const requestShape: Shape<ToolCallRequest> = object<ToolCallRequest>({
  toolName: name,
  input: maybe(anything),
  toolCallId: maybe(name),
  idempotencyKey: maybe(key),
  session: maybe(key),
  actor: maybe(key),
  tenant: maybe(key),
  traceparent: maybe(name),
  timeoutMs: maybe(positiveMs),
});

export const traceContextShape: Shape<TraceContext> = object<TraceContext>({
  traceparent: name,
  tracestate: maybe(text(STATE_MAX)),
  baggage: maybe(byName(anyText)),
});

export const envelopeShape: Shape<ToolCallEnvelope> = object<ToolCallEnvelope>({
  contractVersion: oneOf('1.1'),
  requestId: text(128),
  toolCallId: maybe(name),
  toolName: name,
  toolNamespace: name,
  target: object<ToolCallEnvelope['target']>({
    agentId: maybe(name),
    sessionKey: key,
    actorId: key,
    workspaceId: maybe(key),
    correlationId: maybe(key),
    tenantId: maybe(key),
  }),
  payload: object<ToolCallEnvelope['payload']>({
    version: oneOf('1.0'),
    params: byName(anything),
    idempotencyKey: maybe(key),
    callHints: maybe(
      object<NonNullable<ToolCallEnvelope['payload']['callHints']>>({
        safetyCritical: maybe(flag),
        expectedRetrySafe: maybe(flag),
        timeoutMs: maybe(positiveMs),
      }),
    ),
  }),
  transport: object<ToolCallEnvelope['transport']>({
    dedupeMode: oneOf('enforced', 'bestEffort', 'disabled'),
    retryBudget: object<ToolCallEnvelope['transport']['retryBudget']>({
      maxAttempts: number(1, 1_000, 'whole'),
      maxElapsedMs: ms,
    }),
    circuitBreakerHint: maybe(oneOf('tool', 'dependency', 'global')),
  }),
  control: object<ToolCallEnvelope['control']>({
    deadlineAtMs: maybe(ms),
    requestTags: maybe(list(name, 64)),
    fromHook: maybe(name),
  }),
  trace: object<ToolCallEnvelope['trace']>({
    traceparent: maybe(name),
    tracestate: maybe(text(STATE_MAX)),
    baggage: maybe(byName(anyText)),
  }),
});

/** What has to be compared; that its path is one, and that it compares once, is not said by its shape. */
export const approvalWhenShape: Shape<ApprovalWhen> = object<ApprovalWhen>({
  path: text(1_024, 0),
  above: maybe(anyNumber),
  below: maybe(anyNumber),
  equals: maybe(anything),
  unless: maybe(anything),
});
