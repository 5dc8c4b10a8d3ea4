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
  /** How long its store took to answer first. */
  readonly answeredAfterMs: number;
  /** How long it took to keep the outcome, and whether the call waited to hear of that. */
  readonly kept: { readonly afterMs: number; readonly heard: boolean };
  /** Until when another process certainly held the key: calls met it, and waited for it, until then. */
  readonly heldUntilMs: number;
  /** When another process's outcome came, and what it was. */
  readonly outcome?: { readonly step: Step; readonly result: ToolResultEnvelope };
}

/** What a call in shadow would do about a record that it looked at. */
const SHADOWED: ReadonlySet<string> = new Set(['replay', 'wait']);

/** What a healthy store of one process never does, and why nobody can do it again. */
const UNTOLD: Partial<Record<DedupeStep, string>> = {
  lease_lost: 'its call lost its lease',
  superseded: 'another process had taken its key over',
  unrecorded: 'its outcome could not be stored',
  unprotected: 'its store gave no answer',
};
/** A wait that is told so late after its end may be the clocks' difference; a longer one is the store's. */
const TOLD_WITHIN_MS = 250;

const refuse = ({ seq }: TraceEvent, why: string): never => {
  throw new ReplayRefusal(
    'keys',
    `event ${seq} is of a call under an idempotency key, and ${why}: ` +
      'what its store and other processes did then is not in the trace',
    seq,
  );
};

/** Whether a call was refused by what was known of its key, which it was not told. */
const isDoubted = (events: readonly ToolEvent[]): boolean =>
  !events.some(({ type }) => type === 'dedupe' || type === 'attempt_started') &&
  events.some((event) => event.type === 'rejected' && event.error.uncertain === true);

/** Whether each that waited for a call of the trace heard its outcome when that was there, or had ended by then. */
const checkWaits = (byCall: ReadonlyMap<string, readonly ToolEvent[]>): void => {
  const keptMs = new Map<string, number>();
  for (const event of [...byCall.values()].flat())
    if (event.type === 'dedupe' && event.step === 'recorded') keptMs.set(event.callId, event.atMs);
  for (const events of byCall.values()) {
    const waited = events.findLastIndex((event) => event.type === 'dedupe' && event.step === 'waiting');
    const waiting = events[waited];
    const [next] = events.slice(waited + 1);
    if (waiting?.type !== 'dedupe' || next === undefined) continue;
    const sinceMs = Math.max(keptMs.get(waiting.leaderCallId ?? '') ?? Infinity, waiting.atMs);
    if (next.atMs > sinceMs + (next.type === 'dedupe' ? TOLD_WITHIN_MS : 0))
      refuse(next, 'its store did not tell it at once of the outcome that it waited for');
  }
};

/**
 * Whether all that stores did can be done again: they answered, and no lease passed.
 * @throws ReplayRefusal
 */
export function checkRecordedKeys(events: readonly TraceEvent[]): void {
  const byCall = Map.groupBy(
    events.filter((event) => event.source === 'call'),
    ({ callId }) => callId,
  );
  for (const own of byCall.values()) {
    const [first] = own;
    if (first !== undefined && isDoubted(own))
      refuse(first, 'it was refused by what was known of a key that is not told');
  }
  checkWaits(byCall);
  const ended = new Set<string>();
  for (const event of events) {
    if (event.type === 'rejected' && event.error.kind === 'store_unavailable')
      refuse(event, 'its store gave no answer');
    if (event.type === 'rejected' && event.error.kind === 'duplicate_in_flight' && event.error.uncertain === true)
      refuse(event, 'the lease of another had passed');
    if (event.type === 'shadow' && (SHADOWED.has(event.would) || event.reason === 'conflict'))
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
    // Of another process, perhaps: it was there by then.
    if (step === 'replayed')
      forgottenMs.set(key, Math.max(forgottenMs.get(key) ?? 0, atMs - (event.ageMs ?? 0) + (kept.get(toolName) ?? 0)));
    if (step !== 'claimed') continue;
    if (holder.has(key) && holder.get(key) !== callId)
      refuse(event, `its store gave its key to two calls at once, the other is ${holder.get(key) ?? ''}`);
    if (atMs < (forgottenMs.get(key) ?? 0)) refuse(event, 'its store had forgotten the outcome of its key');
    holder.set(key, callId);
    held.set(callId, key);
  }
}

/** How long after the end of its call an answer comes that it did not wait for. */
const AFTER_MS = 1;

