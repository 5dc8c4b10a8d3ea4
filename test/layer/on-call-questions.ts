import type { ToolEvent, TraceEvent } from 'spillway';

/**
 * What somebody on call asks of a trace who knows neither the code nor the layer, answered from the events of a file
 * alone. Each is a pure function of them.
 */
export type Trace = readonly TraceEvent[];
type Of<K extends TraceEvent['type']> = Extract<TraceEvent, { type: K }>;
type OfCall<K extends ToolEvent['type']> = Extract<ToolEvent, { type: K }>;

const all = <K extends TraceEvent['type']>(trace: Trace, type: K): Array<Of<K>> =>
  trace.filter((event): event is Of<K> => event.type === type);
/** The events of calls, looked through once. */
const byCall = new WeakMap<Trace, Map<string, ToolEvent[]>>();
const ofCall = (trace: Trace, callId: string): ToolEvent[] => {
  let calls = byCall.get(trace);
  if (calls === undefined) {
    calls = new Map<string, ToolEvent[]>();
    byCall.set(trace, calls);
    for (const event of trace) {
      if (event.source !== 'call') continue;
      const known = calls.get(event.callId);
      if (known === undefined) calls.set(event.callId, [event]);
      else known.push(event);
    }
  }
  return calls.get(callId) ?? [];
};
const inCall = <K extends ToolEvent['type']>(trace: Trace, callId: string, type: K): Array<OfCall<K>> =>
  ofCall(trace, callId).filter((event): event is OfCall<K> => event.type === type);
const startOf = (trace: Trace, callId: string): OfCall<'call_started'> | undefined =>
  inCall(trace, callId, 'call_started')[0];
const endOf = (trace: Trace, callId: string): OfCall<'settled'> | undefined => inCall(trace, callId, 'settled')[0];
const sum = (numbers: readonly number[]): number => numbers.reduce((total, one) => total + one, 0);

/** Why did it take so long: in attempts, in waits before retries, for a person, for another's key, for a look? */
export const timeSpent = (trace: Trace, callId: string): Readonly<Record<string, number>> => {
  const events = ofCall(trace, callId);
  const attempts = sum(
    events.map((event) => (event.type.startsWith('attempt_') ? (read(event, 'durationMs') ?? 0) : 0)),
  );
  const backoffs = sum(inCall(trace, callId, 'decision').map(({ delayMs = 0 }) => delayMs));
  const person = sum(inCall(trace, callId, 'approval').map(({ waitedMs = 0 }) => waitedMs));
  const looks = sum(inCall(trace, callId, 'verified').map(({ durationMs }) => durationMs));
  const key = sum(
    inCall(trace, callId, 'dedupe').map(({ step, seq, atMs }) => {
      const after = step === 'waiting' ? events.find((event) => event.seq > seq) : undefined;
      return after === undefined ? 0 : after.atMs - atMs;
    }),
  );
  const total = (events.at(-1)?.atMs ?? 0) - (events[0]?.atMs ?? 0);
  return { attempts, backoffs, person, looks, key, total };
};
const read = (event: object, field: string): number | undefined => {
  const value: unknown = Reflect.get(event, field);
  return typeof value === 'number' ? value : undefined;
};

/** Was a retry's wait what the tool asked for, or our own backoff? */
export const whoseWait = (trace: Trace, callId: string): Array<'the tool’s' | 'ours'> =>
  inCall(trace, callId, 'decision').flatMap(({ strategy, error }) =>
    strategy === 'retry' ? [error.retryAfterMs === undefined ? ('ours' as const) : ('the tool’s' as const)] : [],
  );

