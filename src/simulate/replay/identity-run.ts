import type { TraceEvent } from '../../contract/event.ts';
import { Fates } from './fates.ts';
import { checkIdentity } from './identity.ts';
import { readRecording, type Recording } from './trace/recording.ts';
import { TraceWorld } from './world.ts';

/**
 * Reads a trace and lets the recorded policies decide it once more.
 * @throws ReplayRefusal for a trace that is not whole, or that they decide otherwise
 */
export function identified(events: readonly TraceEvent[]): { readonly recording: Recording; readonly fates: Fates } {
  const recording = readRecording(events);
  const fates = new Fates(recording);
  const replayed = new TraceWorld(recording, recording, 'recorded', fates).run();
  checkIdentity(recording, replayed.events);
  return { recording, fates };
}
