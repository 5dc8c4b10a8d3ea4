import { Observable, of, take, tap } from 'rxjs';
import type { FailureNotification, RecoveryDecision } from '../contract/recovery.ts';
import type { ToolExecutionError } from '../contract/tool-error.ts';
import { given } from '../policy/check.ts';
import { classify } from '../policy/recovery/classify.ts';
import { escalationOf } from '../policy/recovery/escalation.ts';
import { decideRecovery } from '../policy/recovery/decide.ts';
import type { CallContext } from './context.ts';
import { modelTextOf } from './model-words.ts';
import { failureResult, reportOf, type CallOutcome, type Failure } from './result.ts';

/** What a decision rests on beside the failure itself and the call. */
export type Circumstances = Omit<
  FailureNotification,
  'toolName' | 'callId' | 'turnId' | 'error' | 'classification' | 'breakerState' | 'turnRemainingMs' | 'required'
>;

/** A failure's circumstances, and the number that its backoff was made with, for the trace alone. */
export interface Weighed {
  readonly circumstances: Circumstances;
  readonly draw?: number | undefined;
}

/** The circumstances of a failure before any attempt: there is nothing to try again. */
export const unattempted: Circumstances = {
  attempt: 0,
  maxAttempts: 1,
  elapsedMs: 0,
  maxTotalTimeMs: Infinity,
  nextDelayMs: 0,
  budgetAvailable: true,
  alternatives: [],
  effects: 'read',
  hasIdempotencyKey: false,
  retrySafe: false,
};

const notificationOf = (
  { call, site, toolName, remainingMs }: CallContext,
  { error, classification, breakerState }: Failure,
  circumstances: Circumstances,
): FailureNotification => ({
  toolName,
  callId: call.callId,
  turnId: site.turnId,
  error,
  classification,
  breakerState,
  turnRemainingMs: remainingMs,
  required: call.required,
  ...circumstances,
});

const tellDecision = (
  context: CallContext,
  notification: FailureNotification,
  { error, classification, breakerState }: Failure,
  decision: RecoveryDecision,
  draw?: number,
): void => {
  const { strategy, code, reason, delayMs = 0 } = decision;
  const { retryBudget, runtime } = context.layer;
  const budgetLeft = context.observed ? retryBudget?.left(runtime.now()) : undefined;
  const report = { error: reportOf(error), classification, ...given({ breakerState }), attempt: notification.attempt };
  context.emit({
    type: 'decision',
    strategy,
    code,
    reason,
    ...report,
    ...given({ delayMs: strategy === 'retry' ? delayMs : undefined, draw, budgetLeft }),
  });
  if (strategy === 'escalate')
    context.emit({ type: 'escalated', ...escalationOf(notification, context.layer.trace.redactor.text), ...report });
};

/** Asks the layer's error handler about a failure, and emits its decision: at once, or when a later answer is there. */
export function decide(
  context: CallContext,
  failure: Failure,
  { circumstances, draw }: Weighed,
): Observable<RecoveryDecision> {
  const { site, layer } = context;
  const notification = notificationOf(context, failure, circumstances);
  const askedMs = site.runtime.now();
  /** Time goes on while an answer is waited for, and other calls retry meanwhile. */
  const renewed = (): FailureNotification => {
    const now = site.runtime.now();
    const budgetAvailable = circumstances.budgetAvailable && (layer.retryBudget?.available(now) ?? true);
    return {
      ...notification,
      elapsedMs: circumstances.elapsedMs + (now - askedMs),
      turnRemainingMs: context.remainingMs,
      budgetAvailable,
    };
  };
  const decided = layer.recovery.recover(notification, renewed, site.runtime);
  return (decided instanceof Observable ? decided.pipe(take(1)) : of(decided)).pipe(
    tap((decision) => tellDecision(context, notification, failure, decision, draw)),
  );
}

/**
 * The outcome of a call that its caller or a time limit ended. It is a failure like any other, with one event; the
 * error handler is not asked.
 */
export function endedBy(context: CallContext, error: ToolExecutionError): CallOutcome {
  if (context.concluded?.error === error) return context.concluded;
  const { toolInUse, layer } = context;
  const { classification } = classify(error);
  const failure: Failure = given({ error, classification, breakerState: toolInUse?.breakerState });
  const notification = notificationOf(context, failure, {
    ...unattempted,
    attempt: toolInUse?.ownAttempts ?? 0,
  });
  layer.recovery.tell(notification);
  const decision = decideRecovery({ ...notification, turnRemainingMs: 0 });
  tellDecision(context, notification, failure, decision);
  return (context.concluded = {
    result: failureResult(context.history, { ...failure, code: decision.code }, modelTextOf(context, failure)),
    error,
  });
}
