import type { ToolResultEnvelope } from '../../contract/envelope.ts';
import type { ToolEvent, TraceEvent, TurnEvent } from '../../contract/event.ts';
import type { TurnResult, TurnStatus } from '../../contract/turn.ts';
import type { TurnTold } from '../../inspect/model.ts';
import { followTurn } from '../../inspect/model/follow-turn.ts';

/** A turn of a trace. */
export interface RecordedTurn {
  readonly turnId: string;
  /** Its place in the file, from 1. */
  readonly number: number;
  readonly timeline: TurnTold;
  readonly events: readonly TurnEvent[];
  /** Absent where the trace ends before the turn does. */
  readonly result?: TurnResult;
  readonly status: TurnStatus | 'abandoned' | 'unfinished';
}

/** A call outside of turns. */
export interface RecordedCall {
  readonly callId: string;
  readonly toolName: string;
  readonly startMs: number;
  readonly endMs: number;
  readonly events: readonly ToolEvent[];
  readonly result?: ToolResultEnvelope;
  readonly status: ToolResultEnvelope['status'] | 'abandoned' | 'unfinished';
}

/** The turns of a trace and its other calls, in the order in which they began. */
export interface Recorded {
  readonly turns: readonly RecordedTurn[];
  readonly calls: readonly RecordedCall[];
}

/** A file is anybody's: a turn whose result is none counts as one that has not settled. */
const isTold = ({ status, summary, nodes }: Partial<TurnResult> = {}): boolean =>
  typeof status === 'string' &&
  typeof summary === 'string' &&
  Array.isArray(nodes) &&
  nodes.every((node: unknown) => typeof node === 'object' && node !== null && 'state' in node && 'id' in node);

const isEnvelope = ({ status, error }: Partial<ToolResultEnvelope> = {}): boolean =>
  typeof status === 'string' && (error === undefined || typeof error.message === 'string');

const turnOf = (turnId: string, events: readonly TurnEvent[], number: number): RecordedTurn => {
  const followed = followTurn();
  events.forEach(followed.add);
  const settled = events.find((event) => event.source === 'turn' && event.type === 'settled' && isTold(event.result));
  const result = settled?.source === 'turn' && settled.type === 'settled' ? settled.result : undefined;
  const abandoned = events.some((event) => event.source === 'turn' && event.type === 'abandoned');
  const status = result?.status ?? (abandoned ? 'abandoned' : 'unfinished');
  return {
    turnId,
    number,
    timeline: followed.turn,
    events,
    status,
    ...(result === undefined ? {} : { result }),
  };
};

const callOf = (callId: string, events: readonly ToolEvent[]): RecordedCall => {
  const [first] = events;
  const last = events.at(-1);
  const settled = events.find((event) => event.type === 'settled');
  const result = settled?.type === 'settled' && isEnvelope(settled.result) ? settled.result : undefined;
  const status = result?.status ?? (events.some(({ type }) => type === 'abandoned') ? 'abandoned' : 'unfinished');
  return {
    callId: String(callId),
    toolName: String(last?.toolName ?? ''),
    startMs: first?.atMs ?? 0,
    endMs: last?.atMs ?? 0,
    events,
    status,
    ...(result === undefined ? {} : { result }),
  };
};

/** Sorts the events of a trace into turns and calls. */
export function recorded(events: readonly TraceEvent[]): Recorded {
  const told = events.filter((event): event is TurnEvent => event.source !== 'layer');
  const ofTurns = told.filter(({ turnId }) => turnId !== undefined);
  const turns = Map.groupBy(ofTurns, ({ turnId = '' }) => turnId);
  const calls = Map.groupBy(
    told.filter((event): event is ToolEvent => event.source === 'call' && event.turnId === undefined),
    ({ callId }) => callId,
  );
  return {
    turns: [...turns].map(([turnId, own], index) => turnOf(turnId, own, index + 1)),
    calls: [...calls].map(([callId, own]) => callOf(callId, own)),
  };
}
