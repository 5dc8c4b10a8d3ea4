import type { ToolEvent, TraceEvent } from 'spillway';
import type { ErrorReport, PolicyInForce } from 'spillway/contract';

/**
 * Questions that a person asks of a trace, answered from its events alone: no clock, no layer, no code. Each is a pure
 * function of what a file can hold.
 */
type Of<K extends TraceEvent['type']> = Extract<TraceEvent, { type: K }>;
export type Trace = readonly TraceEvent[];

const all = <K extends TraceEvent['type']>(trace: Trace, type: K): Array<Of<K>> =>
  trace.filter((event): event is Of<K> => event.type === type);
const ofCall = (trace: Trace, callId: string): ToolEvent[] =>
  trace.filter((event): event is ToolEvent => event.source === 'call' && event.callId === callId);
const inCall = <K extends ToolEvent['type']>(
  trace: Trace,
  callId: string,
  type: K,
): Array<Extract<ToolEvent, { type: K }>> =>
  ofCall(trace, callId).filter((event): event is Extract<ToolEvent, { type: K }> => event.type === type);

/** Which policy was in force for a tool? */
export const policyOf = (trace: Trace, toolName: string): PolicyInForce | undefined =>
  all(trace, 'layer_started')
    .flatMap(({ tools }) => tools)
    .find(({ name }) => name === toolName)?.policy;

/** Why was a call not retried, or not once more; and how many attempts would its tool's policy have allowed? */
export const whyNotRetried = (
  trace: Trace,
  callId: string,
): { readonly code: string; readonly made: number; readonly allowed: number | undefined } | undefined => {
  const last = inCall(trace, callId, 'decision').at(-1);
  if (last === undefined || last.strategy === 'retry') return undefined;
  return { code: last.code, made: last.attempt, allowed: policyOf(trace, last.toolName)?.retry.maxAttempts };
};

/** After which failures was it retried, and after how long? */
export const retriesOf = (
  trace: Trace,
  callId: string,
): Array<{ readonly attempt: number; readonly kind: string; readonly delayMs: number }> =>
  inCall(trace, callId, 'decision').flatMap(({ strategy, attempt, error, delayMs = 0 }) =>
    strategy === 'retry' ? [{ attempt, kind: error.kind, delayMs }] : [],
  );

/** How long may an attempt run, from its start? */
export const mayRunMs = (trace: Trace, callId: string, attempt: number): number | undefined => {
  const started = inCall(trace, callId, 'attempt_started').find((event) => event.attempt === attempt);
  return started?.dueAtMs === undefined ? undefined : started.dueAtMs - started.atMs;
};

/** Whose limit cut an attempt off: the tool's own, its caller's, or the deadline of the call? */
export const whoseLimit = (trace: Trace, callId: string): 'tool' | 'caller' | 'deadline' | undefined => {
  const started = inCall(trace, callId, 'attempt_started').at(-1);
  const end = ofCall(trace, callId).find(
    ({ type, seq }) => (type === 'attempt_failed' || type === 'attempt_canceled') && seq > (started?.seq ?? Infinity),
  );
  if (started === undefined || end === undefined || end.atMs !== started.dueAtMs) return undefined;
  if (end.type === 'attempt_canceled') return 'deadline';
  return end.type === 'attempt_failed' && end.timeoutMs === policyOf(trace, started.toolName)?.timeoutMs
    ? 'tool'
    : 'caller';
};

/** How a breaker stood at a moment; until when it is open, if it is; and who opened it, after which failure. */
export const breakerAt = (
  trace: Trace,
  { key, tenant = '', seq = Infinity }: { readonly key: string; readonly tenant?: string; readonly seq?: number },
): {
  readonly state: string;
  readonly untilMs?: number | undefined;
  readonly by?: string | undefined;
  readonly after?: ErrorReport | undefined;
} => {
  const change = all(trace, 'breaker_changed').findLast(
    (event) => event.toolName === key && event.scope === tenant && event.seq < seq,
  );
  if (change === undefined) return { state: 'closed' };
  const { to: state, untilMs, callId: by } = change;
  // The failure that opened it is told right after it.
  const after =
    by === undefined ? undefined : inCall(trace, by, 'attempt_failed').find((event) => event.seq > change.seq)?.error;
  return { state, untilMs, by, ...(state === 'open' ? { after } : {}) };
};

