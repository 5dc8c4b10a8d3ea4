import type { ErrorReport, ToolEvent, TraceEvent } from '../../../contract/event.ts';
import type { Progress } from '../../../contract/tool.ts';

/** What one attempt did, as far as the trace tells. */
export interface RecordedAttempt {
  readonly callId: string;
  readonly toolName: string;
  /** Counted from 1 at this tool of this call. */
  readonly own: number;
  readonly startMs: number;
  readonly endMs: number;
  /** The place among all events of the first that its end brought about. */
  readonly endSeq: number;
  readonly durationMs: number;
  /** `cut`: the layer's own limit, or whoever ended the call, cut it off: what it would have done is not known. */
  readonly end: 'success' | 'failure' | 'cut';
  /** It was cut by the limit of its tool, or of its call: by then it had not answered. */
  readonly limited: boolean;
  /** It was cut after it had given a value. */
  readonly answered: boolean;
  readonly error?: ErrorReport;
  readonly rule?: string;
  readonly classification?: 'transient' | 'permanent';
  readonly progress: ReadonlyArray<{ readonly atMs: number; readonly seq: number; readonly report: Progress }>;
  /** Nothing else happened in between: it answered while it was started. */
  readonly atOnce: boolean;
}

/** What an attempt is known by: its call, its tool, and how many at that tool came before it. */
export const attemptKey = (callId: string, toolName: string, own: number): string => `${callId} ${own} ${toolName}`;

/** What a failure is known by: a retry that is refused fails once more without an attempt of its own. */
export const failureKey = (callId: string, toolName: string, own: number, refused: boolean): string =>
  `${attemptKey(callId, toolName, own)}${refused ? ' refused' : ''}`;

type Started = Extract<ToolEvent, { type: 'attempt_started' }>;
type Ended = Extract<ToolEvent, { type: 'attempt_succeeded' | 'attempt_failed' | 'attempt_canceled' }>;
type Told = RecordedAttempt['progress'][number];

interface Running {
  readonly started: Started;
  readonly own: number;
  readonly progress: Told[];
  /** Events that are not its own have come since it started. */
  others: boolean;
}

/** How an attempt ended; a limit of the layer's is told with its length. */
const endOf = (event: Ended): RecordedAttempt['end'] => {
  if (event.type === 'attempt_succeeded') return 'success';
  return event.type === 'attempt_failed' && event.timeoutMs === undefined ? 'failure' : 'cut';
};

const attemptOf = ({ started, own, progress, others }: Running, event: Ended, endSeq: number): RecordedAttempt => {
  const { callId, toolName, atMs: startMs } = started;
  const end = endOf(event);
  const why = event.type === 'attempt_failed' && end === 'failure' ? event : undefined;
  return {
    callId,
    toolName,
    own,
    startMs,
    endMs: event.atMs,
    endSeq,
    durationMs: event.durationMs,
    end,
    limited: event.type === 'attempt_failed' && event.timeoutMs !== undefined,
    answered: event.type === 'attempt_canceled' && event.answered === true,
    progress,
    atOnce: !others && event.atMs === startMs,
    ...(why === undefined ? {} : { error: why.error, rule: why.rule, classification: why.classification }),
  };
};

/** Whether an event comes of an attempt that ends, as those of its breaker do. */
const isOf = (event: TraceEvent, callId: string): boolean =>
  (event.source === 'call' || event.type === 'breaker_changed') && event.callId === callId;

/**
 * The place of the first event that came of what an event tells: its breaker's change is told before it. `seq` is also
 * the place in a trace that is whole.
 */
export function firstSeqOf(events: readonly TraceEvent[], { seq, atMs }: TraceEvent, callId: string): number {
  let first = seq;
  for (let before = events[first - 1]; before !== undefined; before = events[first - 1]) {
    if (before.type !== 'breaker_changed' || before.callId !== callId || before.atMs !== atMs) return first;
    first--;
  }
  return first;
}

/** Every attempt of a trace, by what it is known by. */
export function attemptsIn(events: readonly TraceEvent[]): Map<string, RecordedAttempt> {
  const attempts = new Map<string, RecordedAttempt>();
  const running = new Map<string, Running>();
  const fresh = new Set<Running>();
  const counts = new Map<string, number>();
  for (const event of events) {
    // Of those that have just begun, all but the one that this event is of have seen something else happen.
    for (const attempt of fresh) {
      if (event.atMs === attempt.started.atMs && isOf(event, attempt.started.callId)) continue;
      attempt.others = true;
      fresh.delete(attempt);
    }
    if (event.source !== 'call') continue;
    const { callId, toolName } = event;
    if (event.type === 'attempt_started') {
      const tally = `${callId} ${toolName}`;
      const own = (counts.get(tally) ?? 0) + 1;
      counts.set(tally, own);
      const attempt: Running = { started: event, own, progress: [], others: false };
      running.set(callId, attempt);
      fresh.add(attempt);
    } else if (event.type === 'progress') {
      running.get(callId)?.progress.push({ atMs: event.atMs, seq: event.seq, report: event.report });
    } else if (
      event.type === 'attempt_succeeded' ||
      event.type === 'attempt_failed' ||
      event.type === 'attempt_canceled'
    ) {
      const attempt = running.get(callId);
      if (attempt === undefined) continue;
      running.delete(callId);
      fresh.delete(attempt);
      attempts.set(
        attemptKey(callId, toolName, attempt.own),
        attemptOf(attempt, event, firstSeqOf(events, event, callId)),
      );
    }
  }
  return attempts;
}
