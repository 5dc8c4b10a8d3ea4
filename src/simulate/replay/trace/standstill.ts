import type { TraceEvent } from '../../../contract/event.ts';

/** A process that stood still: its event loop was blocked, or its machine slept. */
export interface Standstill {
  readonly ms: number;
  /** The event that came after it. */
  readonly seq: number;
}

/** An event came later than it is decided now: nothing was told in the meantime, and nothing after it came sooner. */
const before = (
  events: readonly TraceEvent[],
  seq: number,
  lateMs: number,
  slackMs: number,
): Standstill | undefined => {
  const [last, event] = [events[seq - 1], events[seq]];
  if (last === undefined || event === undefined || lateMs <= slackMs) return undefined;
  const ms = event.atMs - last.atMs;
  const isInOrder = events.slice(seq + 1).every(({ atMs }) => atMs >= event.atMs);
  return ms > slackMs && isInOrder ? { ms, seq } : undefined;
};

/** By how much a timer came too late, as its event says itself. */
const latenessOf = (event: TraceEvent, previous: TraceEvent | undefined): number => {
  if (event.type === 'attempt_failed' && event.timeoutMs !== undefined) return event.durationMs - event.timeoutMs;
  if (previous?.type !== 'decision' || previous.delayMs === undefined || event.type !== 'attempt_started') return 0;
  return event.atMs - previous.atMs - previous.delayMs;
};

/** The timer that came latest, if it came so late that the process must have stood still. */
const latestTimer = (events: readonly TraceEvent[], slackMs: number): Standstill | undefined => {
  let latest: Standstill | undefined;
  const ofCalls = new Map<string, TraceEvent>();
  for (const event of events) {
    if (event.source !== 'call') continue;
    const ms = latenessOf(event, ofCalls.get(event.callId));
    if (ms > Math.max(slackMs, latest?.ms ?? 0)) latest = { ms, seq: event.seq };
    ofCalls.set(event.callId, event);
  }
  return latest;
};

/**
 * What the times of a trace say of a process that stood still, which a replay may not be able to follow: what was due
 * meanwhile came in an order that hangs on the event loop alone.
 * @param seq the event that is decided otherwise
 * @param lateMs by how much it came later than it is decided now
 */
export const standstillIn = (
  events: readonly TraceEvent[],
  { seq, lateMs = 0 }: { readonly seq: number; readonly lateMs?: number },
  slackMs: number,
): Standstill | undefined => before(events, seq, lateMs, slackMs) ?? latestTimer(events, slackMs);
