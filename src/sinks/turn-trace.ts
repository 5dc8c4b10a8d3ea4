import { Temporal } from '@js-temporal/polyfill';
import type { ApprovalStep, DedupeStep, TraceEvent } from '../contract/event.ts';
import type { VerifyFinding } from '../contract/settle/verify.ts';

/** One line of a turn's trace, in the words of the systems that read it. */
export interface TurnTraceEntry {
  /** What happened. */
  readonly event_type:
    | 'ToolError'
    | 'ToolTimeout'
    | 'ToolSucceeded'
    | 'ToolFailed'
    | 'ToolSkipped'
    | 'ToolCanceled'
    | 'AlternativeTool'
    | 'DefaultValue'
    | 'CircuitBreaker'
    | 'Deduplication'
    | 'Hook'
    | 'Verification'
    | 'Approval'
    | 'Budget'
    | 'ToolCompensated'
    | 'CompensationFailed'
    | 'Shadow'
    | 'Store'
    | 'Escalation'
    | 'TurnMoved'
    | 'TurnTimeout'
    | 'TurnSettled';
  /** The tool's name, or the breaker's; absent for what concerns a whole turn or the store. */
  readonly tool_id?: string;
  /** The id of the turn; absent for a call of its own. */
  readonly turn_id?: string;
  /** The error's message, redacted as in the trace. */
  readonly error?: string;
  /** The error's class: `transient` or `permanent`. */
  readonly classification?: string;
  /** The state of the tool's breaker; absent where it was not asked. */
  readonly circuit_breaker_state?: string;
  /** How many retries were made before this. */
  readonly retry_count?: number;
  /**
   * What was decided: the strategy after an error, the step of a claim, the outcome of a hook, what a verification
   * found, the step of an approval or a budget, what shadow mode would do, or the state of the store.
   */
  readonly decision?: string;
  /** With `ToolTimeout`: the limit that was reached, in milliseconds. */
  readonly timeout_ms?: number;
  /** What happened, in a phrase for a person. */
  readonly message?: string;
  /** When it happened: ISO 8601, in UTC. */
  readonly timestamp: string;
}

/** What a claim's step means for a person. The others change nothing that its attempts and its end do not tell. */
const DEDUPE_PHRASES: Readonly<Partial<Record<DedupeStep, string>>> = {
  taken_over: 'Took over from a call that lost its lease',
  waiting: 'Waits for the same call',
  replayed: 'Replayed the result of the same call',
  conflict: 'Idempotency key was used with other parameters',
  busy: 'Refused, since the same call runs',
  lease_lost: 'Lost its lease while it ran',
  superseded: 'Outcome refused, since another holds the key',
  unrecorded: 'Outcome could not be stored',
  unprotected: 'Runs without protection against duplicates',
};

const VERIFIED_PHRASES: Readonly<Record<VerifyFinding, string>> = {
  done: 'Verified that the call took effect',
  not_done: 'Verified that the call did not take effect',
  unknown: 'Could not verify whether the call took effect',
};

type Entry = Omit<TurnTraceEntry, 'timestamp' | 'turn_id'>;

const settledTypes = {
  succeeded: 'ToolSucceeded',
  defaulted: 'ToolSucceeded',
  failed: 'ToolFailed',
  skipped: 'ToolSkipped',
  timed_out: 'ToolFailed',
  canceled: 'ToolCanceled',
  compensated: 'ToolCompensated',
  compensation_failed: 'CompensationFailed',
} as const;

type OfType<T extends TraceEvent['type']> = Extract<TraceEvent, { type: T }>;

const ofHook = ({ toolName: tool_id, hook, outcome, attempt, message }: OfType<'hook'>): Entry => {
  const said = `${hook} ${outcome.replace('_', ' ')}`;
  return {
    event_type: 'Hook',
    tool_id,
    retry_count: Math.max(0, attempt - 1),
    decision: outcome,
    message: message === undefined ? said : `${said}: ${message}`,
  };
};

const ofVerification = ({ toolName: tool_id, attempt, finding }: OfType<'verified'>): Entry => ({
  event_type: 'Verification',
  tool_id,
  retry_count: Math.max(0, attempt - 1),
  decision: finding,
  message: VERIFIED_PHRASES[finding],
});

const APPROVAL_PHRASES: Readonly<Record<ApprovalStep, string>> = {
  asked: 'Asked a person to approve the call',
  approved: 'A person approved the call',
  denied: 'A person did not approve the call',
  expired: 'Nobody approved the call in time',
  withdrawn: 'The question to a person was withdrawn',
};

const ofApproval = ({ toolName: tool_id, step, by, message }: OfType<'approval'>): Entry => {
  const who = by === undefined ? '' : `, by ${by}`;
  const why = message === undefined ? '' : `: ${message}`;
  return { event_type: 'Approval', tool_id, decision: step, message: `${APPROVAL_PHRASES[step]}${who}${why}` };
};

