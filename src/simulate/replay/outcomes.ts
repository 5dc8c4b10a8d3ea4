import type { ToolEvent, TraceEvent } from '../../contract/event.ts';
import type { Recording } from './trace/recording.ts';

/** How a call ended, and what it took. */
export interface ReplayedOutcome {
  /** The status of its result; `abandoned` where its caller left, `not_made` where it never began. */
  readonly status: string;
  /** The kind of its error. */
  readonly code?: string;
  /** Attempts that were made. */
  readonly attempts: number;
  /** From its first event to its last, in milliseconds. */
  readonly durationMs: number;
  /** A mutating tool was run again after an attempt that may have taken effect. */
  readonly repeatsEffect: boolean;
}

/** A call, and how it ended. */
export interface ReplayedCall extends ReplayedOutcome {
  /** The call's id. */
  readonly callId: string;
  /** The tool that was asked for. */
  readonly toolName: string;
  /** The turn that it is part of; absent outside of one. */
  readonly turnId?: string;
  /** Its node in the plan. */
  readonly nodeId?: string;
}

const NOT_MADE: ReplayedOutcome = { status: 'not_made', attempts: 0, durationMs: 0, repeatsEffect: false };

const outcomeOf = (events: readonly ToolEvent[], mutating: ReadonlySet<string>): ReplayedOutcome => {
  let [doubt, repeatsEffect, attempts] = [false, false, 0];
  for (const event of events) {
    if (event.type === 'attempt_started') {
      attempts++;
      if (doubt && mutating.has(event.toolName)) repeatsEffect = true;
    }
    if (event.type === 'attempt_failed' && event.error.uncertain === true && mutating.has(event.toolName)) doubt = true;
  }
  const last = events.at(-1);
  const durationMs = (last?.atMs ?? 0) - (events[0]?.atMs ?? 0);
  if (last?.type !== 'settled') return { status: 'abandoned', attempts, durationMs, repeatsEffect };
  const { status, error } = last.result;
  return { status, attempts, durationMs, repeatsEffect, ...(error === undefined ? {} : { code: error.code }) };
};

/** Every call of a trace, and how it ended. */
export function outcomesIn(events: readonly TraceEvent[], { tools }: Recording): Map<string, ReplayedCall> {
  // As they were recorded: what a tool does to the world is no matter of policy. One that takes its key does it once.
  const mutating = new Set(
    tools.filter(({ effects, policy }) => effects === 'mutating' && !policy.enforcesKey).map(({ name }) => name),
  );
  const byCall = Map.groupBy(
    events.filter((event) => event.source === 'call'),
    ({ callId }) => callId,
  );
  return new Map(
    [...byCall].map(([callId, own]) => {
      const { toolName = '', turnId, nodeId } = own[0] ?? {};
      const whose = { ...(turnId === undefined ? {} : { turnId }), ...(nodeId === undefined ? {} : { nodeId }) };
      return [callId, { callId, toolName, ...whose, ...outcomeOf(own, mutating) }];
    }),
  );
}

/** A call that another policy would have decided otherwise. */
export interface Flip {
  /** The call's id. */
  readonly callId: string;
  /** The tool that was asked for. */
  readonly toolName: string;
  /** The turn that it is part of; absent outside of one. */
  readonly turnId?: string;
  /** Its node in the plan. */
  readonly nodeId?: string;
  /** `worse`: a success is lost, or an effect may be repeated. `better`: a failure becomes a success. */
  readonly change: 'worse' | 'better' | 'other';
  /** As it was recorded. */
  readonly before: ReplayedOutcome;
  /** As the other policy decides it, the unknown fitted. */
  readonly after: ReplayedOutcome;
}

const only = ({ status, code, attempts, durationMs, repeatsEffect }: ReplayedOutcome): ReplayedOutcome => ({
  status,
  ...(code === undefined ? {} : { code }),
  attempts,
  durationMs,
  repeatsEffect,
});

const changeOf = (before: ReplayedOutcome, after: ReplayedOutcome): Flip['change'] => {
  if (after.repeatsEffect && !before.repeatsEffect) return 'worse';
  const [was, is] = [before.status === 'success', after.status === 'success'];
  return was === is ? 'other' : was ? 'worse' : 'better';
};

/** How bad a flip is: a repeated effect before a lost success, and among equals what takes longer. */
const badness = ({ change, before, after }: Flip): number =>
  (change === 'worse' ? 2e12 : change === 'better' ? -1e12 : 0) +
  (after.repeatsEffect && !before.repeatsEffect ? 1e12 : 0) +
  (after.durationMs - before.durationMs);

/** The calls that ended otherwise or took another number of attempts, worst first. */
export function flipsBetween(
  before: ReadonlyMap<string, ReplayedCall>,
  after: ReadonlyMap<string, ReplayedCall>,
): Flip[] {
  const flips: Flip[] = [];
  for (const callId of new Set([...before.keys(), ...after.keys()])) {
    const [was, is] = [before.get(callId), after.get(callId)];
    const whose = was ?? is;
    if (whose === undefined) continue;
    const [a, b] = [only(was ?? NOT_MADE), only(is ?? NOT_MADE)];
    if (a.status === b.status && a.code === b.code && a.attempts === b.attempts && a.repeatsEffect === b.repeatsEffect)
      continue;
    const { toolName, turnId, nodeId } = whose;
    flips.push({
      callId,
      toolName,
      ...(turnId === undefined ? {} : { turnId }),
      ...(nodeId === undefined ? {} : { nodeId }),
      change: changeOf(a, b),
      before: a,
      after: b,
    });
  }
  return flips.toSorted((a, b) => badness(b) - badness(a) || (a.callId < b.callId ? -1 : 1));
}
