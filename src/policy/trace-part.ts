import type { TraceContext } from '../contract/event/trace-context.ts';
import { shaped } from './shape/parts.ts';
import { traceContextShape } from './shape/request.ts';

/** The trace that a turn is part of, as its calls have it. */
export type TracePart = Partial<TraceContext>;

/** What events tell of it: its baggage is for those who are called. */
export const toldOf = ({ baggage: _, ...told }: TracePart): Omit<TracePart, 'baggage'> => told;

/**
 * The trace context that a turn is given; nothing where it is given none.
 * @throws RangeError for what is none
 */
export function tracePartOf(given: TraceContext | undefined): TracePart {
  if (given === undefined) return {};
  const { fits, problem } = shaped(traceContextShape, given);
  if (problem !== undefined) {
    const rule = 'traceparent, 1 to 256 characters; perhaps tracestate, at most 2,048; and baggage, texts by name';
    throw new RangeError(`traceContext must be an object with ${rule}`);
  }
  return fits;
}