/** Whose failures in a row opened a breaker, the last one included? */
export const opening = (trace: Trace, key: string): string[] => {
  const opened = all(trace, 'breaker_changed').find(({ toolName, to }) => toolName === key && to === 'open');
  if (opened === undefined) return [];
  const guarded = (callId: string): boolean => startOf(trace, callId)?.breaker?.key === key;
  const good =
    trace.findLast((event) => event.type === 'attempt_succeeded' && event.seq < opened.seq && guarded(event.callId))
      ?.seq ?? 0;
  const failed = all(trace, 'attempt_failed').filter(
    ({ seq, callId, classification }) =>
      seq > good && seq < opened.seq && classification === 'transient' && guarded(callId),
  );
  return [...failed.map(({ callId }) => callId), opened.callId ?? 'another process'];
};

/** Why was it refused though its breaker was closed when it began? Whose failure had opened it meanwhile? */
export const openedMeanwhile = (trace: Trace, callId: string): string | undefined => {
  const start = startOf(trace, callId);
  const refusal = inCall(trace, callId, 'rejected').find(({ error }) => error.kind === 'circuit_open');
  if (start?.breaker?.state !== 'closed' || refusal === undefined) return undefined;
  return all(trace, 'breaker_changed').findLast(
    ({ toolName, to, seq }) => toolName === start.breaker?.key && to === 'open' && seq > start.seq && seq < refusal.seq,
  )?.callId;
};

/** Who or what refused it, if it was no breaker? */
export const refusedBy = (trace: Trace, callId: string): string | undefined => {
  const budget = all(trace, 'budget').find((event) => event.callId === callId && event.step === 'refused');
  if (budget !== undefined)
    return `budget of ${budget.per} ${budget.scope}: ${budget.left} of ${budget.limit} ${budget.unit}`;
  const no = inCall(trace, callId, 'approval').find(({ step }) => step === 'denied' || step === 'expired');
  if (no !== undefined) return `${no.by ?? 'nobody'} ${no.step} it: ${no.message ?? ''}`;
  const hook = inCall(trace, callId, 'hook').find(({ outcome }) => outcome !== 'changed');
  if (hook !== undefined) return `${hook.hook} ${hook.outcome} it: ${hook.message ?? ''}`;
  const busy = inCall(trace, callId, 'dedupe').find(({ step }) => step === 'busy' || step === 'conflict');
  if (busy !== undefined) return `the key is with ${busy.leaderCallId ?? 'other parameters'}`;
  return endOf(trace, callId)?.result.error?.message;
};

/** Who used a tenant's budget up: dollars by tool, from what attempts told and, where they told nothing, cost? */
export const spentBy = (trace: Trace, tenant: string): Readonly<Record<string, number>> => {
  const costs = new Map(
    all(trace, 'layer_started').flatMap(({ tools }) => tools.map((one) => [one.name, one.policy.cost])),
  );
  const spent: Record<string, number> = {};
  for (const event of trace) {
    if (event.type !== 'attempt_succeeded' && event.type !== 'attempt_failed') continue;
    if (startOf(trace, event.callId)?.tenant !== tenant) continue;
    spent[event.toolName] = (spent[event.toolName] ?? 0) + (event.usage?.usd ?? costs.get(event.toolName) ?? 0);
  }
  return spent;
};

/** What approval was waited for: why, who said what, after how long? */
export const approvalOf = (trace: Trace, callId: string): string | undefined => {
  const [asked, answer] = inCall(trace, callId, 'approval');
  if (asked === undefined || answer === undefined) return undefined;
  return `${asked.cause}: ${answer.step} by ${answer.by ?? 'nobody'} after ${answer.waitedMs} ms`;
};

/** Which tools were tried one after the other, and why not the one before? */
export const triedInstead = (trace: Trace, callId: string): Array<readonly [string, string]> => {
  const why = inCall(trace, callId, 'decision').filter(({ strategy }) => strategy === 'alternative');
  return inCall(trace, callId, 'alternative_used').map(({ from, seq }) => {
    const because = why.findLast((decision) => decision.seq < seq);
    return [from, because?.error.kind ?? ''] as const;
  });
};

/** From when to when was the layer switched off, and for how many calls? */
export const switchedOff = (
  trace: Trace,
): { readonly calls: number; readonly fromMs: number; readonly toMs: number } => {
  const bare = all(trace, 'call_started').filter(({ mode }) => mode === 'off');
  return { calls: bare.length, fromMs: bare[0]?.atMs ?? NaN, toMs: bare.at(-1)?.atMs ?? NaN };
};

