import type { BreakerStateName } from '../../contract/breaker-state.ts';
import type { LayerEvent, ToolEvent, ToolInForce } from '../../contract/event.ts';
import type { BreakerTold, TraceModel } from '../model.ts';
import { lineOf, wordOf } from '../text.ts';
import { listOf, numberOf, push, recordOf } from './keep.ts';

const TOOLS_MAX = 2_000;

/** The length keeps two different pairs from giving one key. */
const idOf = (key: string, scope: string): string => `${scope.length}:${scope}${key}`;

const breakerOf = (
  { breakers, limits }: TraceModel,
  key: string,
  scope: string,
  state: BreakerStateName,
  atMs: number,
): BreakerTold => {
  const id = idOf(key, scope);
  const known = breakers.get(id);
  if (known !== undefined) return known;
  if (breakers.size >= limits.breakers) {
    const [oldest] = breakers.keys();
    if (oldest !== undefined) breakers.delete(oldest);
  }
  const made: BreakerTold = { key, scope, firstState: state, firstMs: atMs, changes: [], changeCount: 0, state };
  breakers.set(id, made);
  return made;
};

/** How a breaker stood when a call began is news of one that nothing was told of before. */
export function addBreakerAtStart(model: TraceModel, event: Extract<ToolEvent, { type: 'call_started' }>): void {
  const { key, state } = recordOf(event.breaker);
  if (typeof key !== 'string' || typeof state !== 'string') return;
  breakerOf(model, lineOf(key, 256), lineOf(event.tenant, 128), wordOf(state as BreakerStateName), event.atMs);
}

const change = (model: TraceModel, event: Extract<LayerEvent, { type: 'breaker_changed' }>): void => {
  const { atMs } = event;
  const [from, to] = [wordOf(event.from), wordOf(event.to)];
  const breaker = breakerOf(model, lineOf(event.toolName, 256), lineOf(event.scope, 128), from, atMs);
  const untilMs = numberOf(event.untilMs);
  const { callId } = event;
  breaker.state = to;
  breaker.changeCount++;
  const told = {
    atMs,
    from,
    to,
    ...(untilMs === undefined ? {} : { untilMs }),
    ...(callId === undefined ? {} : { callId: lineOf(callId, 128) }),
  };
  push(breaker.changes, told, model.limits.changes);
};

export function addLayerEvent(model: TraceModel, event: LayerEvent): void {
  switch (event.type) {
    case 'layer_started':
      model.version = lineOf(event.version, 32);
      for (const tool of listOf(event.tools)) {
        const { name } = recordOf(tool);
        if (typeof name === 'string' && model.tools.size < TOOLS_MAX) model.tools.set(name, tool as ToolInForce);
      }
      return;
    case 'breaker_changed':
      return change(model, event);
    case 'breaker_evicted':
      return void model.breakers.delete(idOf(lineOf(event.toolName, 256), lineOf(event.scope, 128)));
    case 'store_changed':
      model.store = { atMs: event.atMs, state: lineOf(event.state, 32), message: lineOf(event.message) };
  }
}
