import type { CallTerms, ToolEvent, ToolInForce, TraceEvent, TurnOwnEvent } from '../../../contract/event.ts';
import type { RetryBudgetOptions } from '../../../contract/policy.ts';
import { attemptsIn, failureKey, type RecordedAttempt } from './attempts.ts';
import { callEndings, turnEndings, type Ending } from './endings.ts';
import { latenessIn, type Lateness } from './lateness.ts';
import { keysIn, type RecordedKey } from './keys.ts';
import { checkReadable } from './readable.ts';

type Started = Extract<ToolEvent, { type: 'call_started' }>;

/** A call as its caller made it. */
export interface RecordedCall {
  readonly started: Started;
  readonly terms: CallTerms;
  readonly events: readonly ToolEvent[];
  /** How its caller ended it, as it may be read, the likeliest first; empty where it ended by itself. */
  readonly endings: readonly Ending[];
}

type TurnStarted = Extract<TurnOwnEvent, { type: 'turn_started' }>;

/** A turn as its caller made it. */
export interface RecordedTurn {
  readonly started: TurnStarted;
  /** The calls of its nodes, by the nodes' ids. */
  readonly calls: ReadonlyMap<string, Started>;
  readonly own: readonly TurnOwnEvent[];
  /** As those of a call. */
  readonly endings: readonly Ending[];
}

/** What a person, or time, did to a breaker. */
export interface RecordedOrder {
  readonly atMs: number;
  readonly seq: number;
  readonly key: string;
  readonly scope: string;
  /** `look`: its time had come and somebody saw it. */
  readonly act: 'forceOpen' | 'disable' | 'reset' | 'look';
}

/**
 * A trace as a world: what was asked for and when, what the tools did, how late timers came, which numbers were drawn.
 */
export interface Recording {
  readonly events: readonly TraceEvent[];
  readonly startMs: number;
  readonly tools: readonly ToolInForce[];
  readonly retryBudget: Required<RetryBudgetOptions> | undefined;
  /** Which of the ways to read it is taken for each ending that is not read the likeliest way, by call or turn. */
  readonly readings: ReadonlyMap<string, number>;
  /**
   * When the recorded policies make each attempt in simulated time, by its key; empty until they were replayed. A live
   * process was later, since it was busy.
   */
  readonly madeAtMs: ReadonlyMap<string, number>;
  /** Calls outside of turns. */
  readonly calls: readonly RecordedCall[];
  readonly turns: readonly RecordedTurn[];
  readonly orders: readonly RecordedOrder[];
  /** The events of each call, by its id. */
  readonly byCall: ReadonlyMap<string, readonly ToolEvent[]>;
  readonly attempts: ReadonlyMap<string, RecordedAttempt>;
  /** Calls whose input did not fit a tool, each with the tool's name. */
  readonly refusedInputs: ReadonlySet<string>;
  /** What is told of the keys of calls, by their calls. */
  readonly keys: ReadonlyMap<string, RecordedKey>;
  readonly draws: ReadonlyMap<string, number>;
  readonly lateness: Lateness;
}

const ORDERS: Readonly<Record<string, RecordedOrder['act']>> = {
  forced_open: 'forceOpen',
  disabled: 'disable',
  closed: 'reset',
};

const ordersIn = (events: readonly TraceEvent[]): RecordedOrder[] =>
  events.flatMap((event) => {
    if (event.type === 'breaker_reset') {
      const { atMs, seq, toolName: key, scope } = event;
      return [{ atMs, seq, key, scope, act: 'reset' }];
    }
    if (event.type !== 'breaker_changed' || event.callId !== undefined) return [];
    const { atMs, seq, toolName: key, scope, to } = event;
    return [{ atMs, seq, key, scope, act: ORDERS[to] ?? 'look' }];
  });

const drawsIn = (events: readonly TraceEvent[]): Map<string, number> => {
  const draws = new Map<string, number>();
  const refused = new Set<string>();
  for (const event of events) {
    if (event.type === 'rejected') refused.add(event.callId);
    if (event.type !== 'decision') continue;
    const { callId, toolName, attempt, draw } = event;
    if (draw !== undefined) draws.set(failureKey(callId, toolName, attempt, refused.has(callId)), draw);
    refused.delete(callId);
  }
  return draws;
};

const refusedInputsIn = (events: readonly ToolEvent[]): Set<string> =>
  new Set(
    events.flatMap((event) =>
      (event.type === 'rejected' && event.error.kind === 'invalid_parameters') ||
      (event.type === 'shadow' && event.would === 'reject' && event.reason === 'invalid_parameters')
        ? [`${event.callId} ${event.toolName}`]
        : [],
    ),
  );

const startOf = (events: readonly ToolEvent[]): Started | undefined => {
  const [first] = events;
  return first?.type === 'call_started' ? first : undefined;
};

const callsOf = (byCall: ReadonlyMap<string, readonly ToolEvent[]>): RecordedCall[] =>
  [...byCall.values()].flatMap((events) => {
    const started = startOf(events);
    if (started === undefined || started.turnId !== undefined) return [];
    return [{ started, terms: started.terms ?? {}, events, endings: callEndings(events) }];
  });

const turnsOf = (events: readonly TraceEvent[], byCall: ReadonlyMap<string, readonly ToolEvent[]>): RecordedTurn[] => {
  const all = events.filter((event) => event.source !== 'layer');
  const byTurn = Map.groupBy(all, ({ turnId }) => turnId);
  const starts = [...byCall.values()].map(startOf);
  const startsByTurn = Map.groupBy(starts, (start) => start?.turnId);
  return [...byTurn].flatMap(([turnId, told]) => {
    const own = told.filter((event) => event.source === 'turn');
    const [started] = own;
    if (started?.type !== 'turn_started') return [];
    const calls = (startsByTurn.get(turnId) ?? []).flatMap((start): Array<[string, Started]> =>
      start?.nodeId === undefined ? [] : [[start.nodeId, start]],
    );
    return [{ started, calls: new Map(calls), own, endings: turnEndings(told) }];
  });
};

/**
 * Reads a trace as a world.
 * @param given events of one layer, in their order
 * @throws ReplayRefusal for a trace that is not whole, or holds what cannot be replayed
 */
export function readRecording(given: readonly TraceEvent[]): Recording {
  // As a file has them, whether they come from one or from memory.
  const events = given.map((event) => JSON.parse(JSON.stringify(event)) as TraceEvent);
  const first = checkReadable(events);
  const ofCalls = events.filter((event) => event.source === 'call');
  const byCall = Map.groupBy(ofCalls, ({ callId }) => callId);
  return {
    events,
    startMs: first.atMs,
    tools: first.tools,
    retryBudget: first.retryBudget,
    readings: new Map(),
    madeAtMs: new Map(),
    calls: callsOf(byCall),
    turns: turnsOf(events, byCall),
    orders: ordersIn(events),
    byCall,
    attempts: attemptsIn(events),
    refusedInputs: refusedInputsIn(ofCalls),
    keys: keysIn(byCall),
    draws: drawsIn(events),
    lateness: latenessIn(events, byCall, first.tools),
  };
}
