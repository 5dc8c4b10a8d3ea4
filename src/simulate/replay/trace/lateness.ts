import type { ToolEvent, ToolInForce, TraceEvent } from '../../../contract/event.ts';
import { firstSeqOf } from './attempts.ts';

/** When a timer that was due came, as the trace shows it. */
export interface Fired {
  readonly atMs: number;
  /** The place of the first event that it brought about. */
  readonly seq: number;
}

/** How late the recorded process was: timers come when its event loop gets to them. */
export interface Lateness {
  /**
   * When a timer that is due then comes. One of which nothing is recorded comes at its instant.
   * @param ms how long it was set for
   * @param callId whose it may be: of several that are due at one instant each has its own
   */
  firedAt(dueMs: number, ms: number, callId: string): Fired;
}

/** Sums of milliseconds end in different last digits; a thousandth tells timers apart all the same. */
const slot = (dueMs: number, callId = ''): string => `${Math.round(dueMs * 1_000)} ${callId}`;

/** A live process reads its clock for each event of a tick, and sets timers by another reading. */
const TICK_MS = 50;

/** What a retry's wait, or the end of a time limit, has brought about. */
const followed = (event: TraceEvent | undefined): boolean =>
  event !== undefined && event.type !== 'abandoned' && !(event.type === 'decision' && event.code === 'canceled');

interface Stall {
  readonly fromMs: number;
  readonly toMs: number;
  /** What comes then comes in this order. Behind what showed that the timer had not come: that was there first. */
  readonly seq: number;
}

/** Whether a timer that was due then cannot have come before the end of a stall. */
const holdsBack = ({ fromMs, toMs }: Stall, dueMs: number): boolean => {
  // Many limits have one timer, which a replay sets by the first event of a tick: a little sooner than it was.
  const earlyMs = toMs - fromMs > TICK_MS ? TICK_MS : 0;
  return fromMs - earlyMs <= dueMs && dueMs < toMs;
};

interface Evidence {
  /** By the instant, and by that and the call whose timer it was. */
  readonly fired: Map<string, Fired>;
  /** Timers of an instant at which something else was first, and made an end of them. */
  readonly outrun: Set<string>;
  /** When waits were due and came, by their calls and lengths. */
  readonly waits: Map<string, Array<Fired & { readonly dueMs: number }>>;
  /** From when a timer was due until it came so late that all others had to wait, or until it had not come yet. */
  readonly stalls: Stall[];
}

/** When an attempt that showed no sign of life for longer than its tool may was not cut off for it. */
const readSigns = (
  events: readonly ToolEvent[],
  idleMs: ReadonlyMap<string, number>,
  stalls: Evidence['stalls'],
): void => {
  let seenMs = Infinity;
  for (const event of events) {
    const dueMs = seenMs + (idleMs.get(event.toolName) ?? Infinity);
    const ofAttempt = event.type.startsWith('attempt_') || event.type === 'progress';
    const isLimit = event.type === 'attempt_failed' && event.timeoutMs !== undefined;
    if (ofAttempt && !isLimit && event.atMs > dueMs)
      stalls.push({ fromMs: dueMs, toMs: event.atMs, seq: Number.MAX_SAFE_INTEGER });
    if (ofAttempt) seenMs = event.type === 'attempt_started' || event.type === 'progress' ? event.atMs : Infinity;
  }
};

