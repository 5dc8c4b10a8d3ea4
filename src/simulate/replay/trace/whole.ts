import type { TraceEvent } from '../../../contract/event.ts';
import { isToldAgain } from '../../../inspect/told-again.ts';
import { ReplayRefusal } from '../refusal.ts';

/** A trace as `readNdjson` gives it: its events, and what is known of what is missing. */
export interface TraceInFile {
  /** The events that could be read. */
  readonly events: readonly TraceEvent[];
  /** Lines that could not be read. */
  readonly leftOut: ReadonlyArray<{
    /** The line's number, from 1. */
    readonly line: number;
    /** Why; `torn` is a last line without an end. */
    readonly why: string;
  }>;
  /** How many. */
  readonly leftOutCount: number;
  /** Events that were lost before they were written. */
  readonly dropped: number;
  /** The `seq` of the last event, where its sink was closed. */
  readonly lastSeq?: number;
  /** Whether the lines are not those that its sink wrote; absent where the file does not say. */
  readonly changed?: boolean;
}

/** What there is up to the last moment at which no call and no turn was open. */
const untilIdle = (events: readonly TraceEvent[]): readonly TraceEvent[] => {
  const open = new Set<string>();
  let end = 0;
  for (const [index, event] of events.entries()) {
    if (event.source !== 'layer') {
      const whose = event.source === 'call' ? `call ${event.callId}` : `turn ${event.turnId}`;
      if (event.type === 'call_started' || event.type === 'turn_started') open.add(whose);
      if (event.type === 'settled' || event.type === 'abandoned') open.delete(whose);
    }
    if (open.size === 0) end = index + 1;
  }
  // Nothing but its beginning: then it is said which call was open.
  return end > 1 ? events.slice(0, end) : events;
};

const refuseTorn = ({ events, leftOut, leftOutCount, dropped }: TraceInFile, running: boolean): void => {
  const [first] = leftOut;
  if (first !== undefined && events.length === 0)
    throw new ReplayRefusal(
      'empty',
      `it holds no events of spillway: line ${first.line} is none (${first.why.replaceAll('_', ' ')}), and no other ` +
        'is; name a file of ndjsonSink, or of spillway run --trace',
    );
  if (first !== undefined && !(running && leftOutCount === 1 && first.why === 'torn'))
    throw new ReplayRefusal(
      'torn',
      `${leftOutCount} of its lines cannot be read, the first is line ${first.line} ` +
        `(${first.why.replaceAll('_', ' ')}); replay the file as it was recorded`,
    );
  if (dropped > 0) throw new ReplayRefusal('torn', `it says itself that ${dropped} events were lost; record it anew`);
};

const refuseCut = ({ lastSeq, events }: TraceInFile): void => {
  const last = events.at(-1)?.seq;
  if (lastSeq === undefined)
    throw new ReplayRefusal(
      'truncated',
      'it has no last line, which its sink writes when it is closed: its end may be cut off. Close the file, or say ' +
        '--running (`running: true`) and have what is there replayed, up to the last moment at which no call was open',
    );
  if (last !== undefined && lastSeq !== last)
    throw new ReplayRefusal(
      'truncated',
      `its last event is ${last}, and was ${lastSeq}; replay the file as it was recorded`,
    );
};

/**
 * The events of a trace of which nothing is missing: a list in memory is what who made it says that it is, and a file
 * says itself where it ends.
 * @param running whether it may have no end yet
 * @throws ReplayRefusal for a file of which lines or events are lost, or may be
 */
export function wholeTrace(trace: readonly TraceEvent[] | TraceInFile, running: boolean): readonly TraceEvent[] {
  const isFile = 'events' in trace;
  // Parts may have been put together as lists.
  const events = (isFile ? trace.events : trace).filter((event, at, all) => !isToldAgain(event, all[at - 1]));
  if (isFile) refuseTorn(trace, running);
  if (running) return untilIdle(events);
  if (isFile && events.length > 0) refuseCut(trace);
  return events;
}

/**
 * Refuses a file that was changed since it was written, in a way that no event tells of. Asked last: what an event
 * tells is the better reason.
 * @throws ReplayRefusal
 */
export function refuseChanged(trace: readonly TraceEvent[] | TraceInFile): void {
  if (!('events' in trace) || trace.changed !== true) return;
  throw new ReplayRefusal(
    'changed',
    'its lines are not those that were written: since then at least one was changed, moved, taken out or put in; ' +
      'replay the file as it was recorded',
  );
}
