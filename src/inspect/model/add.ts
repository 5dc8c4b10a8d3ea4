import type { TraceEvent } from '../../contract/event.ts';
import type { TraceModel } from '../model.ts';
import { addBreakerAtStart, addLayerEvent } from './breakers.ts';
import { addCallEvent } from './calls.ts';
import { numberOf, pushMany } from './keep.ts';
import { addTurnEvent } from './turns.ts';
import { addUnseen } from './unseen.ts';

/**
 * Takes an event into a model, and gives the model: made for `scan`, whose accumulator it is. It changes the model in
 * place, since a copy for each event of a long trace would cost its square; it depends on nothing else, and never
 * throws, whatever the event holds and in which order events come.
 *
 * @param model of `emptyTrace`
 * @param event of `trace$`, or of a file
 *
 * @example
 * spillway.trace$.pipe(scan(addEvent, emptyTrace())).subscribe(({ turns }) => log.push(turns.size));
 */
export function addEvent(model: TraceModel, event: TraceEvent): TraceModel {
  const atMs = numberOf(event.atMs);
  if (atMs === undefined) return model;
  if (model.eventCount++ === 0) model.firstMs = atMs;
  model.firstMs = Math.min(model.firstMs, atMs);
  model.lastMs = Math.max(model.lastMs, atMs);
  pushMany(model.events, event, model.limits.events);
  if (event.source === 'call') {
    if (event.type === 'call_started') addBreakerAtStart(model, event);
    addCallEvent(model, event);
  } else if (event.source === 'turn') addTurnEvent(model, event);
  else if (event.source === 'layer') addLayerEvent(model, event);
  addUnseen(model, event);
  return model;
}
