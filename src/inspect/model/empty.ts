import type { TraceModel } from '../model.ts';
import type { TraceLimits } from './limits.ts';

const DEFAULTS: Required<TraceLimits> = {
  turns: 500,
  nodes: 20_000,
  calls: 20_000,
  attempts: 200,
  marks: 1_000,
  breakers: 500,
  changes: 500,
  events: 2_000,
};

/**
 * A model that has heard nothing yet.
 *
 * @param limits how much it keeps
 *
 * @example
 * const model = emptyTrace({ turns: 50 });
 * spillway.trace$.subscribe((event) => addEvent(model, event));
 */
export function emptyTrace(limits: TraceLimits = {}): TraceModel {
  return {
    limits: { ...DEFAULTS, ...limits },
    turns: new Map(),
    loose: new Map(),
    calls: new Map(),
    breakers: new Map(),
    tools: new Map(),
    budgets: [],
    events: [],
    eventCount: 0,
    turnCount: 0,
    forgotten: { turns: 0, calls: 0 },
    firstMs: 0,
    lastMs: 0,
    version: '',
  };
}