/** How long the outcome took to be kept, and whether its call heard of it. */
const keptIn = (events: readonly ToolEvent[]): RecordedKey['kept'] => {
  const index = events.findIndex((event) => event.type === 'dedupe' && event.step === 'recorded');
  if (index > 0) return { afterMs: (events[index]?.atMs ?? 0) - (events[index - 1]?.atMs ?? 0), heard: true };
  const [before, last] = events.filter((event) => !('late' in event)).slice(-2);
  return { afterMs: (last?.atMs ?? 0) - (before?.atMs ?? 0) + AFTER_MS, heard: false };
};

/** How long the store took to answer first. One that ended before that, without a word of its key, had asked. */
const answeredAfter = (events: readonly ToolEvent[]): number => {
  const [first] = events;
  const step = events.find(({ type }) => type === 'dedupe');
  if (first === undefined) return 0;
  if (step !== undefined) return step.atMs - first.atMs;
  const ran = events.some(({ type }) => type === 'attempt_started');
  return ran ? 0 : (events.at(-1)?.atMs ?? 0) - first.atMs + AFTER_MS;
};

/** What is known of keys from all calls together. */
interface Known {
  /** Calls of the trace that had a key, each with it. */
  readonly claims: ReadonlySet<string>;
  /** Keys by the calls that had them, as others were told. */
  readonly ledBy: ReadonlyMap<string, string>;
  /** Until when others were seen to hold a key, by the key. */
  readonly heldUntilMs: ReadonlyMap<string, number>;
}

const keyIn = (events: readonly ToolEvent[], { claims, ledBy, heldUntilMs }: Known): RecordedKey | undefined => {
  const [first] = events;
  if (first?.type !== 'call_started' || first.terms?.keyed !== true) return undefined;
  const { callId } = first;
  const steps = events.filter((event) => event.type === 'dedupe');
  const ofOthers = steps.filter(
    ({ leaderCallId, keyFingerprint }) =>
      leaderCallId !== undefined && !claims.has(`${leaderCallId} ${keyFingerprint}`),
  );
  const [foreign] = ofOthers;
  const step = ofOthers.find((each) => each.step === 'replayed');
  const last = events.at(-1);
  const name = steps[0]?.keyFingerprint ?? ledBy.get(callId) ?? `unasked ${callId}`;
  return {
    callId,
    name,
    steps,
    answeredAfterMs: answeredAfter(events),
    kept: keptIn(events),
    heldUntilMs: heldUntilMs.get(name) ?? 0,
    ...(foreign === undefined ? {} : { foreign }),
    ...(step === undefined || last?.type !== 'settled' ? {} : { outcome: { step, result: last.result } }),
  };
};

/** When each step of a wait for another ended: at the call's next event. */
const heldIn = (events: readonly ToolEvent[]): Array<readonly [key: string, untilMs: number]> =>
  events.flatMap((event, index) =>
    event.type === 'dedupe' && (event.step === 'waiting' || event.step === 'busy')
      ? [[event.keyFingerprint, events[index + 1]?.atMs ?? event.atMs] as const]
      : [],
  );

const knownOf = (byCall: ReadonlyMap<string, readonly ToolEvent[]>): Known => {
  const steps = [...byCall.values()].flat().filter((event) => event.type === 'dedupe');
  const heldUntilMs = new Map<string, number>();
  for (const [key, untilMs] of [...byCall.values()].flatMap(heldIn))
    heldUntilMs.set(key, Math.max(untilMs, heldUntilMs.get(key) ?? 0));
  return {
    // By their key, too: ids of two processes can be the same.
    claims: new Set(
      steps.flatMap(({ step, callId, keyFingerprint }) =>
        step === 'claimed' || step === 'taken_over' ? [`${callId} ${keyFingerprint}`] : [],
      ),
    ),
    ledBy: new Map(
      steps.flatMap(({ leaderCallId, keyFingerprint }): Array<[string, string]> =>
        leaderCallId === undefined ? [] : [[leaderCallId, keyFingerprint]],
      ),
    ),
    heldUntilMs,
  };
};

/** The keys of the calls of a trace, by their calls. */
export function keysIn(byCall: ReadonlyMap<string, readonly ToolEvent[]>): Map<string, RecordedKey> {
  const known = knownOf(byCall);
  return new Map(
    [...byCall].flatMap(([callId, events]): Array<[string, RecordedKey]> => {
      const key = keyIn(events, known);
      return key === undefined ? [] : [[callId, key]];
    }),
  );
}
