import type { BreakerStateName } from '../contract/breaker-state.ts';
import type { ToolResultEnvelope } from '../contract/envelope.ts';
import type { DedupeStep, LayerEvent, ToolEvent, TraceEvent } from '../contract/event.ts';
import { approvalLine, budgetLine } from './pino/gates.ts';
import type { Fields, Level, Line, ToolLogEvent, ToolLogFields } from './pino/fields.ts';
import { RecentMap, oneLine, type TraceSink } from './sink.ts';

export type { ToolLogEvent, ToolLogFields } from './pino/fields.ts';

/** What of a pino logger is used; any logger that takes fields and a message will do. */
export interface LogTarget {
  /** Writes a line of what went well. */
  info(fields: object, message: string): void;
  /** Writes a line of what a caller or a tool got wrong. */
  warn(fields: object, message: string): void;
  /** Writes a line that a person should look at. */
  error(fields: object, message: string): void;
  /**
   * Says whether lines of a level are written at all; where it says no, the line is not made. Without it, every line
   * is.
   */
  isLevelEnabled?(level: Level): boolean;
}

/** What a line says of its call beside its event, as one line. */
interface KnownCall {
  readonly startedAtMs: number;
  readonly requestId: string;
  readonly sessionKey: string | undefined;
  readonly correlationId: string | undefined;
  readonly idempotencyKeyHash: string | undefined;
}

/** The key protects no longer, or did not: someone should look. */
const ALARMS: Readonly<Partial<Record<DedupeStep, Level>>> = {
  conflict: 'error',
  unrecorded: 'error',
  lease_lost: 'warn',
  superseded: 'warn',
  unprotected: 'warn',
  taken_over: 'warn',
};
/** The layer or its host is at fault, not the tool. */
const OWN_FAULTS: readonly string[] = ['internal_error', 'store_unavailable', 'conflict'];

/** A call that was refused before its breaker was asked has no state of one. */
const seenBy = (breakerState: BreakerStateName | undefined): Pick<ToolLogFields, 'breakerState'> =>
  breakerState === undefined ? {} : { breakerState };

const failed = (
  { status, fromCache, attempts }: ToolResultEnvelope,
  { code, retriable, breakerState, message }: NonNullable<ToolResultEnvelope['error']>,
): Line => {
  const canceled = code === 'canceled';
  const state = canceled ? 'cancelled' : 'failed';
  const told = { errorCode: code, retriable, reason: message, ...seenBy(breakerState) };
  const fields = { status, fromCache, attempt: attempts, state, ...told };
  return { level: canceled ? 'info' : OWN_FAULTS.includes(code) ? 'error' : 'warn', event: 'tool_call_end', fields };
};

/** The lines of what happens to a call beside its start and its good end. */
const ofCall = (event: ToolEvent): Line | undefined => {
  switch (event.type) {
    case 'rejected': {
      const { error, classification, breakerState } = event;
      const retriable = classification === 'transient';
      const fields = { errorCode: error.kind, retriable, ...seenBy(breakerState), reason: error.message };
      return { level: 'warn', event: 'tool_call_blocked', fields };
    }
    case 'decision': {
      if (event.strategy !== 'retry') return undefined;
      const { attempt, delayMs = 0, error, breakerState } = event;
      const told = { errorCode: error.kind, retriable: true, ...seenBy(breakerState), reason: error.message };
      return { level: 'warn', event: 'tool_call_retry', fields: { state: 'inflight', attempt, delayMs, ...told } };
    }
    case 'dedupe': {
      const level = ALARMS[event.step];
      return level === undefined
        ? undefined
        : {
            level,
            event: 'tool_call_dedupe',
            fields: { state: event.step, ...(event.message === undefined ? {} : { reason: event.message }) },
          };
    }
    case 'verified': {
      const { attempt, finding, message } = event;
      const fields = { attempt, state: finding, ...(message === undefined ? {} : { reason: message }) };
      return { level: finding === 'unknown' ? 'warn' : 'info', event: 'tool_call_verified', fields };
    }
    case 'hook':
      // A hook that blocks has a line already: that of the rejection.
      return event.hook === 'afterToolCall' && event.message !== undefined
        ? {
            level: 'warn',
            event: 'tool_call_blocked',
            fields: { state: event.outcome, attempt: event.attempt, reason: event.message },
          }
        : undefined;
    case 'approval':
      return approvalLine(event);
    case 'abandoned':
      return { level: 'info', event: 'tool_call_end', fields: { state: 'cancelled' } };
    case 'settled':
      return event.result.error === undefined ? undefined : failed(event.result, event.result.error);
    case 'call_started':
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
      return {
        level: event.to === 'open' || event.to === 'forced_open' ? 'warn' : 'info',
        event: 'tool_call_circuit_state',
        fields: { toolName: event.toolName, state: event.to, breakerState: event.to, reason: event.message },
      };
    case 'store_changed':
      return {
        level: event.state === 'back' ? 'info' : event.state === 'weak' ? 'warn' : 'error',
        event: 'tool_call_store_state',
        fields: { state: event.state, reason: event.message },
      };
    case 'budget':
      return budgetLine(event);
    case 'layer_started':
    case 'breaker_reset':
    case 'breaker_evicted':
      return undefined;
  }
};

