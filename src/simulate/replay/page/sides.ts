import type { ToolEvent, TraceEvent } from '../../../contract/event.ts';
import { addEvent } from '../../../inspect/model/add.ts';
import { emptyTrace } from '../../../inspect/model/empty.ts';
import type { CallTold, Mark, TurnTold } from '../../../inspect/model.ts';
import { redactorOf } from '../../../policy/redact/values.ts';

/** A call of one side as it is drawn: its signs, and what was decided of each attempt. */
export interface DrawnCall {
  readonly call: CallTold;
  readonly marks: readonly Mark[];
  readonly startMs: number;
  /** When the last thing happened that belongs to it. */
  readonly endMs: number;
}

/** The events of one side by whose they are. */
export class Side {
  readonly #calls: ReadonlyMap<string, readonly ToolEvent[]>;
  readonly #turns: ReadonlyMap<string, readonly TraceEvent[]>;

  constructor(events: readonly TraceEvent[]) {
    this.#calls = Map.groupBy(
      events.filter((event) => event.source === 'call'),
      ({ callId }) => callId,
    );
    this.#turns = Map.groupBy(
      events.filter((event) => 'turnId' in event && event.turnId !== undefined),
      (event) => ('turnId' in event ? (event.turnId ?? '') : ''),
    );
  }

  /** A call as the only node of a turn, which is what marbles are drawn of; `undefined` where it was not made. */
  call(callId: string): DrawnCall | undefined {
    const { show } = redactorOf();
    const events = this.#calls.get(callId) ?? [];
    const model = emptyTrace();
    for (const event of events) addEvent(model, show({ ...event, turnId: callId, nodeId: 'call' }));
    const [turn] = model.turns.values();
    const [node] = turn?.nodes ?? [];
    if (turn === undefined || node?.call === undefined) return undefined;
    return { call: node.call, marks: node.marks, startMs: node.call.startMs, endMs: turn.lastMs };
  }

  /** A turn; `undefined` where this side has none of the id. */
  turn(turnId: string): TurnTold | undefined {
    const { show } = redactorOf();
    const model = emptyTrace();
    for (const event of this.#turns.get(turnId) ?? []) addEvent(model, show(event));
    return [...model.turns.values()][0];
  }
}
