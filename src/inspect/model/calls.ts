import type { BreakerStateName } from '../../contract/breaker-state.ts';
import type { ToolResultStatus } from '../../contract/envelope.ts';
import type { ErrorReport, ToolEvent } from '../../contract/event.ts';
import type { AttemptTold, CallTold, DecisionTold, KeyTold, NodeTold, TraceModel, TurnTold } from '../model.ts';
import { duration, lineOf, progressOf, sentence, wordOf } from '../text.ts';
import {
  forgetCall,
  given,
  idOf,
  listOf,
  makeRoom,
  nodesById,
  numberOf,
  optionalLine,
  push,
  recordOf,
} from './keep.ts';
import { markCall } from './marks.ts';
import { noteCall } from './notes.ts';
import { nodeOf, stopWaiting, turnOf } from './turns.ts';

/** Of steps of a key, and of remarks. */
const REMARKS_MAX = 50;

const errorOf = (value: unknown): ErrorReport => {
  const { kind, message, code, status, retryAfterMs, uncertain } = recordOf(value);
  return given<ErrorReport>({
    kind: lineOf(kind, 64),
    message: lineOf(message),
    code: optionalLine(code),
    status: numberOf(status),
    retryAfterMs: numberOf(retryAfterMs),
    uncertain: uncertain === true ? uncertain : undefined,
  });
};

const begin = (model: TraceModel, event: ToolEvent): CallTold | undefined => {
  const turn = event.turnId === undefined ? undefined : turnOf(model, idOf(event.turnId), event.atMs);
  const node =
    turn === undefined || event.nodeId === undefined ? undefined : nodeOf(model, turn, event.nodeId, event.toolName);
  // Of a node that was too much to keep.
  if (turn !== undefined && node === undefined) return undefined;
  const call = given<CallTold>({
    callId: idOf(event.callId),
    turnId: turn?.turnId,
    nodeId: node?.nodeId,
    askedTool: idOf(event.toolName),
    toolName: idOf(event.toolName),
    startMs: event.atMs,
    status: 'running',
    attempts: [],
    attemptCount: 0,
    key: [],
    notes: [],
    replayed: false,
    isVerified: false,
    isGated: false,
    isHolding: false,
  });
  if (node === undefined) model.loose.set(call.callId, call);
  else {
    // One that undoes is beside the node's own call, and not in its place.
    const before = node.isUndone === true ? node.undoing : node.call;
    if (before !== undefined && before.callId !== call.callId) forgetCall(model, before);
    if (node.isUndone === true) node.undoing = call;
    else node.call = call;
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

const fail = (
  attempt: AttemptTold,
  { error, classification, rule, breakerState }: Extract<ToolEvent, { type: 'attempt_failed' | 'rejected' }>,
): ErrorReport => {
  attempt.classification = wordOf(classification);
  attempt.rule = idOf(rule);
  if (breakerState !== undefined) attempt.breakerState = wordOf(breakerState);
  return (attempt.error = errorOf(error));
};

const remark = ({ notes }: CallTold, atMs: number, text: string): void =>
  push(notes, { atMs, text: lineOf(text) }, REMARKS_MAX);

const noteUsage = (
  call: CallTold,
  { atMs, usage }: Extract<ToolEvent, { type: 'attempt_succeeded' | 'attempt_failed' }>,
): void => {
  const used = ['usd', 'tokens'].flatMap((unit) => {
    const amount = numberOf(recordOf(usage)[unit]);
    return amount === undefined ? [] : [`${amount} ${unit}`];
  });
  if (used.length > 0) remark(call, atMs, `used ${used.join(', ')}`);
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
  if (event.type !== 'attempt_canceled') noteUsage(call, event);
  if (event.type === 'attempt_succeeded') attempt.outcome = 'succeeded';
  else if (event.type === 'attempt_canceled') attempt.outcome = 'canceled';
  else {
    const error = fail(attempt, event);
    attempt.outcome = error.kind === 'timeout' ? 'timed_out' : 'failed';
    const timeoutMs = numberOf(event.timeoutMs);
    if (timeoutMs !== undefined) attempt.timeoutMs = timeoutMs;
  }
};

const reject = (model: TraceModel, call: CallTold, event: Extract<ToolEvent, { type: 'rejected' }>): void => {
  const attempt = beginAttempt(model, call, event, event.attempt ?? 0);
  attempt.endMs = event.atMs;
  attempt.outcome = 'rejected';
  fail(attempt, event);
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
    leaderCallId: optionalLine(event.leaderCallId),
    leaseUntilMs: numberOf(event.leaseUntilMs),
    ageMs: numberOf(event.ageMs),
    message: optionalLine(event.message),
  });
  push(call.key, step, REMARKS_MAX);
  if (event.step === 'replayed') call.replayed = true;
};

