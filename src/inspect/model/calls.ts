import type { BreakerStateName } from '../../contract/breaker-state.ts';
import type { ToolResultStatus } from '../../contract/envelope.ts';
import type { ErrorReport, ToolEvent } from '../../contract/event.ts';
import type { AttemptTold, CallTold, DecisionTold, KeyTold, NodeTold, TraceModel } from '../model.ts';
import { lineOf, progressOf, wordOf } from '../text.ts';
import { given, listOf, makeRoom, nodesById, numberOf, optionalLine, push, recordOf } from './keep.ts';
import { markCall } from './marks.ts';
import { nodeOf, turnOf } from './turns.ts';

/** Of steps of a key, and of remarks. */
const REMARKS_MAX = 50;

const errorOf = (value: unknown): ErrorReport => {
  const { kind, message, code, status, retryAfterMs, uncertain } = recordOf(value);
  return given<ErrorReport>({
    kind: lineOf(kind, 64),
    message: lineOf(message),
    code: optionalLine(code, 128),
    status: numberOf(status),
    retryAfterMs: numberOf(retryAfterMs),
    uncertain: uncertain === true ? uncertain : undefined,
  });
};

const begin = (model: TraceModel, event: ToolEvent): CallTold | undefined => {
  const turn = event.turnId === undefined ? undefined : turnOf(model, event.turnId, event.atMs);
  const node =
    turn === undefined || event.nodeId === undefined ? undefined : nodeOf(model, turn, event.nodeId, event.toolName);
  // Of a node that was too much to keep.
  if (turn !== undefined && node === undefined) return undefined;
  const call = given<CallTold>({
    callId: event.callId,
    turnId: turn?.turnId,
    nodeId: node?.nodeId,
    askedTool: lineOf(event.toolName, 256),
    toolName: lineOf(event.toolName, 256),
    startMs: event.atMs,
    status: 'running',
    attempts: [],
    attemptCount: 0,
    key: [],
    notes: [],
    replayed: false,
    isVerified: false,
  });
  // One that undoes is beside the node's own call, and not in its place.
  if (node === undefined || node.isUndone === true) model.loose.set(call.callId, call);
  else {
    if (node.call !== undefined) model.calls.delete(node.call.callId);
    node.call = call;
  }
  model.calls.set(call.callId, call);
  makeRoom(model);
  return call;
};

const running = ({ attempts }: CallTold, attempt: number): AttemptTold | undefined =>
  attempts.findLast((one) => one.attempt === attempt && one.outcome === 'running');

const beginAttempt = (model: TraceModel, call: CallTold, event: ToolEvent, attempt: unknown): AttemptTold => {
  const told = given<AttemptTold>({
    attempt: numberOf(attempt) ?? 0,
    toolName: call.toolName,
    alternative: call.toolName !== call.askedTool,
    startMs: event.atMs,
    dueAtMs: event.type === 'attempt_started' ? numberOf(event.dueAtMs) : undefined,
    outcome: 'running',
    late: event.late === true,
  });
  push(call.attempts, told, model.limits.attempts);
  return told;
};

/** An attempt's end. Of one whose start the trace does not have, the start is worked out of its duration. */
const endAttempt = (
  model: TraceModel,
  call: CallTold,
  event: Extract<ToolEvent, { type: 'attempt_succeeded' | 'attempt_failed' | 'attempt_canceled' }>,
): void => {
  const found = running(call, event.attempt);
  const durationMs = numberOf(event.durationMs) ?? 0;
  const attempt =
    found ?? beginAttempt(model, call, { ...event, atMs: event.atMs - Math.max(0, durationMs) }, event.attempt);
  attempt.endMs = event.atMs;
  if (event.late === true) attempt.late = true;
  if (event.type === 'attempt_succeeded') attempt.outcome = 'succeeded';
  else if (event.type === 'attempt_canceled') attempt.outcome = 'canceled';
  else {
    attempt.error = errorOf(event.error);
    attempt.outcome = attempt.error.kind === 'timeout' ? 'timed_out' : 'failed';
    attempt.classification = wordOf(event.classification);
    attempt.rule = lineOf(event.rule, 128);
    attempt.breakerState = wordOf(event.breakerState);
    const timeoutMs = numberOf(event.timeoutMs);
    if (timeoutMs !== undefined) attempt.timeoutMs = timeoutMs;
  }
};

const reject = (model: TraceModel, call: CallTold, event: Extract<ToolEvent, { type: 'rejected' }>): void => {
  const attempt = beginAttempt(model, call, event, event.attempt ?? 0);
  attempt.endMs = event.atMs;
  attempt.outcome = 'rejected';
  attempt.error = errorOf(event.error);
  attempt.classification = wordOf(event.classification);
  attempt.rule = lineOf(event.rule, 128);
  if (event.breakerState !== undefined) attempt.breakerState = wordOf(event.breakerState);
};

