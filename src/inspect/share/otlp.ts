import { sha256 } from '../../policy/key/sha256.ts';
import type { AttemptTold, CallTold, TraceModel } from '../model.ts';
import { callsOf } from '../model/keep.ts';

interface Attribute {
  readonly key: string;
  readonly value: { readonly stringValue: string } | { readonly intValue: string };
}
interface Span {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly name: string;
  readonly kind: number;
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
  readonly attributes: readonly Attribute[];
  readonly status: { readonly code: number; readonly message?: string };
}

/** Where the clock of the events stands on the wall. */
export interface OtlpOptions {
  /** Milliseconds since the Unix epoch at 0 of the events' clock. Default 0: the times are then those of that clock. */
  readonly originMs?: number;
}

const INTERNAL = 1;
const CLIENT = 3;
const OK = 1;
const ERROR = 2;

/** Ids are made of names, so that the same trace gives the same file. */
const idOf = (name: string, digits: number): string => sha256(name).slice(0, digits);

const text = (key: string, value: string | undefined): Attribute[] =>
  value === undefined || value === '' ? [] : [{ key, value: { stringValue: value } }];
const count = (key: string, value: number): Attribute[] => [{ key, value: { intValue: String(Math.round(value)) } }];

const nanos = (ms: number): string => String(BigInt(Math.max(0, Math.round(ms * 1_000))) * 1_000n);
/** Where the clock stands, and until when what runs is told. */
interface Clock {
  readonly originMs: number;
  readonly lastMs: number;
}

const times = (
  { originMs }: Clock,
  startMs: number,
  endMs: number,
): Pick<Span, 'startTimeUnixNano' | 'endTimeUnixNano'> => ({
  startTimeUnixNano: nanos(originMs + startMs),
  endTimeUnixNano: nanos(originMs + Math.max(startMs, endMs)),
});
const attemptSpan = (clock: Clock, call: CallTold, attempt: AttemptTold, index: number, traceId: string): Span => ({
  traceId,
  spanId: idOf(`${call.callId}#${index}`, 16),
  parentSpanId: idOf(call.callId, 16),
  name: `${attempt.toolName} attempt`,
  kind: CLIENT,
  ...times(clock, attempt.startMs, attempt.endMs ?? clock.lastMs),
  attributes: [
    ...text('spillway.outcome', attempt.outcome),
    ...count('spillway.attempt', attempt.attempt),
    ...text('error.type', attempt.error?.code ?? attempt.error?.kind),
    ...text('spillway.decision', attempt.decision?.strategy),
    ...text('spillway.decision.code', attempt.decision?.code),
  ],
  status: attempt.error === undefined ? { code: OK } : { code: ERROR, message: attempt.error.message },
});
const callSpans = (clock: Clock, call: CallTold, traceId: string, parentSpanId?: string): Span[] => [
  {
    traceId,
    spanId: idOf(call.callId, 16),
    ...(parentSpanId === undefined ? {} : { parentSpanId }),
    name: `execute_tool ${call.askedTool}`,
    kind: INTERNAL,
    ...times(clock, call.startMs, call.endMs ?? clock.lastMs),
    attributes: [
      ...text('gen_ai.operation.name', 'execute_tool'),
      ...text('gen_ai.tool.name', call.toolName),
      ...text('spillway.status', call.status),
      ...text('spillway.node', call.nodeId),
      ...count('spillway.attempts', call.attemptCount),
    ],
    status: call.error === undefined ? { code: OK } : { code: ERROR, message: call.error.message },
  },
  ...call.attempts.map((attempt, index) => attemptSpan(clock, call, attempt, index, traceId)),
];
/**
 * A trace as an OTLP/JSON request (`resourceSpans`), for `POST /v1/traces` of a collector: a span for each turn, one
 * for each call, a child for each attempt.
 *
 * @returns the text of the request
 *
 * @example
 * const body = toOtlp(emptyTrace(), { originMs: Date.now() - performance.now() });
 */
export function toOtlp(model: TraceModel, { originMs = 0 }: OtlpOptions = {}): string {
  const clock = { originMs, lastMs: model.lastMs };
  const turnSpans = [...model.turns.values()].flatMap((turn): Span[] => {
    const traceId = idOf(turn.turnId, 32);
    const spanId = idOf(`turn ${turn.turnId}`, 16);
    const own: Span = {
      traceId,
      spanId,
      name: 'turn',
      kind: INTERNAL,
      ...times(clock, turn.startMs, turn.settledMs ?? model.lastMs),
      attributes: [...text('spillway.turn.status', turn.status), ...count('spillway.turn.nodes', turn.nodes.length)],
      status: { code: turn.status === 'failed' || turn.status === 'escalated' ? ERROR : OK },
    };
    return [
      own,
      ...turn.nodes.flatMap((node) => callsOf(node)).flatMap((call) => callSpans(clock, call, traceId, spanId)),
    ];
  });
  const loose = [...model.loose.values()].flatMap((call) => callSpans(clock, call, idOf(`trace ${call.callId}`, 32)));
  const scopeSpans = [{ scope: { name: 'spillway', version: model.version }, spans: [...turnSpans, ...loose] }];
  const resource = { attributes: text('service.name', 'spillway') };
  return `${JSON.stringify({ resourceSpans: [{ resource, scopeSpans }] })}\n`;
}