const ofCall = (event: Extract<TraceEvent, { source: 'call' }>): Entry | undefined => {
  const tool_id = event.toolName;
  switch (event.type) {
    case 'decision': {
      const { error, classification, breakerState, attempt, strategy, reason } = event;
      const seen = breakerState === undefined ? {} : { circuit_breaker_state: breakerState };
      const failure = { error: error.message, classification, ...seen, retry_count: Math.max(0, attempt - 1) };
      return { event_type: 'ToolError', tool_id, ...failure, decision: strategy, message: reason };
    }
    case 'attempt_failed': {
      const { error, classification, breakerState, attempt, timeoutMs } = event;
      // Every other failure has an entry already: that of the decision about it.
      if (timeoutMs === undefined) return undefined;
      const failure = {
        error: error.message,
        classification,
        circuit_breaker_state: breakerState,
        retry_count: attempt - 1,
      };
      return { event_type: 'ToolTimeout', tool_id, timeout_ms: timeoutMs, ...failure };
    }
    case 'attempt_succeeded':
      return {
        event_type: 'ToolSucceeded',
        tool_id,
        retry_count: event.attempt - 1,
        ...(event.message === undefined ? {} : { message: event.message }),
      };
    case 'attempt_canceled':
      return { event_type: 'ToolCanceled', tool_id, retry_count: event.attempt - 1 };
    case 'alternative_used':
      return { event_type: 'AlternativeTool', tool_id, message: event.message };
    case 'escalated':
      return {
        event_type: 'Escalation',
        tool_id,
        error: event.error.message,
        classification: event.classification,
        message: event.message,
      };
    case 'settled': {
      const { error, retriedBy = [] } = event.result;
      // A success has an entry already: that of its attempt.
      return error === undefined
        ? undefined
        : { event_type: 'ToolFailed', tool_id, error: error.message, retry_count: retriedBy.length };
    }
    case 'dedupe': {
      const phrase = DEDUPE_PHRASES[event.step];
      return phrase === undefined
        ? undefined
        : { event_type: 'Deduplication', tool_id, decision: event.step, message: phrase };
    }
    case 'hook':
      return ofHook(event);
    case 'approval':
      return ofApproval(event);
    case 'verified':
      return ofVerification(event);
    case 'shadow':
      return {
        event_type: 'Shadow',
        tool_id,
        decision: event.would,
        message: `Would ${event.would.replace('_', ' ')}: ${event.message}`,
      };
    case 'call_started':
    case 'abandoned':
    case 'attempt_started':
    case 'progress':
    case 'rejected':
      return undefined;
  }
};

const ofTurn = (event: Extract<TraceEvent, { source: 'turn' }>): Entry | undefined => {
  switch (event.type) {
    case 'node_started':
      return event.message === undefined
        ? undefined
        : { event_type: 'DefaultValue', tool_id: event.toolName, message: event.message };
    case 'node_settled':
      if (event.state === 'succeeded' || event.state === 'defaulted' || event.state === 'failed') return undefined;
      return {
        event_type: settledTypes[event.state],
        tool_id: event.toolName,
        message: event.message ?? `${event.nodeId} ${event.state.replace('_', ' ')}`,
      };
    case 'escalated':
      return { event_type: 'Escalation', tool_id: event.toolName, message: event.message };
    case 'node_compensated': {
      const said = event.state === 'compensated' ? 'was undone' : 'could not be undone';
      const why = event.message === undefined ? '' : `: ${event.message}`;
      return {
        event_type: settledTypes[event.state],
        tool_id: event.toolName,
        message: `${event.nodeId} ${said}${why}`,
      };
    }
    case 'node_verified':
      return {
        event_type: 'Verification',
        tool_id: event.toolName,
        decision: event.finding,
        message: VERIFIED_PHRASES[event.finding],
      };
    case 'deadline':
      return { event_type: 'TurnTimeout', message: `Turn timeout with ${event.unfinished.length} unfinished` };
    case 'settled':
      return { event_type: 'TurnSettled', message: event.result.summary };
    case 'turn_moved':
      return { event_type: 'TurnMoved', message: `Turn moved from ${event.from} to ${event.to}` };
    case 'turn_started':
    case 'turn_left':
    case 'compensation_started':
    case 'compensation_settled':
    case 'abandoned':
      return undefined;
  }
};

const entryOf = (event: TraceEvent): Entry | undefined => {
  if (event.source === 'call') return ofCall(event);
  if (event.source === 'turn') return ofTurn(event);
  if (event.type === 'breaker_evicted' || event.type === 'breaker_reset' || event.type === 'layer_started')
    return undefined;
  if (event.type === 'budget')
    return {
      event_type: 'Budget',
      decision: event.step,
      message: `Budget of a ${event.per} ${event.step}: ${event.left} of ${event.limit} ${event.unit} left`,
    };
  if (event.type === 'store_changed')
    return { event_type: 'Store', decision: event.state, message: `Store ${event.state}: ${event.message}` };
  return {
    event_type: 'CircuitBreaker',
    tool_id: event.toolName,
    circuit_breaker_state: event.to,
    message: event.message,
  };
};

/**
 * A trace event as an entry of a turn's trace: every error with its class, breaker state and decision, every timeout,
 * every outcome. `undefined` for an event that has no entry of its own. Costs a conversion through Temporal: for sinks,
 * not for the path of a call.
 *
 * @example
 * spillway.trace$.pipe(map(toTurnTrace), filter((entry) => entry !== undefined)).subscribe((entry) => log.push(entry));
 */
export function toTurnTrace(event: TraceEvent): TurnTraceEntry | undefined {
  const entry = entryOf(event);
  if (entry === undefined) return undefined;
  const turn_id = 'turnId' in event ? event.turnId : undefined;
  const timestamp = Temporal.Instant.fromEpochMilliseconds(Math.round(event.atMs)).toString();
  return { ...entry, ...(turn_id === undefined ? {} : { turn_id }), timestamp };
}
