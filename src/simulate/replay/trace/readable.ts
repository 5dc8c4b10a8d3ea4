import * as z from 'zod';
import type { TraceEvent } from '../../../contract/event.ts';
import { ReplayRefusal } from '../refusal.ts';
import { toolsIn } from './brought.ts';
import { checkHolders, checkRecordedKeys } from './keys.ts';

const text = z.string();
const number = z.number();
/** JSON has no word for what is not finite. */
const maybeInfinite = z.number().nullable();
const error = z.looseObject({
  kind: text,
  message: text,
  code: text.optional(),
  status: number.optional(),
  retryAfterMs: maybeInfinite.optional(),
  uncertain: z.literal(true).optional(),
});
const result = z.looseObject({ requestId: text, status: text, toolName: text, durationMs: number, attempts: number });
const tool = z.looseObject({
  name: text,
  effects: z.enum(['read', 'mutating']),
  mode: z.enum(['on', 'shadow', 'off']),
  policy: z.looseObject({
    timeoutMs: number,
    retry: z.looseObject({}),
    alternatives: z.array(text),
    dedupe: z.looseObject({}),
  }),
});
const node = z.looseObject({ id: text, toolName: text, needs: z.array(text) });

/** What a replay reads of each event, by source and type; of others nothing is read. */
const READ: Readonly<Record<string, z.ZodType>> = {
  'layer layer_started': z.looseObject({
    version: text,
    tools: z.array(tool),
    host: z.array(text).optional(),
    retryBudget: z.looseObject({ ratio: number, minPerSecond: number, windowMs: number }).optional(),
  }),
  'layer breaker_reset': z.looseObject({ toolName: text, scope: text }),
  'layer breaker_changed': z.looseObject({ toolName: text, from: text, to: text, scope: text }),
  'call call_started': z.looseObject({ terms: z.looseObject({}).optional(), tool: tool.optional() }),
  'call attempt_started': z.looseObject({ attempt: number, dueAtMs: number.optional() }),
  'call attempt_succeeded': z.looseObject({ attempt: number, durationMs: number }),
  'call attempt_failed': z.looseObject({
    attempt: number,
    durationMs: number,
    error,
    rule: text,
    classification: text,
  }),
  'call attempt_canceled': z.looseObject({ attempt: number, durationMs: number }),
  'call progress': z.looseObject({ attempt: number, report: z.looseObject({}) }),
  'call rejected': z.looseObject({ error }),
  'call decision': z.looseObject({
    strategy: text,
    code: text,
    attempt: number,
    delayMs: number.optional(),
    draw: z.number().min(0).lt(1).optional(),
    error,
  }),
  'call settled': z.looseObject({ result }),
  'call dedupe': z.looseObject({ step: text, keyFingerprint: text.min(1), ageMs: number.optional() }),
  'turn turn_started': z.looseObject({ timeoutMs: number, nodes: z.array(node) }),
  'turn node_settled': z.looseObject({ nodeId: text, toolName: text, state: text }),
  'turn settled': z.looseObject({
    result: z.looseObject({ status: text, nodes: z.array(z.looseObject({ id: text })) }),
  }),
};
const header = z.looseObject({
  seq: number,
  atMs: number,
  source: z.enum(['layer', 'call', 'turn']),
  type: text,
});
const ofCall = z.looseObject({ callId: text.min(1), toolName: text });
const ofTurn = z.looseObject({ turnId: text.min(1) });

const malformed = (event: TraceEvent, problem: string): never => {
  throw new ReplayRefusal(
    'malformed',
    `event ${event.seq} (${event.source} ${event.type}) is not what spillway writes: ${problem}; replay the ` +
      'file as it was recorded',
    event.seq,
  );
};