const end = (call: CallTold, atMs: number, status: CallTold['status']): void => {
  call.endMs = atMs;
  call.status = status;
};

const settle = (call: CallTold, event: Extract<ToolEvent, { type: 'settled' }>): void => {
  const result = recordOf(event.result);
  end(call, event.atMs, wordOf(result['status'] as ToolResultStatus));
  if (result['fromCache'] === true) call.replayed = true;
  const hooksMs = numberOf(event.hooksMs);
  if (hooksMs !== undefined) remark(call, event.atMs, `hooks ${duration(hooksMs)}`);
  const error = recordOf(result['error']);
  if (typeof error['code'] === 'string')
    call.error = {
      code: lineOf(error['code'], 64),
      message: lineOf(error['message']),
      uncertain: error['uncertain'] === true,
    };
};

const startCall = (call: CallTold, event: Extract<ToolEvent, { type: 'call_started' }>): void => {
  const { presumed, effects } = recordOf(event.tool);
  const { verifies, undoes, mode } = event;
  for (const [name, value] of Object.entries({ verifies, undoes, mode, presumed: presumed && effects }))
    if (typeof value === 'string') remark(call, event.atMs, `${name} ${value}`);
  if (event.tenant !== undefined) call.tenant = idOf(event.tenant);
  if (event.breaker !== undefined) {
    const { key, state } = recordOf(event.breaker);
    call.breaker = { key: idOf(key), state: wordOf(state as BreakerStateName) };
  }
};

const wait = (call: CallTold, turn: TurnTold | undefined, event: ToolEvent): void => {
  stopWaiting(turn, call, event.atMs);
  if (event.type !== 'approval' || event.step !== 'asked') return;
  call.waitsSinceMs = event.atMs;
  if (turn === undefined || event.holdsTurn !== true) return;
  call.isHolding = true;
  if (turn.heldBy++ === 0) turn.heldMs -= event.atMs;
};

const remarkOf = (
  event: Extract<ToolEvent, { type: 'approval' | 'hook' | 'shadow' | 'escalated' | 'verified' }>,
): string => {
  const why = event.message === undefined ? '' : sentence`: ${event.message}`;
  switch (event.type) {
    case 'approval':
      return sentence`approval ${event.step}${event.by === undefined ? '' : sentence` by ${event.by}`}${why}`;
    case 'hook':
      return sentence`${event.hook} ${event.outcome}${why}`;
    case 'verified':
      return sentence`verified: ${event.finding}${why}`;
    case 'shadow':
      return sentence`would ${event.would}${why}`;
    case 'escalated':
      return `escalated${why} (${listOf(event.choices).map(idOf).join(', ')})`;
  }
};

const addTo = (model: TraceModel, call: CallTold, event: ToolEvent): void => {
  call.toolName = idOf(event.toolName);
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
    case 'approval':
    case 'hook':
    case 'shadow':
    case 'escalated':
    case 'verified':
      return remark(call, event.atMs, remarkOf(event));
    case 'abandoned':
      return end(call, event.atMs, 'abandoned');
    case 'settled':
      return settle(call, event);
    default:
      return undefined;
  }
};

/** What the event means for the line of its node, while that has no state yet. */
const nodeFor = (turn: TurnTold | undefined, { nodeId }: ToolEvent): NodeTold | undefined => {
  const node = turn === undefined || nodeId === undefined ? undefined : nodesById(turn).get(nodeId);
  return node?.state === undefined || node.isUndone === true ? node : undefined;
};

export function addCallEvent(model: TraceModel, event: ToolEvent): void {
  if (typeof event.callId !== 'string') return;
  const known = model.calls.get(idOf(event.callId));
  // An id that is used again, once its call has ended, is another call.
  const isAnother = event.type === 'call_started' && known !== undefined && known.status !== 'running';
  const call = known === undefined || isAnother ? begin(model, event) : known;
  if (call === undefined) return;
  addTo(model, call, event);
  const turn = call.turnId === undefined ? undefined : model.turns.get(call.turnId);
  if (event.type === 'approval' || event.type === 'settled' || event.type === 'abandoned') wait(call, turn, event);
  if (turn !== undefined) {
    turn.lastMs = event.atMs;
    if (call.tenant !== undefined && turn.tenant === undefined) turn.tenant = call.tenant;
  }
  const node = nodeFor(turn, event);
  if (node === undefined) return;
  markCall(node, event, model.limits.marks);
  noteCall(node, event);
}
