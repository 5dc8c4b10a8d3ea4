import { Observable, take, type Subscription } from 'rxjs';
import type { FailureNotification, RecoveryDecision } from '../contract/recovery.ts';
import { escalationOf } from '../policy/escalation.ts';
import { decideRecovery } from '../policy/recovery.ts';
import type { CallRecord } from './call-record.ts';
import { reportOf, type Failure } from './result.ts';

/** What a decision rests on beside the failure itself and the call. */
export type Circumstances = Omit<FailureNotification, 'toolName' | 'callId' | 'turnId' | 'error' | 'classification' | 'breakerState' | 'turnRemainingMs' | 'required'>;

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

const notificationOf = ({ call, site, toolName, remainingMs }: CallRecord, { error, classification, breakerState }: Failure, circumstances: Circumstances): FailureNotification => ({
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

const tellDecision = (record: CallRecord, notification: FailureNotification, { error, classification, breakerState }: Failure, decision: RecoveryDecision): void => {
  const { strategy, code, reason, delayMs = 0 } = decision;
  const report = { error: reportOf(error), classification, breakerState, attempt: notification.attempt };
  record.emit({ type: 'decision', strategy, code, reason, ...report, ...(strategy === 'retry' ? { delayMs } : {}) });
  if (strategy === 'escalate') record.emit({ type: 'escalated', ...escalationOf(notification), ...report });
};

/** Asks the layer's error handler about a failure, tells its decision, and hands it over: at once, or when an answer that comes later is there. */
export function decide(record: CallRecord, failure: Failure, circumstances: Circumstances, act: (decision: RecoveryDecision) => void): Subscription | undefined {
  const { site, layer } = record;
  const notification = notificationOf(record, failure, circumstances);
  const tell = (decision: RecoveryDecision): void => {
    tellDecision(record, notification, failure, decision);
    act(decision);
  };
  const askedMs = site.runtime.now();
  /** Time goes on while an answer is waited for, and other calls retry meanwhile. */
  const renewed = (): FailureNotification => {
    const now = site.runtime.now();
    const budgetAvailable = circumstances.budgetAvailable && (layer.retryBudget?.available(now) ?? true);
    return { ...notification, elapsedMs: circumstances.elapsedMs + (now - askedMs), turnRemainingMs: record.remainingMs, budgetAvailable };
  };
  const decided = layer.recovery.recover(notification, renewed, site.runtime);
  if (decided instanceof Observable) return decided.pipe(take(1)).subscribe(tell);
  tell(decided);
  return undefined;
}

/** A failure that came from outside, the caller's cancel or a deadline: told like any other, and there is nothing to ask. */
export function conclude(record: CallRecord, failure: Failure, attempt: number): Failure {
  const notification = notificationOf(record, failure, { ...unattempted, attempt });
  record.layer.recovery.tell(notification);
  const decision = decideRecovery({ ...notification, turnRemainingMs: failure.error.kind === 'deadline_exceeded' ? 0 : notification.turnRemainingMs });
  tellDecision(record, notification, failure, decision);
  return { ...failure, code: decision.code };
}
