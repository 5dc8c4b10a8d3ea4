import type { TraceEvent } from '../contract/event.ts';

/**
 * Whether an event is the policies that a part of a file begins with, where the part that it goes on from is there as
 * well: then they were told before.
 */
export const isToldAgain = (event: TraceEvent, before: TraceEvent | undefined): boolean =>
  event.type === 'layer_started' && event.again === true && event.seq === before?.seq && event.atMs === before.atMs;