/** Whether each event has what is read of it. */
const checkShape = (event: TraceEvent): void => {
  const own = READ[`${event.source} ${event.type}`];
  const whose = event.source === 'call' ? ofCall : event.source === 'turn' ? ofTurn : undefined;
  for (const schema of [header, whose, own]) {
    const checked = schema?.safeParse(event);
    const issue = checked?.error?.issues[0];
    if (issue !== undefined) malformed(event, `${issue.path.join('.') || 'it'}: ${issue.message}`);
  }
};

/** Whether the events are one layer's, each of them once, and none missing between the first and the last. */
const checkSequence = (events: readonly TraceEvent[]): void => {
  let [previous] = events;
  for (const event of events.slice(1)) {
    if (previous === undefined) return;
    // What a sink tells once more at the head of a file has the number of the event before it.
    const isAgain = event.type === 'layer_started' && event.again === true;
    const missing = event.seq - previous.seq - (isAgain ? 0 : 1);
    if ((event.type === 'layer_started' && !isAgain) || missing < 0)
      throw new ReplayRefusal(
        'merged',
        `event ${event.seq} (${event.type}) follows event ${previous.seq}: the trace is of more than one ` +
          `layer, or its lines were moved; replay each layer's own file`,
        event.seq,
      );
    if (missing > 0)
      throw new ReplayRefusal(
        'incomplete',
        `event ${event.seq} follows event ${previous.seq}: ${missing} are missing in between; record all events of ` +
          'the layer',
        event.seq,
      );
    if (event.atMs < previous.atMs) malformed(event, `its time, ${event.atMs}, is before that of the event before it`);
    previous = event;
  }
};

/** What the world was asked beside its calls, or had been by another process that tells it here. */
const ASKED: ReadonlySet<TraceEvent['type']> = new Set(['verified', 'compensation_started', 'compensation_settled']);

const key = (event: TraceEvent): string | undefined =>
  event.source === 'call' ? `call ${event.callId}` : event.source === 'turn' ? `turn ${event.turnId}` : undefined;

/** Whether each call and turn begins once and ends once, and whether nothing of it comes before or after. */
const checkEnds = (events: readonly TraceEvent[]): void => {
  const open = new Set<string>();
  const begun = new Set<string>();
  for (const event of events) {
    const whose = key(event);
    if (whose === undefined) continue;
    if (event.type === 'call_started' || event.type === 'turn_started') {
      if (begun.has(whose)) malformed(event, `${whose} has begun before`);
      begun.add(whose);
      open.add(whose);
    } else if (!open.has(whose) && !(begun.has(whose) && 'late' in event))
      malformed(event, `${whose} ${begun.has(whose) ? 'has ended' : 'has not begun'}`);
    if (event.type === 'settled' || event.type === 'abandoned') open.delete(whose);
  }
  const [first] = open;
  if (first !== undefined)
    throw new ReplayRefusal(
      'truncated',
      `the trace ends before ${open.size === 1 ? first : `${first} and ${open.size - 1} more`} did; record ` +
        'until the calls have ended',
    );
};

const PARTS: Readonly<Record<string, string>> = {
  hooks: 'its hooks',
  errorHandler: 'its errorHandler',
  guidance: 'its guidance',
  experience: 'its experience of earlier failures',
  sharedBreakers: 'breakers that other processes share',
  approvals: 'people who approve calls',
  budget: 'its budget for calls and tokens',
};

type Started = Extract<TraceEvent, { type: 'layer_started' }>;

/** Whether the policies alone decided. */
const checkHost = (first: Started): void => {
  if (first.host === undefined)
    throw new ReplayRefusal(
      'old',
      `version ${first.version} wrote it, which did not tell the retry budget and what a call asks for ` +
        'itself; record it anew',
    );
  const [part] = first.host;
  if (part !== undefined)
    throw new ReplayRefusal(
      'host',
      `${PARTS[part] ?? part} decided as well, and what that would say of another policy is in no trace; ` +
        'record a layer without it',
    );
};

