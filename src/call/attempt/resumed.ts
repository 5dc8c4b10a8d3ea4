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

/** The alternative that had been gone over to before the turn moved here. */
export const earlierAlternative = (
  { site, call, toolName }: CallContext,
  alternatives: readonly string[],
): JournalledDecision | undefined => {
  if (toolName !== call.toolName) return undefined;
  const decision = site.journal?.decided(call.nodeId ?? '');
  return decision !== undefined && alternatives.includes(decision.toolName) ? decision : undefined;
};

/** Keeps a decision to retry, where the turn has a journal; emits once it is durable. */
export const journalledDecision = (
  { context, ownAttempts, startedAtMs, isCounted }: ToolExecution,
  { kind, message }: ToolExecutionError,
  delayMs: number,
): Observable<unknown> | undefined => {
  const { site, call, toolName } = context;
  if (site.journal === undefined || call.nodeId === undefined) return undefined;
  const elapsedMs = Math.max(0, site.runtime.now() - startedAtMs);
  const attemptsBefore = context.attempts - ownAttempts;
  return site.journal.decide(
    call.nodeId,
    given({
      toolName,
      attempt: ownAttempts,
      attemptsBefore: attemptsBefore === 0 ? undefined : attemptsBefore,
      elapsedMs,
      delayMs,
      kind,
      message: context.layer.trace.redactor.text(message),
      uncertain: context.uncertain ? true : undefined,
      uncounted: isCounted ? undefined : true,
    }),
  );
};

/** Keeps that an alternative is gone over to, as a decision to retry is kept. */
export const journalledAlternative = (
  { site, call, attempts, uncertain, layer }: CallContext,
  toolName: string,
  { kind, message }: ToolExecutionError,
): Observable<unknown> | undefined => {
  if (site.journal === undefined || call.nodeId === undefined) return undefined;
  // It was kept before the turn moved here, with what has come of it since.
  if (site.journal.decided(call.nodeId)?.toolName === toolName) return undefined;
  return site.journal.decide(
    call.nodeId,
    given({
      toolName,
      attempt: 0,
      attemptsBefore: attempts === 0 ? undefined : attempts,
      elapsedMs: 0,
      delayMs: 0,
      kind,
      message: layer.trace.redactor.text(message),
      uncertain: uncertain ? true : undefined,
    }),
  );
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
