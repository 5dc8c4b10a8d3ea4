import { defer, map, of, type Observable } from 'rxjs';
import type { JournalledDecision } from '../../contract/fleet/journal.ts';
import { ToolExecutionError } from '../../contract/tool-error.ts';
import { given } from '../../policy/check.ts';
import { classify } from '../../policy/recovery/classify.ts';
import type { CallContext } from '../context.ts';
import { BACKING_OFF } from '../state.ts';
import type { ToolExecution } from './execution.ts';

/** What was decided of a node's call before its turn moved here, where that was to try this tool again. */
export const earlierAttempts = ({ site, call, toolName }: CallContext): JournalledDecision | undefined => {
  const decision = site.journal?.decided(call.nodeId ?? '');
  return decision?.toolName === toolName ? decision : undefined;
};

/**
 * Keeps a decision to retry, where the turn has a journal; emits once it is durable. An alternative's are not kept: a
 * turn that moves tries the node's own tool as far as that had come, and goes on from there.
 */
export const journalledDecision = (
  { context, ownAttempts, startedAtMs, isCounted }: ToolExecution,
  { kind, message }: ToolExecutionError,
  delayMs: number,
): Observable<unknown> | undefined => {
  const { site, call, toolName } = context;
  if (site.journal === undefined || call.nodeId === undefined || toolName !== call.toolName) return undefined;
  const elapsedMs = Math.max(0, site.runtime.now() - startedAtMs);
  const shown = context.layer.trace.redactor.text(message);
  return site.journal.decide(call.nodeId, {
    toolName,
    attempt: ownAttempts,
    elapsedMs,
    delayMs,
    kind,
    message: shown,
    ...(context.uncertain ? { uncertain: true } : {}),
    ...(isCounted ? {} : { uncounted: true }),
  });
};

/** Takes up where the attempts were left: the same count, the same clock, and what is left of the chosen delay. */
export const resumed = (execution: ToolExecution, earlier: JournalledDecision): Observable<unknown> =>
  defer(() => {
    const { context, guarded } = execution;
    const { attempt, delayMs, delayLeftMs = delayMs, kind, message, uncertain } = earlier;
    const error = new ToolExecutionError(kind, message, given({ uncertain }));
    const { classification } = classify(error, guarded.classification);
    execution.takeUp(earlier, { error, classification, breakerState: execution.breakerState });
    if (delayLeftMs <= 0) return of(attempt);
    context.advance(BACKING_OFF);
    return context.site.runtime.after(delayLeftMs).pipe(map(() => attempt));
  });
