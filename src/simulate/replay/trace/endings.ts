import type { TraceEvent, TurnEvent } from '../../../contract/event.ts';

/** How a caller ended what it had asked for. */
export interface Ending {
  readonly how: 'leave' | 'abort';
  readonly atMs: number;
  /** The place among all events of the first that it brought about. */
  readonly seq: number;
  /** How many events the caller had been told until then. */
  readonly told: number;
  /** It may have ended it while it was told the last of them. */
  readonly inNext: boolean;
}

const canceled = (event: TraceEvent): boolean => {
  if (event.type === 'attempt_canceled' || event.type === 'abandoned') return true;
  if (event.type === 'decision') return event.code === 'canceled';
  if (event.type === 'rejected') return event.error.kind === 'canceled';
  if (event.type === 'node_settled') return event.state === 'canceled';
  if (event.source === 'turn') return event.type === 'settled' || event.type === 'escalated';
  return event.type === 'settled' && event.result.error?.code === 'canceled';
};

/** The place in `events` of the first of those at its end that follow from the ending. */
const firstOf = (events: readonly TraceEvent[]): number => {
  const last = events.at(-1);
  let index = events.length;
  while (index > 1) {
    const event = events[index - 1];
    if (event === undefined || event.atMs !== last?.atMs || !canceled(event)) break;
    index--;
  }
  return index;
};

const endingAt = (events: readonly TraceEvent[], how: Ending['how']): Ending | undefined => {
  const index = firstOf(events);
  const [before, first] = [events[index - 1], events[index]];
  if (before === undefined || first === undefined) return undefined;
  const inNext = first.seq === before.seq + 1 && first.atMs === before.atMs;
  return { how, atMs: first.atMs, seq: first.seq, told: index, inNext };
};

/** How the caller of a call outside of turns ended it, if it did. */
export const callEnding = (all: readonly TurnEvent[]): Ending | undefined => {
  // What it does after that, for others that wait for its key, is told to nobody but the trace.
  const events = all.filter((event) => !('late' in event));
  const last = events.at(-1);
  if (last?.type === 'abandoned') return endingAt(events, 'leave');
  const error = last?.type === 'settled' && last.source === 'call' ? last.result.error : undefined;
  return error?.code === 'canceled' ? endingAt(events, 'abort') : undefined;
};

/** How the caller of a turn ended it, if it did. */
export const turnEnding = (told: readonly TurnEvent[]): Ending | undefined => {
  const end = told.findIndex(({ source, type }) => source === 'turn' && (type === 'settled' || type === 'abandoned'));
  const last = told[end];
  // What calls do after their turn is told to nobody but the trace.
  const events = told.slice(0, end + 1).filter((event) => !('late' in event));
  if (last?.type === 'abandoned') return endingAt(events, 'leave');
  if (last?.source !== 'turn' || last.type !== 'settled') return undefined;
  const wasCut = last.result.nodes.some(({ state, result }) => state === 'canceled' && result === undefined);
  return wasCut ? endingAt(events, 'abort') : undefined;
};
