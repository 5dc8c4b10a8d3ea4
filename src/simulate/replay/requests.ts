import type { ToolCallEnvelope, ToolCallRequest } from '../../contract/envelope.ts';
import type { TurnOwnEvent } from '../../contract/event.ts';
import type { Plan, PlanNode } from '../../contract/turn.ts';
import { PlanError, plan } from '../../turn/plan.ts';
import { ReplayRefusal } from './refusal.ts';
import type { RecordedKey } from './trace/keys.ts';
import type { RecordedCall, RecordedTurn } from './trace/recording.ts';

/** Stands for what a trace does not hold; nothing is decided by it. */
const UNTOLD = 'untold';

/** The same for all calls of a key, but for one that asked for something else under it. */
const inputOf = (key: RecordedKey | undefined): Record<string, unknown> =>
  key?.steps.some(({ step }) => step === 'conflict') === true ? { asks: key.callId } : {};

/** As the short form has it, so that calls of both forms meet under a key. */
const NAMESPACE = 'tools';

const hintsOf = ({
  timeoutMs,
  retrySafe,
  safetyCritical,
}: RecordedCall['terms']): NonNullable<ToolCallEnvelope['payload']['callHints']> => ({
  ...(timeoutMs === undefined ? {} : { timeoutMs }),
  ...(retrySafe === undefined ? {} : { expectedRetrySafe: retrySafe }),
  ...(safetyCritical === undefined ? {} : { safetyCritical }),
});

const envelopeOf = ({ started, terms }: RecordedCall, key: RecordedKey | undefined): ToolCallEnvelope => {
  const { callId, toolName, toolCallId, session, tenant, correlationId, tags, fromHook } = started;
  const { agentId, workspaceId } = started;
  const { deadlineAtMs, maxAttempts = 1, maxElapsedMs = 0, breakerHint } = terms;
  const hints = hintsOf(terms);
  return {
    contractVersion: '1.1',
    requestId: callId,
    ...(toolCallId === undefined ? {} : { toolCallId }),
    toolName,
    toolNamespace: NAMESPACE,
    target: {
      sessionKey: session ?? UNTOLD,
      actorId: UNTOLD,
      ...(tenant === undefined ? {} : { tenantId: tenant }),
      ...(correlationId === undefined ? {} : { correlationId }),
      ...(agentId === undefined ? {} : { agentId }),
      ...(workspaceId === undefined ? {} : { workspaceId }),
    },
    payload: {
      version: '1.0',
      params: inputOf(key),
      // Without a step it had none: it asked for dedupe, and its layer computes no keys.
      ...(key === undefined || key.steps.length === 0 ? {} : { idempotencyKey: key.name }),
      ...(Object.keys(hints).length === 0 ? {} : { callHints: hints }),
    },
    transport: {
      dedupeMode: key === undefined ? 'disabled' : terms.bestEffort === true ? 'bestEffort' : 'enforced',
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
export const requestOf = (call: RecordedCall, key: RecordedKey | undefined): ToolCallRequest | ToolCallEnvelope => {
  const { started, terms } = call;
  if (terms.maxAttempts !== undefined) return envelopeOf(call, key);
  const { toolName, toolCallId, session, tenant, traceparent } = started;
  return {
    toolName,
    input: inputOf(key),
    ...(key === undefined ? {} : { idempotencyKey: key.name }),
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
  key: RecordedKey | undefined,
): PlanNode => ({
  id,
  tool: toolName,
  needs,
  input: () => {
    // Its input could not be made when it was recorded either.
    if (failsToBegin) throw new Error(UNTOLD);
    return inputOf(key);
  },
  ...(key === undefined ? {} : { idempotencyKey: key.name }),
  ...(toolCallId === undefined ? {} : { toolCallId }),
  ...(optional === undefined ? {} : { optional }),
  ...(hasDefault === undefined ? {} : { default: UNTOLD }),
});

/**
 * A plan that runs the recorded turn again.
 * @throws ReplayRefusal where no plan has such nodes
 */
export const planOf = (turn: RecordedTurn, keys: ReadonlyMap<string, RecordedKey>): Plan => {
  try {
    return again(turn, keys);
  } catch (error) {
    if (!(error instanceof PlanError || error instanceof RangeError)) throw error;
    const { seq } = turn.started;
    throw new ReplayRefusal('malformed', `event ${seq} (turn_started) is of no plan: ${error.message}`, seq);
  }
};

const again = ({ started, calls, own }: RecordedTurn, keys: ReadonlyMap<string, RecordedKey>): Plan => {
  const begun = new Set(own.flatMap((event) => (event.type === 'node_started' ? [event.nodeId] : [])));
  const failed = new Set(
    own.flatMap((event) => (event.type === 'node_settled' && event.state === 'failed' ? [event.nodeId] : [])),
  );
  const { nodes, timeoutMs, onDeadline = 'detach', concurrency } = started;
  return plan.from(
    nodes.map((node) =>
      nodeOf(
        node,
        begun.has(node.id) && failed.has(node.id) && !calls.has(node.id),
        keys.get(calls.get(node.id)?.callId ?? ''),
      ),
    ),
    { timeoutMs, onDeadline, ...(concurrency === undefined ? {} : { concurrency }) },
  );
};