/** Adds fields to a line, each text as one line, without what a terminal would obey. */
const add = (line: Fields, fields: Line['fields']): void => {
  for (const [name, value] of Object.entries(fields))
    (line as Record<string, unknown>)[name] = typeof value === 'string' ? oneLine(value) : value;
};

/** A line of a call, up to what only its event knows. */
const begin = (
  name: ToolLogEvent,
  { callId, toolName, turnId, nodeId, atMs }: ToolEvent,
  call: KnownCall | undefined,
): Fields => {
  const line: Fields = { event: name, requestId: call?.requestId ?? oneLine(callId), toolName: oneLine(toolName) };
  if (turnId !== undefined) line.turnId = oneLine(turnId);
  if (nodeId !== undefined) line.nodeId = oneLine(nodeId);
  if (call === undefined) return line;
  if (call.sessionKey !== undefined) line.sessionKey = call.sessionKey;
  if (call.correlationId !== undefined) line.correlationId = call.correlationId;
  if (call.idempotencyKeyHash !== undefined) line.idempotencyKeyHash = call.idempotencyKeyHash;
  line.elapsedMs = Math.max(0, atMs - call.startedAtMs);
  return line;
};

/**
 * Writes a log line for each start, end, refusal and retry of a call, and each change of a breaker, with CLAW's names
 * of events and fields (R-7.4). What went well is `info`, what a caller or a tool got wrong `warn`, what a person
 * should look at `error`. Nothing of inputs and outputs is written; line breaks and terminal sequences are taken out. A
 * logger that throws changes nothing.
 *
 * @param logger a pino logger, or one like it
 *
 * @example
 * const lines: string[] = [];
 * const write = (_: object, message: string) => lines.push(message);
 * spillway.trace$.subscribe(pinoSink({ info: write, warn: write, error: write }));
 */
export function pinoSink(logger: LogTarget): TraceSink {
  const calls = new RecentMap<KnownCall>();

  const known = (event: ToolEvent): KnownCall | undefined => {
    const { callId } = event;
    if (event.type === 'settled' || event.type === 'abandoned') return calls.take(callId);
    if (event.type === 'call_started') {
      const { atMs, session, correlationId } = event;
      const call: KnownCall = {
        startedAtMs: atMs,
        requestId: oneLine(callId),
        sessionKey: session === undefined ? undefined : oneLine(session),
        correlationId: correlationId === undefined ? undefined : oneLine(correlationId),
        idempotencyKeyHash: undefined,
      };
      calls.set(callId, call);
      return call;
    }
    const call = calls.get(callId);
    if (event.type !== 'dedupe' || call === undefined || call.idempotencyKeyHash !== undefined) return call;
    const keyed = { ...call, idempotencyKeyHash: oneLine(event.keyFingerprint) };
    calls.set(callId, keyed);
    return keyed;
  };
  const hears = (level: Level): boolean => {
    if (typeof logger.isLevelEnabled !== 'function') return true;
    try {
      return logger.isLevelEnabled(level);
    } catch {
      // A logger that cannot say which levels it writes gets every line.
      return true;
    }
  };
  const write = (level: Level, line: Fields): void => {
    const { event, toolName, reason } = line;
    logger[level](
      line,
      `${event}${toolName === undefined ? '' : ` ${toolName}`}${reason === undefined ? '' : ` ${reason}`}`,
    );
  };
  return {
    next: (event: TraceEvent) => {
      const { source, type } = event;
      // Most events are of attempts, which have no lines.
      if (source === 'turn' || type === 'attempt_started' || type === 'attempt_succeeded' || type === 'progress')
        return;
      if (source === 'layer') {
        const told = ofLayer(event);
        if (told === undefined || !hears(told.level)) return;
        const line: Fields = { event: told.event };
        add(line, told.fields);
        return write(told.level, line);
      }
      const call = known(event);
      // The two lines of a call that goes well have nothing that must be looked at.
      if (type === 'call_started') {
        if (!hears('info')) return;
        const line = begin('tool_call_start', event, call);
        line.state = 'inflight';
        return write('info', line);
      }
      if (event.type === 'settled' && event.result.error === undefined) {
        if (!hears('info')) return;
        const { status, fromCache, attempts } = event.result;
        const line = begin('tool_call_end', event, call);
        line.status = status;
        line.fromCache = fromCache;
        line.attempt = attempts;
        line.state = 'done';
        return write('info', line);
      }
      const told = ofCall(event);
      if (told === undefined || !hears(told.level)) return;
      const line = begin(told.event, event, call);
      add(line, told.fields);
      write(told.level, line);
    },
  };
}
