import type { ToolCallEnvelope, ToolCallRequest } from '../../contract/envelope.ts';
import type { TurnOwnEvent } from '../../contract/event.ts';
import type { PlanNode } from '../../contract/turn.ts';
import { plan, type Plan } from '../../turn/plan.ts';
import type { RecordedCall, RecordedTurn } from './trace/recording.ts';

/** Stands for what a trace does not hold; nothing is decided by it. */
const UNTOLD = 'untold';

const envelopeOf = ({ started, terms }: RecordedCall): ToolCallEnvelope => {
  const { callId, toolName, toolCallId, session, tenant, correlationId, tags, fromHook } = started;
  const { agentId, workspaceId } = started;
  const { deadlineAtMs, maxAttempts = 1, maxElapsedMs = 0, timeoutMs, retrySafe, safetyCritical, breakerHint } = terms;
  const hints = {
    ...(timeoutMs === undefined ? {} : { timeoutMs }),
    ...(retrySafe === undefined ? {} : { expectedRetrySafe: retrySafe }),
    ...(safetyCritical === undefined ? {} : { safetyCritical }),
  };
  return {
    contractVersion: '1.1',
    requestId: callId,
    ...(toolCallId === undefined ? {} : { toolCallId }),
    toolName,
    toolNamespace: UNTOLD,
    target: {
      sessionKey: session ?? UNTOLD,
      actorId: UNTOLD,
      ...(tenant === undefined ? {} : { tenantId: tenant }),
      ...(correlationId === undefined ? {} : { correlationId }),
      ...(agentId === undefined ? {} : { agentId }),
      ...(workspaceId === undefined ? {} : { workspaceId }),
    },
    payload: { version: '1.0', params: {}, ...(Object.keys(hints).length === 0 ? {} : { callHints: hints }) },
    transport: {
      dedupeMode: 'disabled',
      retryBudget: { maxAttempts, maxElapsedMs },
      ...(breakerHint === undefined ? {} : { circuitBreakerHint: breakerHint }),
    },
    control: {
      ...(deadlineAtMs === undefined ? {} : { deadlineAtMs }),
      ...(tags === undefined ? {} : { requestTags: [...tags] }),
      ...(fromHook === undefined ? {} : { fromHook }),
    },
    trace: started.traceparent === undefined ? {} : { traceparent: started.traceparent },
  };
};

/** A request that makes the recorded call again: an envelope, where it was one. */
export const requestOf = (call: RecordedCall): ToolCallRequest | ToolCallEnvelope => {
  const { started, terms } = call;
  if (terms.maxAttempts !== undefined) return envelopeOf(call);
  const { toolName, toolCallId, session, tenant, traceparent } = started;
  return {
    toolName,
    input: {},
    ...(terms.timeoutMs === undefined ? {} : { timeoutMs: terms.timeoutMs }),
    ...(toolCallId === undefined ? {} : { toolCallId }),
    ...(session === undefined ? {} : { session }),
    ...(tenant === undefined ? {} : { tenant }),
    ...(traceparent === undefined ? {} : { traceparent }),
  };
};

type Started = Extract<TurnOwnEvent, { type: 'turn_started' }>;

const nodeOf = (
  { id, toolName, needs, toolCallId, optional, hasDefault }: Started['nodes'][number],
  failsToBegin: boolean,
): PlanNode => ({
  id,
  tool: toolName,
  needs,
  input: () => {
    // Its input could not be made when it was recorded either.
    if (failsToBegin) throw new Error(UNTOLD);
    return {};
  },
  ...(toolCallId === undefined ? {} : { toolCallId }),
  ...(optional === undefined ? {} : { optional }),
  ...(hasDefault === undefined ? {} : { default: UNTOLD }),
});

/** A plan that runs the recorded turn again. */
export const planOf = ({ started, calls, own }: RecordedTurn): Plan => {
  const begun = new Set(own.flatMap((event) => (event.type === 'node_started' ? [event.nodeId] : [])));
  const failed = new Set(
    own.flatMap((event) => (event.type === 'node_settled' && event.state === 'failed' ? [event.nodeId] : [])),
  );
  const { nodes, timeoutMs, onDeadline = 'detach', concurrency } = started;
  return plan.from(
    nodes.map((node) => nodeOf(node, begun.has(node.id) && failed.has(node.id) && !calls.has(node.id))),
    { timeoutMs, onDeadline, ...(concurrency === undefined ? {} : { concurrency }) },
  );
};
