import type { AttemptTold, NodeTold, TraceModel, TurnTold } from '../model.ts';
import { numberOf } from '../model/keep.ts';
import { ENDS_EARLY, LAG_MS } from './played.ts';

const KEY_STEPS_PLAYED: ReadonlySet<string> = new Set(['claimed', 'recorded', 'released', 'unprotected']);

/** Whether an attempt took longer than it may: its clock stood still for a person, or the machine lagged. */
const isHeld = (model: TraceModel, { toolName, startMs, endMs = startMs, timeoutMs, late }: AttemptTold): boolean => {
  const limitMs = numberOf(model.tools.get(toolName)?.policy?.timeoutMs) ?? Infinity;
  return (
    !late && endMs - startMs > limitMs + (timeoutMs === undefined || Number.isInteger(endMs - startMs) ? 0 : LAG_MS)
  );
};

const objectionTo = (model: TraceModel, { nodeId, state, call, isUndone }: NodeTold): string | undefined => {
  if (state === undefined) return `the trace does not tell how ${nodeId} ended`;
  if (isUndone === true) return `what ${nodeId} did was undone`;
  if (call === undefined) return undefined;
  if (call.isGated) return `a person was asked whether ${nodeId} may run`;
  if (call.attempts.some((attempt) => isHeld(model, attempt)))
    return `an attempt of ${nodeId} took longer than its limit, whose clock stood still`;
  if (call.isVerified) return `what became of an attempt of ${nodeId} was asked, and not only seen`;
  const step = call.key.find(({ step: of }) => !KEY_STEPS_PLAYED.has(of));
  if (step !== undefined) return `the key of ${nodeId} was shared with another call (${step.step})`;
  if (call.attempts.filter(({ outcome }) => outcome !== 'rejected').length !== call.attemptCount)
    return `not every attempt of ${nodeId} is kept`;
  const mode = model.tools.get(call.askedTool)?.mode ?? 'on';
  if (mode !== 'on') return `${call.askedTool} was ${mode}, so that the layer did not act`;
  const blocked = call.attempts
    .slice(1)
    .some(({ outcome, error }) => outcome === 'rejected' && error?.kind === 'blocked');
  if (blocked) return `a hook blocked a retry of ${nodeId}`;
  const refusedLate = call.attempts.some(
    ({ outcome, error }) => outcome === 'rejected' && error?.kind === 'deadline_exceeded',
  );
  return refusedLate ? `an attempt of ${nodeId} came at the deadline itself` : undefined;
};

/** Whether what it came to and the deadline were one instant: which of both was first is nowhere told. */
const isTie = (turn: TurnTold, { state, startMs, settledMs, call }: NodeTold): boolean => {
  const endMs = turn.deadlineMs ?? turn.settledMs;
  const isCut = turn.deadlineMs !== undefined || turn.nodes.some((node) => node.state === 'canceled');
  if (!isCut) return false;
  if (startMs === endMs || (settledMs === endMs && !ENDS_EARLY.has(state))) return true;
  return (call?.attempts ?? []).some(
    (one) =>
      one.startMs === endMs ||
      one.decision?.atMs === endMs ||
      (one.endMs === endMs && !one.late && one.outcome !== 'canceled'),
  );
};

/** Why a turn cannot be played again; `undefined` where it can. */
export function objectionToPlay(model: TraceModel, turn: TurnTold): string | undefined {
  if (!turn.begun) return 'the trace does not tell how the turn began';
  if (turn.moreNodes > 0) return `${turn.moreNodes} of its nodes are not kept`;
  if (turn.status === 'running') return 'it has not settled';
  if (turn.moves.length > 0) return 'it moved from one worker to another, whose clocks are two';
  if (turn.status === 'abandoned') return 'its caller left before it settled';
  for (const node of turn.nodes) {
    const objection = objectionTo(model, node);
    if (objection !== undefined) return objection;
    if (isTie(turn, node))
      return (
        `something happened to ${node.nodeId} at the very instant at which the turn was cut off, where ` +
        `chance decides`
      );
  }
  return undefined;
}