/** Was it found out whether a doubtful attempt took effect, what was found, and was it tried again after that? */
export const lookedInto = (trace: Trace, callId: string): string | undefined => {
  const [found] = inCall(trace, callId, 'verified');
  if (found === undefined) return undefined;
  const again = inCall(trace, callId, 'attempt_started').some(({ seq }) => seq > found.seq);
  const why = found.message === undefined ? '' : ` (${found.message})`;
  return `${found.finding}${why}, ${again ? 'tried again' : 'not tried again'}`;
};

/** Who asked for a call that no agent asked for: which call was in doubt, or is undone? */
export const onBehalfOf = (trace: Trace, callId: string): string | undefined => {
  const { verifies, undoes } = startOf(trace, callId) ?? {};
  return verifies ?? undoes;
};

/** Who held the key that it waited for, and what did that call come to? */
export const holder = (trace: Trace, callId: string): string | undefined => {
  const waiting = inCall(trace, callId, 'dedupe').find(({ step }) => step === 'waiting' || step === 'replayed');
  if (waiting?.leaderCallId === undefined) return undefined;
  return `${waiting.leaderCallId} ${endOf(trace, waiting.leaderCallId)?.result.status ?? 'has not settled'}`;
};

/** How long did the store give no answer, and which calls were refused for it? */
export const storeLost = (trace: Trace): { readonly ms: number; readonly refused: string[] } => {
  const changes = all(trace, 'store_changed');
  const lost = changes.find(({ state }) => state === 'lost');
  const back = changes.find(({ state, seq }) => state === 'back' && seq > (lost?.seq ?? Infinity));
  const refused = all(trace, 'settled').flatMap((event) =>
    event.source === 'call' && event.result.error?.code === 'store_unavailable' ? [event.callId] : [],
  );
  return { ms: (back?.atMs ?? NaN) - (lost?.atMs ?? NaN), refused };
};

/** Why did a turn end before its time was over: which node lacked what? */
export const whyEarly = (trace: Trace, turnId: string): string | undefined => {
  const started = all(trace, 'turn_started').find((event) => event.turnId === turnId);
  const settled = trace.find((event) => event.source === 'turn' && event.type === 'settled' && event.turnId === turnId);
  if (started === undefined || settled?.source !== 'turn' || settled.type !== 'settled') return undefined;
  if (settled.atMs - started.atMs >= started.timeoutMs) return 'its time was over';
  const culprit = settled.result.nodes.find(({ state }) => state !== 'succeeded' && state !== 'defaulted');
  return culprit === undefined ? 'it had everything' : `${culprit.id} ${culprit.state}: ${culprit.reason ?? ''}`;
};

/** Why did a node not run: what is at the bottom of it? */
export const rootCause = (trace: Trace, turnId: string, nodeId: string): string | undefined => {
  const started = all(trace, 'turn_started').find((event) => event.turnId === turnId);
  const state = (id: string): string | undefined =>
    all(trace, 'node_settled').find((event) => event.turnId === turnId && event.nodeId === id)?.state;
  const lacking = started?.nodes
    .find(({ id }) => id === nodeId)
    ?.needs.find((need) => !['succeeded', 'defaulted'].includes(state(need) ?? ''));
  if (lacking !== undefined) return rootCause(trace, turnId, lacking);
  const failure = trace.findLast(
    (event): event is OfCall<'decision'> =>
      event.type === 'decision' && event.turnId === turnId && event.nodeId === nodeId,
  );
  return failure === undefined ? undefined : `${nodeId}: ${failure.error.kind}: ${failure.code}`;
};

