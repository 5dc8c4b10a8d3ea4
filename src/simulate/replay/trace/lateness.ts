import type { ToolEvent, TraceEvent } from '../../../contract/event.ts';
import { firstSeqOf } from './attempts.ts';

/** When a timer that was due came, as the trace shows it. */
export interface Fired {
  readonly atMs: number;
  /** The place of the first event that it brought about. */
  readonly seq: number;
}

/** How late the recorded process was: timers come when its event loop gets to them. */
export interface Lateness {
  /** When a timer that is due then comes. One of which nothing is recorded comes at its instant. */
  firedAt(dueMs: number): Fired;
}

/** Sums of milliseconds end in different last digits; a thousandth tells timers apart all the same. */
const slot = (dueMs: number): number => Math.round(dueMs * 1_000);

/** What a retry's wait, or the end of a time limit, has brought about. */
const followed = (event: TraceEvent | undefined): boolean =>
  event !== undefined && event.type !== 'abandoned' && !(event.type === 'decision' && event.code === 'canceled');

interface Evidence {
  readonly fired: Map<number, Fired>;
  /** From when a timer was due until something else showed that it had not come. */
  readonly stalls: Array<readonly [from: number, to: number]>;
}

const readCall = (events: readonly ToolEvent[], all: readonly TraceEvent[], { fired, stalls }: Evidence): void => {
  let dueAtMs = Infinity;
  const note = (dueMs: number, event: ToolEvent | undefined): void => {
    if (event !== undefined && followed(event) && event.atMs >= dueMs && !fired.has(slot(dueMs)))
      fired.set(slot(dueMs), { atMs: event.atMs, seq: firstSeqOf(all, event, event.callId) });
  };
  for (const [index, event] of events.entries()) {
    if (event.type === 'decision' && event.delayMs !== undefined) note(event.atMs + event.delayMs, events[index + 1]);
    if (event.type === 'attempt_started') dueAtMs = event.dueAtMs ?? Infinity;
    if (event.type === 'attempt_failed' && event.timeoutMs !== undefined)
      note(event.atMs - event.durationMs + event.timeoutMs, event);
    else if ((event.type === 'attempt_succeeded' || event.type === 'attempt_failed') && event.atMs > dueAtMs)
      stalls.push([dueAtMs, event.atMs]);
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

/** What a trace shows of how late its timers came. */
export function latenessIn(events: readonly TraceEvent[], byCall: ReadonlyMap<string, readonly ToolEvent[]>): Lateness {
  const evidence: Evidence = { fired: new Map(), stalls: [] };
  for (const own of byCall.values()) readCall(own, events, evidence);
  readTurns(events, evidence);
  const stalls = evidence.stalls.toSorted(([a], [b]) => a - b);
  return {
    firedAt: (dueMs) => {
      const known = evidence.fired.get(slot(dueMs));
      if (known !== undefined) return known;
      const stalled = stalls.filter(([from, to]) => from <= dueMs && dueMs < to).map(([, to]) => to);
      // Behind what showed the stall: that was there first.
      return stalled.length === 0
        ? { atMs: dueMs, seq: 0 }
        : { atMs: Math.max(...stalled), seq: Number.MAX_SAFE_INTEGER };
    },
  };
}