const readCall = (
  told: readonly ToolEvent[],
  all: readonly TraceEvent[],
  { fired, outrun, waits, stalls }: Evidence,
): void => {
  // What goes on after the end of a call is bound by no limit of it.
  const events = told.filter((event) => !('late' in event));
  let dueAtMs = Infinity;
  const note = (dueMs: number, event: ToolEvent | undefined, waitMs?: number): void => {
    if (event === undefined || event.atMs < dueMs) return;
    if (!followed(event)) return event.atMs === dueMs ? void outrun.add(slot(dueMs, event.callId)) : undefined;
    const came = { atMs: event.atMs, seq: firstSeqOf(all, event, event.callId) };
    for (const name of [slot(dueMs), slot(dueMs, event.callId)]) if (!fired.has(name)) fired.set(name, came);
    // A limit says what it is; after a wait there may be something else to wait for.
    if (event.type === 'attempt_failed' && came.atMs - dueMs > TICK_MS)
      stalls.push({ fromMs: dueMs, toMs: came.atMs, seq: came.seq });
    if (waitMs === undefined) return;
    const name = waitName(event.callId, waitMs);
    waits.set(name, [...(waits.get(name) ?? []), { dueMs, ...came }]);
  };
  for (const [index, event] of events.entries()) {
    if (event.type === 'decision' && event.delayMs !== undefined)
      note(event.atMs + event.delayMs, events[index + 1], event.delayMs);
    if (event.type === 'attempt_started') dueAtMs = event.dueAtMs ?? Infinity;
    if (event.type === 'attempt_failed' && event.timeoutMs !== undefined)
      note(event.atMs - event.durationMs + event.timeoutMs, event);
    else if ((event.type === 'attempt_succeeded' || event.type === 'attempt_failed') && event.atMs > dueAtMs)
      stalls.push({ fromMs: dueAtMs, toMs: event.atMs, seq: Number.MAX_SAFE_INTEGER });
  }
  const [first] = events;
  const last = events.at(-1);
  const ownDeadlineMs = first?.type === 'call_started' ? first.terms?.deadlineAtMs : undefined;
  if (ownDeadlineMs !== undefined && last?.type === 'settled' && last.result.error?.code === 'deadline_exceeded')
    note(ownDeadlineMs, events.find(({ atMs }) => atMs === last.atMs) ?? last);
};

const readTurns = (events: readonly TraceEvent[], { fired }: Evidence): void => {
  const dueMs = new Map<string, number>();
  for (const event of events) {
    if (event.source !== 'turn') continue;
    if (event.type === 'turn_started') dueMs.set(event.turnId, event.atMs + event.timeoutMs);
    const due = dueMs.get(event.turnId);
    if (event.type === 'deadline' && due !== undefined && event.atMs >= due)
      fired.set(slot(due), { atMs: event.atMs, seq: event.seq });
  }
};

const waitName = (callId: string, ms: number): string => `${callId} ${ms}`;

/** The firing that a wait of the same call and length must be, set a little sooner or later within one tick. */
const nearest = <T extends { readonly dueMs: number }>(own: readonly T[], dueMs: number): T | undefined => {
  const distance = (of: T): number => Math.abs(of.dueMs - dueMs);
  const best = own.reduce<T | undefined>((a, b) => (a === undefined || distance(b) < distance(a) ? b : a), undefined);
  return best !== undefined && distance(best) < TICK_MS ? best : undefined;
};

/** What a trace shows of how late its timers came. */
export function latenessIn(
  events: readonly TraceEvent[],
  byCall: ReadonlyMap<string, readonly ToolEvent[]>,
  tools: readonly ToolInForce[],
): Lateness {
  const evidence: Evidence = { fired: new Map(), outrun: new Set(), waits: new Map(), stalls: [] };
  const idleMs = new Map(tools.map(({ name, policy }) => [name, policy.idleTimeoutMs ?? Infinity]));
  for (const own of byCall.values()) {
    readCall(own, events, evidence);
    readSigns(own, idleMs, evidence.stalls);
  }
  readTurns(events, evidence);
  return {
    firedAt: (dueMs, ms, callId) => {
      const known = evidence.fired.get(slot(dueMs, callId));
      if (known !== undefined) return known;
      if (evidence.outrun.has(slot(dueMs, callId))) return { atMs: dueMs, seq: Number.MAX_SAFE_INTEGER };
      const ofOthers = evidence.fired.get(slot(dueMs));
      if (ofOthers !== undefined) return ofOthers;
      const nearly = nearest(evidence.waits.get(waitName(callId, ms)) ?? [], dueMs);
      if (nearly !== undefined) return { atMs: Math.max(dueMs, nearly.atMs), seq: nearly.seq };
      const until = evidence.stalls
        .filter((stall) => holdsBack(stall, dueMs))
        .reduce<Stall | undefined>(
          (last, stall) => (last !== undefined && last.toMs >= stall.toMs ? last : stall),
          undefined,
        );
      return until === undefined ? { atMs: dueMs, seq: 0 } : { atMs: until.toMs, seq: until.seq };
    },
  };
}
