import type { BreakerStateName } from '../contract/envelope.ts';
import type { DedupeStep, LayerEvent, ToolEvent, TraceEvent } from '../contract/event.ts';
import { Kept, oneLine, type TraceSink } from './sink.ts';

/** What of a pino logger is used; any logger that takes fields and a message will do. */
export interface LogTarget {
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

/** What happened, in CLAW's words, and two more for what nobody should miss. */
export type ToolLogEvent = 'tool_call_start' | 'tool_call_end' | 'tool_call_blocked' | 'tool_call_retry' | 'tool_call_circuit_state' | 'tool_call_dedupe' | 'tool_call_store_state';

/** The fields of a line (CLAW 1.6). Inputs, outputs and keys are in none. */
export interface ToolLogFields {
  readonly event: ToolLogEvent;
  readonly requestId?: string;
  readonly toolName?: string;
  readonly sessionKey?: string;
  /** The key's fingerprint. */
  readonly idempotencyKeyHash?: string;
  readonly correlationId?: string;
  readonly turnId?: string;
  readonly nodeId?: string;
  /** Of the call as the store would have it: `inflight`, `done`, `failed`, `cancelled`. Else of the breaker or the store. */
  readonly state?: string;
  readonly attempt?: number;
  readonly elapsedMs?: number;
  readonly fromCache?: boolean;
  readonly errorCode?: string;
  readonly retriable?: boolean;
  readonly breakerState?: BreakerStateName;
  readonly status?: string;
  /** Before the next attempt. */
  readonly delayMs?: number;
  /** In words, on one line. */
  readonly reason?: string;
}

type Level = keyof LogTarget;
interface Line {
  readonly level: Level;
  readonly event: ToolLogEvent;
  readonly fields: Partial<ToolLogFields>;
}
type Settled = Extract<ToolEvent, { type: 'settled' }>;

/** What a line says of its call beside its event. */
interface KnownCall {
  readonly startedAtMs: number;
  readonly sessionKey?: string;
  readonly correlationId?: string;
  readonly idempotencyKeyHash?: string;
}

/** The key protects no longer, or did not: someone should look. */
const ALARMS: Readonly<Partial<Record<DedupeStep, Level>>> = { conflict: 'error', unrecorded: 'error', lease_lost: 'warn', superseded: 'warn', unprotected: 'warn', taken_over: 'warn' };
/** The layer or its host is at fault, not the tool. */
const OWN_FAULTS: readonly string[] = ['internal_error', 'store_unavailable', 'conflict'];

const endOf = ({ result }: Settled): Line => {
  const { status, fromCache, attempts, error } = result;
  const common = { status, fromCache, attempt: attempts };
  if (error === undefined) return { level: 'info', event: 'tool_call_end', fields: { ...common, state: 'done' } };
  const { code, retriable, breakerState, message } = error;
  const canceled = code === 'canceled';
  const failed = { ...common, state: canceled ? 'cancelled' : 'failed', errorCode: code, retriable, reason: message, ...(breakerState === undefined ? {} : { breakerState }) };
  return { level: canceled ? 'info' : OWN_FAULTS.includes(code) ? 'error' : 'warn', event: 'tool_call_end', fields: failed };
};

const ofCall = (event: ToolEvent): Line | undefined => {
  switch (event.type) {
    case 'call_started':
      return { level: 'info', event: 'tool_call_start', fields: { state: 'inflight' } };
    case 'rejected': {
      const { error, classification, breakerState } = event;
      return { level: 'warn', event: 'tool_call_blocked', fields: { errorCode: error.kind, retriable: classification === 'transient', breakerState, reason: error.message } };
    }
    case 'decision': {
      if (event.strategy !== 'retry') return undefined;
      const { attempt, delayMs = 0, error, breakerState } = event;
      return { level: 'warn', event: 'tool_call_retry', fields: { state: 'inflight', attempt, delayMs, errorCode: error.kind, retriable: true, breakerState, reason: error.message } };
    }
    case 'dedupe': {
      const level = ALARMS[event.step];
      return level === undefined ? undefined : { level, event: 'tool_call_dedupe', fields: { state: event.step, ...(event.message === undefined ? {} : { reason: event.message }) } };
    }
    case 'hook':
      // One that blocks is told by the rejection.
      return event.hook === 'afterToolCall' && event.message !== undefined ? { level: 'warn', event: 'tool_call_blocked', fields: { state: event.outcome, attempt: event.attempt, reason: event.message } } : undefined;
    case 'abandoned':
      return { level: 'info', event: 'tool_call_end', fields: { state: 'cancelled' } };
    case 'settled':
      return endOf(event);
    case 'shadow':
    case 'attempt_started':
    case 'progress':
    case 'attempt_succeeded':
    case 'attempt_failed':
    case 'attempt_canceled':
    case 'escalated':
    case 'alternative_used':
      return undefined;
  }
};

const ofLayer = (event: LayerEvent): Line | undefined => {
  switch (event.type) {
    case 'breaker_changed':
      return { level: event.to === 'open' || event.to === 'forced_open' ? 'warn' : 'info', event: 'tool_call_circuit_state', fields: { toolName: event.toolName, state: event.to, breakerState: event.to, reason: event.message } };
    case 'store_changed':
      return { level: event.state === 'back' ? 'info' : 'error', event: 'tool_call_store_state', fields: { state: event.state, reason: event.message } };
    case 'breaker_evicted':
      return undefined;
  }
};

/** Makes every text one line, without what a terminal would obey. */
const makeHarmless = (fields: Record<string, unknown>): void => {
  for (const name in fields) {
    const value = fields[name];
    if (typeof value === 'string') fields[name] = oneLine(value);
  }
};

/**
 * Writes a log line for each start, end, refusal and retry of a call, and each change of a breaker, with CLAW's names of events and fields (R-7.4).
 * What went well is `info`, what a caller or a tool got wrong `warn`, what a person should look at `error`. Nothing of inputs and outputs is written;
 * line breaks and terminal sequences are taken out. A logger that throws changes nothing.
 *
 * @param logger a pino logger, or one like it
 *
 * @example
 * const lines: string[] = [];
 * const write = (_: object, message: string) => lines.push(message);
 * spillway.trace$.subscribe(pinoSink({ info: write, warn: write, error: write }));
 */
export function pinoSink(logger: LogTarget): TraceSink {
  const calls = new Kept<KnownCall>();

  const known = (event: ToolEvent): KnownCall | undefined => {
    const { callId, type } = event;
    // Most events are of attempts, which have no lines.
    if (type === 'attempt_started' || type === 'attempt_succeeded' || type === 'progress') return undefined;
    if (event.type === 'settled' || event.type === 'abandoned') return calls.take(callId);
    if (event.type === 'call_started') {
      const { atMs, session, correlationId } = event;
      calls.set(callId, { startedAtMs: atMs, ...(session === undefined ? {} : { sessionKey: session }), ...(correlationId === undefined ? {} : { correlationId }) });
    }
    const call = calls.get(callId);
    if (event.type !== 'dedupe' || call === undefined || call.idempotencyKeyHash !== undefined) return call;
    const keyed = { ...call, idempotencyKeyHash: event.keyFingerprint };
    calls.set(callId, keyed);
    return keyed;
  };
  const write = ({ level, event: name, fields }: Line, event?: ToolEvent, call?: KnownCall): void => {
    const line: Record<string, unknown> = { event: name };
    if (event !== undefined) {
      line['requestId'] = event.callId;
      line['toolName'] = event.toolName;
      if (event.turnId !== undefined) line['turnId'] = event.turnId;
      if (event.nodeId !== undefined) line['nodeId'] = event.nodeId;
    }
    if (call !== undefined) {
      if (call.sessionKey !== undefined) line['sessionKey'] = call.sessionKey;
      if (call.correlationId !== undefined) line['correlationId'] = call.correlationId;
      if (call.idempotencyKeyHash !== undefined) line['idempotencyKeyHash'] = call.idempotencyKeyHash;
      if (event !== undefined) line['elapsedMs'] = Math.max(0, event.atMs - call.startedAtMs);
    }
    Object.assign(line, fields);
    makeHarmless(line);
    const { toolName, reason } = line as Partial<ToolLogFields>;
    logger[level](line, `${name}${toolName === undefined ? '' : ` ${toolName}`}${reason === undefined ? '' : ` ${reason}`}`);
  };
  return {
    next: (event: TraceEvent) => {
      if (event.source === 'turn') return;
      if (event.source === 'layer') {
        const line = ofLayer(event);
        if (line !== undefined) write(line);
        return;
      }
      const call = known(event);
      const line = ofCall(event);
      if (line !== undefined) write(line, event, call);
    },
  };
}
