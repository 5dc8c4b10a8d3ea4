import type { DedupeStep, ToolEvent, ToolInForce, TraceEvent } from '../../../contract/event.ts';
import type { ToolResultEnvelope } from '../../../contract/envelope.ts';
import { ReplayRefusal } from '../refusal.ts';

type Step = Extract<ToolEvent, { type: 'dedupe' }>;

/** What the trace tells of the key of one call. */
export interface RecordedKey {
  readonly callId: string;
  /** Tells keys apart; of a call that never asked its store, a name of its own. */
  readonly name: string;
  /** What the store said, in order. */
  readonly steps: readonly Step[];
  /** The call that had the key before it, where that was made by another process. */
  readonly foreign?: Step;
  /** How long its store took to answer first, and to keep the outcome. */
  readonly answeredAfterMs: number;
  readonly keptAfterMs: number;
  /** When its call ended. */
  readonly endMs: number;
  /** When another process's outcome came, and what it was. */
  readonly outcome?: { readonly step: Step; readonly result: ToolResultEnvelope };
}

/** What a healthy store of one process never does, and why nobody can do it again. */
const UNTOLD: Partial<Record<DedupeStep, string>> = {
  lease_lost: 'its call lost its lease',
  superseded: 'another process had taken its key over',
  unrecorded: 'its outcome could not be stored',
  unprotected: 'its store gave no answer',
};

const refuse = ({ seq }: TraceEvent, why: string): never => {
  throw new ReplayRefusal(
    'keys',
    `event ${seq} is of a call under an idempotency key, and ${why}: ` +
      'what its store and other processes did then is not in the trace',
    seq,
  );
};

/**
 * Whether a call ended before it was told which key it is under, or by what was known of the key: neither says which.
 * One that was refused at once had not asked, and one that ran without a word has none.
 */
const isUntold = (events: readonly ToolEvent[]): boolean => {
  const [first] = events;
  const last = events.at(-1);
  if (first?.type !== 'call_started' || first.terms?.keyed !== true || last === undefined) return false;
  if (events.some(({ type }) => type === 'dedupe' || type === 'attempt_started')) return false;
  const doubted = events.some((event) => event.type === 'rejected' && event.error.uncertain === true);
  return doubted || last.type === 'abandoned' || last.atMs > first.atMs;
};

/**
 * Whether all that stores did can be done again: they answered, and no lease passed.
 * @throws ReplayRefusal
 */
export function checkRecordedKeys(events: readonly TraceEvent[]): void {
  const ofCalls = events.filter((event) => event.source === 'call');
  for (const own of Map.groupBy(ofCalls, ({ callId }) => callId).values()) {
    const [first] = own;
    if (first !== undefined && isUntold(own)) refuse(first, 'it ended before its key was told');
  }
  const ended = new Set<string>();
  for (const event of events) {
    if (event.type === 'rejected' && event.error.kind === 'store_unavailable')
      refuse(event, 'its store gave no answer');
    if (event.type === 'rejected' && event.error.kind === 'duplicate_in_flight' && event.error.uncertain === true)
      refuse(event, 'the lease of another had passed');
    if (event.type === 'shadow' && (event.would === 'replay' || event.would === 'wait'))
      refuse(event, 'in shadow it looked at a record without telling its key');
    if (event.type !== 'dedupe') continue;
    const why = UNTOLD[event.step];
    if (why !== undefined) refuse(event, why);
    // One that asks on best effort runs again what has failed; else somebody's lease had passed.
    if (event.step === 'taken_over' && !ended.has(event.keyFingerprint))
      refuse(event, 'the lease of another had passed');
    if (event.step === 'recorded') ended.add(event.keyFingerprint);
  }
}

/**
 * Whether each key had one holder at a time, and its outcome was kept for as long as its tool asks for.
 * @throws ReplayRefusal
 */
export function checkHolders(events: readonly TraceEvent[], tools: readonly ToolInForce[]): void {
  const kept = new Map(
    tools.map(({ name, policy: { dedupe } }) => [name, Math.min(dedupe.doneTtlMs ?? 0, dedupe.failedTtlMs ?? 0)]),
  );
  const holder = new Map<string, string>();
  const held = new Map<string, string>();
  const forgottenMs = new Map<string, number>();
  for (const event of events) {
    if (event.source !== 'call') continue;
    if (event.type === 'settled' || event.type === 'abandoned') {
      const key = held.get(event.callId);
      if (key !== undefined && !('late' in event) && event.type === 'settled') holder.delete(key);
    }
    if (event.type !== 'dedupe') continue;
    const { callId, step, keyFingerprint: key, atMs, toolName } = event;
    if (step === 'recorded') {
      holder.delete(key);
      forgottenMs.set(key, atMs + (kept.get(toolName) ?? 0));
    }
    if (step !== 'claimed') continue;
    if (holder.has(key) && holder.get(key) !== callId)
      refuse(event, `its store gave its key to two calls at once, the other is ${holder.get(key) ?? ''}`);
    if (atMs < (forgottenMs.get(key) ?? 0)) refuse(event, 'its store had forgotten the outcome of its key');
    holder.set(key, callId);
    held.set(callId, key);
  }
}

/** One that ended without hearing whether its outcome was kept did not wait for it: that took more than an instant. */
const keptAfter = (events: readonly ToolEvent[], answeredAfterMs: number): number => {
  const index = events.findIndex((event) => event.type === 'dedupe' && event.step === 'recorded');
  if (index > 0) return (events[index]?.atMs ?? 0) - (events[index - 1]?.atMs ?? 0);
  return events.some((event) => event.type === 'dedupe' && event.step === 'claimed') ? Math.max(1, answeredAfterMs) : 0;
};

const keyIn = (events: readonly ToolEvent[], claims: ReadonlySet<string>): RecordedKey | undefined => {
  const [first] = events;
  if (first?.type !== 'call_started' || first.terms?.keyed !== true) return undefined;
  const { callId } = first;
  const steps = events.filter((event) => event.type === 'dedupe');
  const foreign = steps.find(
    ({ leaderCallId, keyFingerprint }) =>
      leaderCallId !== undefined && !claims.has(`${leaderCallId} ${keyFingerprint}`),
  );
  const step = steps.find((each) => each.step === 'replayed' && each.leaderCallId === foreign?.leaderCallId);
  const last = events.at(-1);
  const answeredAfterMs = (steps[0]?.atMs ?? first.atMs) - first.atMs;
  const outcome =
    foreign === undefined || step === undefined || last?.type !== 'settled'
      ? {}
      : { outcome: { step, result: last.result } };
  return {
    callId,
    name: steps[0]?.keyFingerprint ?? `unasked ${callId}`,
    steps,
    answeredAfterMs,
    keptAfterMs: keptAfter(events, answeredAfterMs),
    endMs: last?.atMs ?? first.atMs,
    ...(foreign === undefined ? {} : { foreign }),
    ...outcome,
  };
};

/** The keys of the calls of a trace, by their calls. */
export function keysIn(byCall: ReadonlyMap<string, readonly ToolEvent[]>): Map<string, RecordedKey> {
  // By their key, too: ids of two processes can be the same.
  const claims = new Set(
    [...byCall.values()]
      .flat()
      .flatMap((event) =>
        event.type === 'dedupe' && (event.step === 'claimed' || event.step === 'taken_over')
          ? [`${event.callId} ${event.keyFingerprint}`]
          : [],
      ),
  );
  return new Map(
    [...byCall].flatMap(([callId, events]): Array<[string, RecordedKey]> => {
      const key = keyIn(events, claims);
      return key === undefined ? [] : [[callId, key]];
    }),
  );
}