const decide = (call: CallTold, event: Extract<ToolEvent, { type: 'decision' }>): void => {
  const attempt = call.attempts.at(-1);
  if (attempt === undefined || attempt.outcome === 'running') return;
  attempt.decision ??= given<DecisionTold>({
    atMs: event.atMs,
    strategy: wordOf(event.strategy),
    code: wordOf(event.code),
    reason: lineOf(event.reason),
    delayMs: numberOf(event.delayMs),
    budgetLeft: numberOf(event.budgetLeft),
  });
};

const addKeyStep = (call: CallTold, event: Extract<ToolEvent, { type: 'dedupe' }>): void => {
  const step = given<KeyTold>({
    atMs: event.atMs,
    step: wordOf(event.step),
    keyFingerprint: lineOf(event.keyFingerprint, 64),
    leaderCallId: optionalLine(event.leaderCallId, 128),
    leaseUntilMs: numberOf(event.leaseUntilMs),
    ageMs: numberOf(event.ageMs),
    message: optionalLine(event.message),
  });
  push(call.key, step, REMARKS_MAX);
  if (event.step === 'replayed') call.replayed = true;
};

const settle = (call: CallTold, event: Extract<ToolEvent, { type: 'settled' }>): void => {
  const result = recordOf(event.result);
  call.endMs = event.atMs;
  call.status = wordOf(result['status'] as ToolResultStatus);
  if (result['fromCache'] === true) call.replayed = true;
  const error = recordOf(result['error']);
  if (typeof error['code'] === 'string')
    call.error = {
      code: lineOf(error['code'], 64),
      message: lineOf(error['message']),
      uncertain: error['uncertain'] === true,
    };
};

const startCall = (call: CallTold, event: Extract<ToolEvent, { type: 'call_started' }>): void => {
  if (event.tenant !== undefined) call.tenant = lineOf(event.tenant, 128);
  if (event.session !== undefined) call.session = lineOf(event.session, 128);
  if (event.breaker !== undefined) {
    const { key, state } = recordOf(event.breaker);
    call.breaker = { key: lineOf(key, 256), state: wordOf(state as BreakerStateName) };
  }
};

const remarkOf = (event: Extract<ToolEvent, { type: 'hook' | 'shadow' | 'escalated' | 'verified' }>): string => {
  const { message = '' } = event;
  if (event.type === 'hook') return lineOf(`${event.hook} ${event.outcome}${message === '' ? '' : `: ${message}`}`);
  if (event.type === 'verified') return lineOf(`verified: ${event.finding}${message === '' ? '' : `: ${message}`}`);
  if (event.type === 'shadow') return lineOf(`would ${event.would}: ${message}`);
  return lineOf(`escalated: ${message} (${listOf(event.choices).join(', ')})`);
};

const addTo = (model: TraceModel, call: CallTold, event: ToolEvent): void => {
  call.toolName = lineOf(event.toolName, 256);
  switch (event.type) {
    case 'call_started':
      return startCall(call, event);
    case 'attempt_started':
      call.attemptCount++;
      return void beginAttempt(model, call, event, event.attempt);
    case 'attempt_succeeded':
    case 'attempt_failed':
    case 'attempt_canceled':
      return endAttempt(model, call, event);
    case 'rejected':
      return reject(model, call, event);
    case 'decision':
      return decide(call, event);
    case 'dedupe':
      return addKeyStep(call, event);
    case 'progress': {
      const attempt = running(call, event.attempt);
      if (attempt !== undefined) attempt.progress = progressOf(event.report);
      return undefined;
    }
    case 'hook':
    case 'shadow':
    case 'escalated':
    case 'verified':
      call.isVerified ||= event.type === 'verified';
      return push(call.notes, { atMs: event.atMs, text: remarkOf(event) }, REMARKS_MAX);
    case 'alternative_used':
      return undefined;
    case 'abandoned':
      call.endMs = event.atMs;
      call.status = 'abandoned';
      return undefined;
    case 'settled':
      return settle(call, event);
  }
};

/** What the event means for the line of its node, while that has no state yet. */
const nodeFor = (model: TraceModel, { turnId, nodeId }: ToolEvent): NodeTold | undefined => {
  const turn = turnId === undefined ? undefined : model.turns.get(turnId);
  const node = turn === undefined || nodeId === undefined ? undefined : nodesById(turn).get(nodeId);
  return node?.state === undefined || node.isUndone === true ? node : undefined;
};

export function addCallEvent(model: TraceModel, event: ToolEvent): void {
  if (typeof event.callId !== 'string' || !['string', 'undefined'].includes(typeof event.turnId)) return;
  const call = model.calls.get(event.callId) ?? begin(model, event);
  if (call === undefined) return;
  addTo(model, call, event);
  const turn = call.turnId === undefined ? undefined : model.turns.get(call.turnId);
  if (turn !== undefined) {
    turn.lastMs = event.atMs;
    if (call.tenant !== undefined && turn.tenant === undefined) turn.tenant = call.tenant;
  }
  const node = nodeFor(model, event);
  if (node !== undefined) markCall(node, event, model.limits.marks);
}
