import type { TraceEvent } from '../../contract/event.ts';
import { Fates } from './fates.ts';
import { checkIdentity } from './identity.ts';
import { ReplayRefusal } from './refusal.ts';
import { readRecording, type Recording } from './trace/recording.ts';
import { TraceWorld } from './world.ts';

const decidedOnceMore = (recording: Recording, fates: Fates): ReturnType<TraceWorld['run']> => {
  try {
    return new TraceWorld(recording, recording, 'recorded', fates).run();
  } catch (error) {
    // No layer had such policies.
    if (!(error instanceof RangeError)) throw error;
    throw new ReplayRefusal('malformed', `event 1 (layer_started) is none of a layer: ${error.message}`, 1);
  }
};

/**
 * Reads a trace and lets the recorded policies decide it once more.
 * @throws ReplayRefusal for a trace that is not whole, or that they decide otherwise
 */
export function identified(events: readonly TraceEvent[]): { readonly recording: Recording; readonly fates: Fates } {
  const recording = readRecording(events);
  const fates = new Fates(recording);
  const replayed = decidedOnceMore(recording, fates);
  checkIdentity(recording, replayed.events);
  return { recording, fates };
}
