import type { BreakerStateName } from '../../contract/breaker-state.ts';
import type { LayerEvent, ToolEvent, ToolInForce } from '../../contract/event.ts';
import type { BreakerChangeSeen, BreakerTold, TraceModel } from '../model.ts';
import { sentence, wordOf } from '../text.ts';
import { given, idOf, listOf, numberOf, optionalLine, push, recordOf } from './keep.ts';

const TOOLS_MAX = 2_000;
const NOTES_MAX = 50;

/** The length keeps two different pairs from giving one key. */
const nameOf = (key: string, scope: string): string => `${scope.length}:${scope}${key}`;

const breakerOf = (
  { breakers, limits }: TraceModel,
  key: string,
  scope: string,
  state: BreakerStateName,
  atMs: number,
): BreakerTold => {
  const id = nameOf(key, scope);
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
  breakerOf(model, idOf(key), idOf(event.tenant), wordOf(state as BreakerStateName), event.atMs);
}

/** What a budget kept from a call is a remark on that. */
const noteBudget = (model: TraceModel, event: Extract<LayerEvent, { type: 'budget' }>): void => {
  const { atMs, per, step, left, limit, unit } = event;
  const text = sentence`budget of the ${per}: ${step}, ${left} of ${limit} ${unit} left`;
  const call = model.calls.get(idOf(event.callId));
  if (call !== undefined) push(call.notes, { atMs, text }, NOTES_MAX);
};

const change = (model: TraceModel, event: Extract<LayerEvent, { type: 'breaker_changed' }>): void => {
  const { atMs } = event;
  const [from, to] = [wordOf(event.from), wordOf(event.to)];
  const breaker = breakerOf(model, idOf(event.toolName), idOf(event.scope), from, atMs);
  breaker.state = to;
  breaker.changeCount++;
  const told = given<BreakerChangeSeen>({
    atMs,
    from,
    to,
    untilMs: numberOf(event.untilMs),
    callId: optionalLine(event.callId),
    ordered: event.ordered === true || undefined,
  });
  push(breaker.changes, told, model.limits.changes);
};

export function addLayerEvent(model: TraceModel, event: LayerEvent): void {
  switch (event.type) {
    case 'budget':
      return noteBudget(model, event);
    case 'layer_started':
      for (const tool of listOf(event.tools)) {
        const { name } = recordOf(tool);
        const line = idOf(name);
        if (typeof name === 'string' && model.tools.size < TOOLS_MAX)
          model.tools.set(line, { ...(tool as ToolInForce), name: line });
      }
      return;
    case 'breaker_changed':
      return change(model, event);
    case 'breaker_evicted':
      return void model.breakers.delete(nameOf(idOf(event.toolName), idOf(event.scope)));
    default:
      return undefined;
  }
}
