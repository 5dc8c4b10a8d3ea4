import { Observable, take, type Subscription } from 'rxjs';
import type { FailureNotification, RecoveryDecision } from '../contract/recovery.ts';
import { escalationOf } from '../policy/escalation.ts';
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

/** Asks the layer's error handler about a failure, tells its decision, and hands it over: at once, or when an answer that comes later is there. */
export function decide(record: CallRecord, failure: Failure, circumstances: Circumstances, act: (decision: RecoveryDecision) => void): Subscription | undefined {
  const { call, site, layer } = record;
  const { error, classification, breakerState } = failure;
  const notification: FailureNotification = {
    toolName: record.toolName,
    callId: call.callId,
    turnId: site.turnId,
    error,
    classification,
    breakerState,
    turnRemainingMs: record.remainingMs,
    required: call.required,
    ...circumstances,
  };
  const tell = (decision: RecoveryDecision): void => {
    const { strategy, code, reason, delayMs = 0 } = decision;
    const report = { error: reportOf(error), classification, breakerState, attempt: circumstances.attempt };
    record.emit({ type: 'decision', strategy, code, reason, ...report, ...(strategy === 'retry' ? { delayMs } : {}) });
    if (strategy === 'escalate') record.emit({ type: 'escalated', ...escalationOf(notification), ...report });
    act(decision);
  };
  const askedMs = site.runtime.now();
  /** Time goes on while an answer is waited for, and other calls retry meanwhile. */
  const renewed = (): FailureNotification => {
    const now = site.runtime.now();
    const budgetAvailable = circumstances.budgetAvailable && (layer.retryBudget?.available(now) ?? true);
    return { ...notification, elapsedMs: circumstances.elapsedMs + (now - askedMs), turnRemainingMs: record.remainingMs, budgetAvailable };
  };
  const decided = layer.recover(notification, renewed);
  if (decided instanceof Observable) return decided.pipe(take(1)).subscribe(tell);
  tell(decided);
  return undefined;
}
