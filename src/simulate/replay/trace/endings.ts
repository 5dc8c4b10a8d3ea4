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

/**
 * A live process reads its clock for each event of a tick, where a replay has one instant for all of them: so far apart
 * are at most what one brings about, and what is done as it was recorded.
 */
export const TICK_MS = 50;

/** The place in `events` of the first of those at its end that follow from the ending. */
const firstOf = (events: readonly TraceEvent[]): number => {
  const lastMs = events.at(-1)?.atMs ?? 0;
  let index = events.length;
  while (index > 1) {
    const event = events[index - 1];
    if (event === undefined || lastMs - event.atMs > TICK_MS || !canceled(event)) break;
    index--;
  }
  return index;
};

/** Ways to read an ending, the likeliest first: which of the last events it brought about, no event says. */
const endingsAt = (events: readonly TraceEvent[], how: Ending['how']): Ending[] => {
  const from = firstOf(events);
  return events.flatMap((first, told): Ending[] => {
    const before = events[told - 1];
    if (told < from || before === undefined) return [];
    const ending = { how, atMs: first.atMs, seq: first.seq, told, inNext: false };
    const mayBeInNext = first.seq === before.seq + 1 && first.atMs === before.atMs;
    return mayBeInNext ? [{ ...ending, inNext: true }, ending] : [ending];
  });
};

/** Whether a call that had its key settled without waiting until its outcome was kept: its caller had ended it. */
const wasUnheard = (events: readonly TurnEvent[]): boolean => {
  const steps = events.flatMap((event) => (event.type === 'dedupe' ? [event.step] : []));
  return steps.at(-1) === 'claimed' && (events.at(-1)?.atMs ?? 0) > (events.at(-2)?.atMs ?? 0);
};

/** How the caller of a call outside of turns ended it, if it did. */
export const callEndings = (all: readonly TurnEvent[]): Ending[] => {
  // What it does after that, for others that wait for its key, is told to nobody but the trace.
  const events = all.filter((event) => !('late' in event));
  const last = events.at(-1);
  if (last?.type === 'abandoned') return endingsAt(events, 'leave');
  if (last?.type === 'settled' && wasUnheard(events)) {
    const { atMs, seq } = last;
    return [{ how: 'abort', atMs, seq, told: events.length - 1, inNext: false }];
  }
  const error = last?.type === 'settled' && last.source === 'call' ? last.result.error : undefined;
  return error?.code === 'canceled' ? endingsAt(events, 'abort') : [];
};

/** How the caller of a turn ended it, if it did. */
export const turnEndings = (told: readonly TurnEvent[]): Ending[] => {
  const end = told.findIndex(({ source, type }) => source === 'turn' && (type === 'settled' || type === 'abandoned'));
  const last = told[end];
  // What calls do after their turn is told to nobody but the trace.
  const events = told.slice(0, end + 1).filter((event) => !('late' in event));
  if (last?.type === 'abandoned') return endingsAt(events, 'leave');
  if (last?.source !== 'turn' || last.type !== 'settled') return [];
  const wasCut = last.result.nodes.some(({ state, result }) => state === 'canceled' && result === undefined);
  return wasCut ? endingsAt(events, 'abort') : [];
};
