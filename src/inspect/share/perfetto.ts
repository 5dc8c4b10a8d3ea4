import type { AttemptTold, CallTold, TraceModel } from '../model.ts';
import { callsOf } from '../model/keep.ts';

/** An event of the format that Perfetto and Chrome's own viewer open. */
interface PerfettoEvent {
  readonly name: string;
  readonly ph: 'X' | 'M' | 'i';
  readonly ts?: number;
  readonly dur?: number;
  readonly pid: number;
  readonly tid: number;
  readonly cat?: string;
  readonly s?: 'p';
  readonly args?: Readonly<Record<string, unknown>>;
}

const micros = (ms: number): number => Math.round(ms * 1_000);
/** From one time to another; a clock that was set back makes nothing take less than no time. */
const span = (fromMs: number, toMs: number): { readonly ts: number; readonly dur: number } => ({
  ts: micros(fromMs),
  // Of the rounded times, so that what ends together does.
  dur: Math.max(0, micros(toMs) - micros(fromMs)),
});

const instant = (pid: number, atMs: number, name: string): PerfettoEvent => ({
  name,
  ph: 'i',
  s: 'p',
  pid,
  tid: 0,
  ts: micros(atMs),
});

/** @param untilMs the end of the call: a slice that reached beyond it would be dropped, and so would its backoff */
const attemptEvents = (pid: number, tid: number, attempt: AttemptTold, untilMs: number): PerfettoEvent[] => {
  const { toolName, startMs, endMs = untilMs, outcome, error, decision, attempt: number } = attempt;
  const bar: PerfettoEvent = {
    pid,
    tid,
    ...span(startMs, Math.min(endMs, untilMs)),
    name: `${toolName} #${number}`,
    ph: 'X',
    cat: outcome,
    args: { outcome, ...(error === undefined ? {} : { error }), ...(decision === undefined ? {} : { decision }) },
  };
  if (decision?.strategy !== 'retry' || decision.delayMs === undefined) return [bar];
  return [
    bar,
    {
      name: 'backoff',
      ph: 'X',
      cat: 'backoff',
      pid,
      tid,
      ...span(decision.atMs, Math.min(decision.atMs + decision.delayMs, untilMs)),
      args: { reason: decision.reason },
    },
  ];
};

const callEvents = (
  pid: number,
  tid: number,
  { callId, status, startMs, endMs, attempts }: CallTold,
  name: string,
  lastMs: number,
): PerfettoEvent[] => [
  { name: 'thread_name', ph: 'M', pid, tid, args: { name } },
  { name, ph: 'X', cat: 'call', pid, tid, ...span(startMs, endMs ?? lastMs), args: { callId, status } },
  ...attempts.flatMap((attempt) => attemptEvents(pid, tid, attempt, endMs ?? lastMs)),
];

/**
 * A trace in the JSON that `ui.perfetto.dev` opens: a process for each turn and for calls outside of turns, a thread
 * for each call, a slice for each attempt and each backoff; changes of breakers are instants.
 *
 * @returns the text of the file
 *
 * @example
 * const file = toPerfetto(emptyTrace());
 */
export function toPerfetto(model: TraceModel): string {
  const { lastMs } = model;
  const turns = [...model.turns.values()].flatMap((turn): PerfettoEvent[] => {
    const pid = turn.number;
    const endMs = turn.settledMs ?? lastMs;
    return [
      { name: 'process_name', ph: 'M', pid, tid: 0, args: { name: `turn ${turn.turnId}` } },
      {
        name: `turn: ${turn.status}`,
        ph: 'X',
        cat: 'turn',
        pid,
        tid: 0,
        ...span(turn.startMs, endMs),
        args: { summary: turn.summary },
      },
      ...turn.nodes.flatMap((node, index) =>
        callsOf(node).flatMap((call) => callEvents(pid, index + 1, call, node.nodeId, lastMs)),
      ),
      ...turn.moves.map(({ atMs, from, to }) => instant(pid, atMs, `turn moved: ${from} -> ${to}`)),
    ];
  });
  const rest: PerfettoEvent = {
    name: 'process_name',
    ph: 'M',
    pid: 0,
    tid: 0,
    args: { name: 'calls outside of turns, and breakers' },
  };
  const loose = [...model.loose.values()].flatMap((call, index) =>
    callEvents(0, index + 1, call, call.toolName, lastMs),
  );
  const breakers = [...model.breakers.values()].flatMap(({ key, changes }) =>
    changes.map(({ atMs, from, to }) => instant(0, atMs, `breaker ${key}: ${from} -> ${to}`)),
  );
  return `${JSON.stringify({ displayTimeUnit: 'ms', traceEvents: [rest, ...turns, ...loose, ...breakers] })}\n`;
}
