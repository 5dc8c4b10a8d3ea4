import type { TraceEvent } from '../../contract/event.ts';
import { ReplayRefusal } from './refusal.ts';
import { standstillIn } from './trace/standstill.ts';
import type { Recording } from './trace/recording.ts';

/**
 * Times may differ by so much: of a live process each event of an instant has its own reading of the clock, where a
 * replay has one for all. What is decided may not differ at all.
 */
const CLOCK_SLACK_MS = 250;

/** What says when, and not what. */
const TIMES: ReadonlySet<string> = new Set([
  'atMs',
  'durationMs',
  'dueAtMs',
  'untilMs',
  'latencyMs',
  'deadlineAtMs',
  'leaseUntilMs',
  'ageMs',
  // Counted over a window of the clock. What it decides is compared.
  'budgetLeft',
]);
/** Sentences for people, which can hold times and what a failing party said; and what names the recording alone. */
const UNCOMPARED: ReadonlySet<string> = new Set([
  'seq',
  'message',
  'reason',
  'summary',
  'modelText',
  'output',
  'input',
  'session',
  'values',
  'traceparent',
  'tracestate',
  'baggage',
  // Told with the first call of a tool that was not there from the start, as it is in a replay.
  'tool',
  // Where it ran, and what a tool said that it has used.
  'worker',
  'usage',
  // A store counts from where it began.
  'fence',
]);

/** The first place where two values differ; `undefined` where they say the same. */
const difference = (recorded: unknown, replayed: unknown, at: string, name = ''): string | undefined => {
  if (typeof recorded === 'number' && typeof replayed === 'number' && TIMES.has(name))
    return Math.abs(recorded - replayed) <= CLOCK_SLACK_MS ? undefined : `${at} was ${recorded} and is ${replayed}`;
  if (typeof recorded !== 'object' || recorded === null || typeof replayed !== 'object' || replayed === null)
    return Object.is(recorded, replayed) ? undefined : `${at} was ${shown(recorded)} and is ${shown(replayed)}`;
  const [before, after] = [recorded as Record<string, unknown>, replayed as Record<string, unknown>];
  // What is left of a cooldown is a time like any other; what a server asked for is not.
  const isTime = before['kind'] === 'circuit_open';
  for (const key of new Set([...Object.keys(before), ...Object.keys(after)])) {
    if (UNCOMPARED.has(key)) continue;
    const found = difference(before[key], after[key], at === '' ? key : `${at}.${key}`, isTime ? 'atMs' : key);
    if (found !== undefined) return found;
  }
  return undefined;
};

const shown = (value: unknown): string => (value === undefined ? 'not there' : JSON.stringify(value));

/** Whose an event is: what one call, node or breaker tells has an order; between two of them an instant has none. */
const streamOf = (event: TraceEvent): string | undefined => {
  if (event.source === 'call') return `call ${event.callId}`;
  if (event.source === 'turn') return `turn ${event.turnId}${'nodeId' in event ? ` node ${event.nodeId}` : ''}`;
  return event.type === 'breaker_changed' || event.type === 'breaker_reset'
    ? `breaker ${event.toolName} ${event.scope}`.trimEnd()
    : undefined;
};

const streams = (events: readonly TraceEvent[]): Map<string, TraceEvent[]> => {
  const all = new Map<string, TraceEvent[]>();
  for (const event of events) {
    const whose = streamOf(event);
    if (whose === undefined) continue;
    const stream = all.get(whose);
    if (stream === undefined) all.set(whose, [event]);
    else stream.push(event);
  }
  return all;
};

/** As a file has them; keys are known by what the recording knows them by, since none of a recording is told. */
const asRecorded = ({ keys }: Recording, events: readonly TraceEvent[]): TraceEvent[] => {
  const names = new Map(
    events.flatMap((event): Array<[unknown, string | undefined]> =>
      event.type === 'dedupe' ? [[event.keyFingerprint, keys.get(event.callId)?.name]] : [],
    ),
  );
  const named = (field: string, value: unknown): unknown =>
    field === 'keyFingerprint' ? (names.get(value) ?? value) : value;
  return events.map((event) => JSON.parse(JSON.stringify(event, named)) as TraceEvent);
};

/** Where a replay differs from its recording first. */
export interface Difference {
  /** The `seq` of the recorded event; that of the event before it where the replay told one more. */
  readonly seq: number;
  readonly message: string;
  /** By how much the recorded event came later than the one that is told now. */
  readonly lateMs?: number;
}

/** The first difference between what was recorded and what the recorded policies decide now. */
export function firstDifference(recording: Recording, events: readonly TraceEvent[]): Difference | undefined {
  const replayed = streams(asRecorded(recording, events));
  const recorded = streams(recording.events);
  const found: Difference[] = [];
  for (const [whose, told] of recorded) {
    const again = replayed.get(whose) ?? [];
    const index = told.findIndex((event, i) => difference(event, again[i] ?? {}, '') !== undefined);
    const event = index === -1 ? undefined : told[index];
    if (event !== undefined) {
      const now = again[index];
      const what = now === undefined ? 'it does not happen' : (difference(event, now, '') ?? '');
      const lateMs = event.atMs - (now?.atMs ?? event.atMs);
      found.push({ seq: event.seq, message: `${whose}: ${event.type}: ${what}`, lateMs });
    } else if (again.length > told.length) {
      const extra = again[told.length];
      found.push({ seq: told.at(-1)?.seq ?? 0, message: `${whose}: ${extra?.type} happens, too` });
    }
  }
  const strangers = [...replayed.keys()].filter((whose) => !recorded.has(whose));
  found.push(...strangers.map((whose) => ({ seq: 0, message: `${whose} happens, too` })));
  return found.toSorted((a, b) => a.seq - b.seq)[0];
}

/** What may have made a difference, what the times of the trace speak for first. */
const causesOf = ({ events }: Recording, difference: Difference): string => {
  const still = standstillIn(events, difference, CLOCK_SLACK_MS);
  const others = 'it was edited, or something that it does not hold decided as well';
  if (still === undefined) return others;
  return (
    `its process stood still for ${Math.round(still.ms)} ms before event ${still.seq} (its event loop was blocked, ` +
    `or its machine slept), and more than ${CLOCK_SLACK_MS} ms cannot always be followed: record it where nothing ` +
    `blocks for so long; or else ${others}`
  );
};

/** The refusal of a trace that the recorded policies decide otherwise. */
export const decidedOtherwise = (recording: Recording, difference: Difference): ReplayRefusal =>
  new ReplayRefusal(
    'different',
    `the recorded policies do not decide what the trace says they did, first at event ${difference.seq}: ` +
      `${difference.message}; ${causesOf(recording, difference)}`,
    difference.seq,
  );