/** Why was a call refused at once, and since which call's failure? */
export const whyRefused = (
  trace: Trace,
  callId: string,
): { readonly kind: string; readonly message: string; readonly since?: string | undefined } | undefined => {
  const [rejected] = inCall(trace, callId, 'rejected');
  const [started] = inCall(trace, callId, 'call_started');
  if (rejected === undefined || started === undefined) return undefined;
  const { kind, message } = rejected.error;
  if (kind !== 'circuit_open' || started.breaker === undefined) return { kind, message };
  return {
    kind,
    message,
    since: breakerAt(trace, {
      key: started.breaker.key,
      ...(started.tenant === undefined ? {} : { tenant: started.tenant }),
      seq: rejected.seq,
    }).by,
  };
};

/** How did the breaker stand when a call began, and which one was it? */
export const breakerAtStart = (trace: Trace, callId: string): string | undefined => {
  const breaker = inCall(trace, callId, 'call_started')[0]?.breaker;
  return breaker === undefined ? undefined : `${breaker.key} ${breaker.state}`;
};

/** Which calls were kept away from a tool while its breaker was open? */
export const keptAway = (trace: Trace, key: string): string[] => {
  const refused = all(trace, 'rejected').filter((event) => event.error.kind === 'circuit_open');
  return refused.map(({ callId }) => callId).filter((callId) => breakerAtStart(trace, callId)?.startsWith(`${key} `));
};

/** Which calls probed a breaker, and which one closed it? */
export const recoveryOf = (
  trace: Trace,
  key: string,
): { readonly firstProbe: string | undefined; readonly closedBy: string | undefined } => {
  const changes = all(trace, 'breaker_changed').filter(({ toolName }) => toolName === key);
  return {
    firstProbe: changes.find(({ to }) => to === 'half_open')?.callId,
    closedBy: changes.findLast(({ to }) => to === 'closed')?.callId,
  };
};

/** Who holds the key that a call waits for, and until when if it does not renew it? */
export const holderOf = (
  trace: Trace,
  callId: string,
): { readonly callId: string | undefined; readonly untilMs: number | undefined } | undefined => {
  const waiting = inCall(trace, callId, 'dedupe').find(({ step }) => step === 'waiting');
  return waiting === undefined ? undefined : { callId: waiting.leaderCallId, untilMs: waiting.leaseUntilMs };
};

/** Whose result did a call get? */
export const resultFrom = (trace: Trace, callId: string): string | undefined =>
  inCall(trace, callId, 'dedupe').find(({ step }) => step === 'replayed')?.leaderCallId;

/** How much of the retry budget was left when it was decided about a call last? */
export const budgetLeftAt = (trace: Trace, callId: string): number | undefined =>
  inCall(trace, callId, 'decision').at(-1)?.budgetLeft;

/** Why did another tool answer? */
export const whyAnother = (
  trace: Trace,
  callId: string,
): { readonly from: string; readonly to: string; readonly kind: string; readonly isDeclared: boolean } | undefined => {
  const [used] = inCall(trace, callId, 'alternative_used');
  if (used === undefined) return undefined;
  const decided = inCall(trace, callId, 'decision').findLast(
    ({ strategy, seq }) => strategy === 'alternative' && seq < used.seq,
  );
  return {
    from: used.from,
    to: used.toolName,
    kind: decided?.error.kind ?? '',
    isDeclared: policyOf(trace, used.from)?.alternatives.includes(used.toolName) === true,
  };
};

/** What was a call's time spent on? */
export const timeOf = (
  trace: Trace,
  callId: string,
): { readonly attemptsMs: number; readonly waitsMs: number; readonly totalMs: number } => {
  const events = ofCall(trace, callId);
  const attemptsMs = events.reduce((sum, event) => sum + ('durationMs' in event ? event.durationMs : 0), 0);
  const totalMs = (events.at(-1)?.atMs ?? 0) - (events[0]?.atMs ?? 0);
  return { attemptsMs, waitsMs: totalMs - attemptsMs, totalMs };
};

/** Which tools would be run again though they may have taken effect? */
export const mayRunTwice = (trace: Trace): string[] =>
  all(trace, 'layer_started')
    .flatMap(({ tools }) => tools)
    .filter(({ effects, policy }) => effects === 'read' && policy.retry.maxAttempts > 1)
    .map(({ name }) => name);