/** What shows that a call was not guarded as the tool was when the trace began; `undefined` where nothing does. */
const switchedAt = (events: readonly TraceEvent[], tools: Started['tools']): TraceEvent | undefined => {
  const modes = new Map(tools.map(({ name, mode }) => [name, mode]));
  /** Calls that began at an open breaker, and its key: only one that observes lets them go on. */
  const atOpen = new Map<string, string>();
  for (const event of events) {
    if (event.type === 'breaker_changed')
      for (const [callId, key] of atOpen) if (key === event.toolName) atOpen.delete(callId);
    if (event.source !== 'call') continue;
    const mode = modes.get(event.toolName);
    if (event.type === 'call_started' && mode !== undefined && (event.mode ?? mode) !== mode) return event;
    if (mode !== 'on') continue;
    if (event.type === 'call_started' && event.breaker?.state === 'open') atOpen.set(event.callId, event.breaker.key);
    else if (event.type === 'attempt_started' && atOpen.has(event.callId)) return event;
    else atOpen.delete(event.callId);
    if (event.type === 'shadow' || (event.type === 'attempt_started' && event.dueAtMs === undefined)) return event;
  }
  return undefined;
};

/** Whether no switch was thrown. */
const checkCalls = (tools: Started['tools'], events: readonly TraceEvent[]): void => {
  const bare = switchedAt(events, tools);
  if (bare !== undefined)
    throw new ReplayRefusal(
      'switched',
      `event ${bare.seq} is of a call that was guarded otherwise than its tool was when the trace began: a ` +
        'switch was thrown, and when is not in the trace',
      bare.seq,
    );
};

/** Whether nobody was asked, and no other process had a part in it. */
const checkAsked = (events: readonly TraceEvent[]): void => {
  const asked = events.find(({ type }) => ASKED.has(type));
  if (asked !== undefined)
    throw new ReplayRefusal(
      'settled',
      `event ${asked.seq} is of what a tool's verify or compensate did, and what these would do under ` +
        'another policy is in no trace',
      asked.seq,
    );
  const moved = events.find(({ type }) => type === 'turn_moved' || type === 'turn_left');
  if (moved !== undefined)
    throw new ReplayRefusal(
      'moved',
      `event ${moved.seq} is of a turn that another process had a part in; replay the trace of a turn that stayed`,
      moved.seq,
    );
};

/** Whether the policy of each tool is known. */
const checkTools = (tools: Started['tools'], events: readonly TraceEvent[]): void => {
  const known = new Set(tools.map(({ name }) => name));
  const stranger = events.find((event) => event.type === 'attempt_started' && !known.has(event.toolName));
  if (stranger?.source === 'call')
    throw new ReplayRefusal(
      'unlisted',
      `event ${stranger.seq} is of ${JSON.stringify(stranger.toolName)}, a tool that nobody registered: ` +
        'its policy is not in the trace; subscribe to trace$ before the first call of it, or register it',
      stranger.seq,
    );
};

/**
 * Whether the events are a trace that can be replayed: of one layer, whole, and without what a trace does not hold.
 * @returns its beginning, with all tools that it knows the policy of
 * @throws ReplayRefusal
 */
export function checkReadable(events: readonly TraceEvent[]): Extract<TraceEvent, { type: 'layer_started' }> {
  const [first] = events;
  if (first === undefined)
    throw new ReplayRefusal('empty', 'it holds no events of spillway; name a file of ndjsonSink');
  if (first.type !== 'layer_started' || first.seq !== 0)
    throw new ReplayRefusal(
      'late',
      'it begins after its layer did, so nobody knows how breakers and budget stood; subscribe to trace$ ' +
        'before the first call',
      first.seq,
    );
  events.forEach(checkShape);
  checkSequence(events);
  checkHost(first);
  checkAsked(events);
  checkRecordedKeys(events);
  const tools = toolsIn(first.tools, events);
  checkHolders(events, tools);
  checkCalls(tools, events);
  checkTools(tools, events);
  checkEnds(events);
  return { ...first, tools };
}
