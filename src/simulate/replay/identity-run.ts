import type { TraceEvent } from '../../contract/event.ts';
import { Fates } from './fates.ts';
import { decidedOtherwise, firstDifference, type Difference } from './identity.ts';
import { ReplayRefusal } from './refusal.ts';
import { readRecording, type Recording } from './trace/recording.ts';
import { TraceWorld } from './world.ts';

/** Other readings that are tried for one trace. */
const READINGS_MAX = 16;

/** A recording as its own policies decided it once more, and where that differs from it first. */
interface Decided {
  readonly recording: Recording;
  readonly difference: Difference | undefined;
}

const decided = (recording: Recording, fates: Fates): Decided => {
  try {
    const { events, madeAtMs } = new TraceWorld(recording, recording, 'recorded', fates).run();
    return { recording: { ...recording, madeAtMs }, difference: firstDifference(recording, events) };
  } catch (error) {
    // No layer had such policies.
    if (!(error instanceof RangeError)) throw error;
    throw new ReplayRefusal('malformed', `event 1 (layer_started) is none of a layer: ${error.message}`, 1);
  }
};

/** The recording with one ending up to an event read in each other way, the latest ending first. */
const readOtherwise = (recording: Recording, seq: number): Recording[] => {
  const { events, calls, turns, readings } = recording;
  const untilMs = events[seq]?.atMs ?? 0;
  return [
    ...calls.map(({ started, endings }) => ({ id: started.callId, endings })),
    ...turns.map(({ started, endings }) => ({ id: started.turnId, endings })),
  ]
    .filter(({ endings: [first] }) => first !== undefined && first.atMs <= untilMs)
    .toSorted(({ endings: [a] }, { endings: [b] }) => (b?.seq ?? 0) - (a?.seq ?? 0))
    .flatMap(({ id, endings }) =>
      endings.flatMap((_, reading) =>
        reading === (readings.get(id) ?? 0) ? [] : [{ ...recording, readings: new Map([...readings, [id, reading]]) }],
      ),
    );
};

/**
 * What an ending brought about and what only came after it is in no event, so a trace may be read in several ways: it
 * is as it was read if the recorded policies then decide what it says.
 */
const asDecided = (recording: Recording, fates: Fates): Recording => {
  const first = decided(recording, fates);
  let best = first;
  let others = first.difference === undefined ? [] : readOtherwise(recording, first.difference.seq);
  for (let tried = 0; best.difference !== undefined && tried < READINGS_MAX; tried++) {
    const reading = others.shift();
    if (reading === undefined) break;
    const other = decided(reading, fates);
    if (other.difference !== undefined && other.difference.seq <= best.difference.seq) continue;
    best = other;
    others = other.difference === undefined ? [] : readOtherwise(reading, other.difference.seq);
  }
  if (first.difference !== undefined && best.difference !== undefined)
    throw decidedOtherwise(first.recording, first.difference);
  return best.recording;
};

/**
 * Reads a trace and lets the recorded policies decide it once more.
 * @throws ReplayRefusal for a trace that is not whole, or that they decide otherwise
 */
export function identified(events: readonly TraceEvent[]): { readonly recording: Recording; readonly fates: Fates } {
  const recording = readRecording(events);
  const fates = new Fates(recording);
  return { recording: asDecided(recording, fates), fates };
}
