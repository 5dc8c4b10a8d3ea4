import type { ToolEvent, TraceEvent } from '../../../contract/event.ts';
import type { TurnResult } from '../../../contract/turn.ts';
import type { WhatIf } from '../what-if.ts';

/** A call outside of turns as a turn of one node: turns are what the inspector puts beside each other. */
const asTurn = (own: readonly ToolEvent[]): TraceEvent[] => {
  const [first] = own;
  if (first === undefined) return [];
  const { callId: turnId, toolName: nodeId } = first;
  const told = ({ seq, atMs }: ToolEvent) => ({ seq, atMs, source: 'turn', turnId }) as const;
  const nodes = [{ id: nodeId, toolName: nodeId, needs: [] }];
  const events: TraceEvent[] = [{ ...told(first), type: 'turn_started', timeoutMs: Infinity, nodes }];
  for (const event of own) {
    events.push({ ...event, turnId, nodeId });
    if (event.type === 'abandoned') events.push({ ...told(event), type: 'abandoned' });
    if (event.type !== 'settled') continue;
    const { toolName, result } = event;
    const isWell = result.status === 'success';
    events.push(
      { ...told(event), type: 'node_settled', nodeId, toolName, state: isWell ? 'succeeded' : 'failed' },
      { ...told(event), type: 'settled', result: turnResult(isWell) },
    );
  }
  return events;
};

const turnResult = (isWell: boolean): TurnResult => ({
  status: isWell ? 'completed' : 'escalated',
  nodes: [],
  values: {},
  executedTools: 1,
  hadToolFailure: !isWell,
  toolFailureKinds: [],
  summary: '',
});

/** Whose an event is: a turn's, a call's outside of turns, or the layer's. */
const whoseOf = (event: TraceEvent): string => {
  if (event.source === 'layer') return '';
  return event.source === 'call' ? (event.turnId ?? event.callId) : event.turnId;
};

const inOrder = (events: readonly TraceEvent[], place: ReadonlyMap<string, number>): TraceEvent[] => {
  const groups = [...Map.groupBy(events, whoseOf)];
  const placed = groups.toSorted(([a], [b]) => (place.get(a) ?? -1) - (place.get(b) ?? -1));
  return placed.flatMap(([, own]) => {
    const calls = own.filter((event) => event.source === 'call' && event.turnId === undefined);
    return calls.length === 0 ? own : asTurn(calls as ToolEvent[]);
  });
};

/**
 * Both sides of a replay as an inspector shows them beside each other: calls outside of turns as turns of one node, and
 * what is decided otherwise last, the worst at the very end, for the newest is what a person sees first, and what is
 * kept longest.
 *
 * @returns the recorded events, and those of the other policy
 *
 * @example
 * const [found] = replayTrace(await readNdjson('trace.ndjson'), { set: ['pay.retry.maxAttempts=2'] }).candidates;
 * if (found === undefined) throw new Error('no policy was asked about');
 * const [recorded, replayed] = inspectedSides(found);
 * const inspector = await serveTrace(recorded, { compareWith: replayed });
 */
export function inspectedSides({
  events,
  flips,
}: Pick<WhatIf, 'events' | 'flips'>): readonly [recorded: TraceEvent[], replayed: TraceEvent[]] {
  const place = new Map<string, number>();
  // A turn stands where the worst of its calls does.
  for (const [index, { turnId, callId }] of flips.entries())
    if (!place.has(turnId ?? callId)) place.set(turnId ?? callId, flips.length - index);
  return [inOrder(events.recorded, place), inOrder(events.replayed, place)];
}