/** Why did a node begin later than its needs had ended: was the turn at its limit of calls? */
export const waitedForPlace = (
  trace: Trace,
  turnId: string,
  nodeId: string,
): { readonly ms: number; readonly isFull: boolean } => {
  const ofTurn = trace.filter((event) => 'turnId' in event && event.turnId === turnId);
  const started = all(ofTurn, 'turn_started')[0];
  const needs = started?.nodes.find(({ id }) => id === nodeId)?.needs ?? [];
  const began = all(ofTurn, 'node_started').find((event) => event.nodeId === nodeId);
  const readyMs = Math.max(
    started?.atMs ?? NaN,
    ...all(ofTurn, 'node_settled').flatMap((event) => (needs.includes(event.nodeId) ? [event.atMs] : [])),
  );
  const running = all(ofTurn, 'node_started').filter(
    ({ nodeId: id, atMs, seq }) =>
      seq < (began?.seq ?? 0) &&
      atMs <= readyMs &&
      !all(ofTurn, 'node_settled').some((event) => event.nodeId === id && event.atMs <= readyMs),
  );
  return { ms: (began?.atMs ?? NaN) - readyMs, isFull: running.length === started?.concurrency };
};

/** What did a failed turn undo, by which calls, and what stays for which reason? */
export const undoing = (
  trace: Trace,
  turnId: string,
): { readonly undone: string[]; readonly by: string[]; readonly stays: string[] } => {
  const nodes = all(trace, 'node_compensated').filter((event) => event.turnId === turnId);
  const by = all(trace, 'call_started').filter((event) => event.turnId === turnId && event.undoes !== undefined);
  return {
    undone: nodes.flatMap(({ nodeId, state }) => (state === 'compensated' ? [nodeId] : [])),
    by: by.map(({ toolName }) => toolName),
    stays: nodes.flatMap(({ nodeId, state, message = '' }) =>
      state === 'compensated' ? [] : [`${nodeId}: ${message}`],
    ),
  };
};

/** What became of the calls that went on after their turn's deadline? */
export const afterDeadline = (trace: Trace, turnId: string): Array<readonly [string | undefined, string]> =>
  all(trace, 'settled').flatMap((event) =>
    event.source === 'call' && event.turnId === turnId && event.late === true
      ? [[event.nodeId, event.result.status] as const]
      : [],
  );

/** Which workers had a turn, and for how long had nobody? */
export const workersOf = (trace: Trace, turnId: string): { readonly workers: string[]; readonly gapMs: number } => {
  const ofTurn = trace.filter((event) => event.source === 'turn' && event.turnId === turnId);
  const moves = all(ofTurn, 'turn_moved');
  const first = all(ofTurn, 'turn_started')[0]?.worker ?? moves[0]?.from ?? 'this process';
  return { workers: [first, ...moves.map(({ to }) => to)], gapMs: sum(moves.map(({ afterMs }) => afterMs)) };
};

/** Who ended a call that was canceled? */
export const canceledBy = (trace: Trace, callId: string): string | undefined => {
  if (ofCall(trace, callId).some(({ type }) => type === 'abandoned')) return 'its caller left';
  const { error } = endOf(trace, callId)?.result ?? {};
  return error?.code === 'canceled' ? error.message : undefined;
};

/** Are all events here? How many numbers are missing? */
export const missing = (trace: Trace): number => {
  const seqs = trace.flatMap((event) => (event.type === 'layer_started' ? [] : [event.seq]));
  return (seqs.at(-1) ?? 0) - (seqs[0] ?? 0) + 1 - new Set(seqs).size;
};

/** Which calls belong to the trace that a user complains about? */
export const callsOf = (trace: Trace, traceId: string): string[] =>
  all(trace, 'call_started').flatMap(({ callId, traceparent }) =>
    traceparent?.split('-')[1] === traceId ? [callId] : [],
  );

/** Was it answered from memory: whose result is it, and how old? */
export const fromMemory = (
  trace: Trace,
  callId: string,
): readonly [string | undefined, number | undefined] | undefined => {
  const replayed = inCall(trace, callId, 'dedupe').find(({ step }) => step === 'replayed');
  return replayed === undefined ? undefined : [replayed.leaderCallId, replayed.ageMs];
};
