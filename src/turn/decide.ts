import { Observable, take, type Subscription } from 'rxjs';
import type { FailureNotification, RecoveryDecision } from '../contract/recovery.ts';
import type { CallRecord } from './call-record.ts';
import type { Failure } from './result.ts';

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
  const tell = (decision: RecoveryDecision): void => {
    const { strategy, code, reason, delayMs = 0 } = decision;
    record.emit({ type: 'decision', strategy, code, reason, classification, breakerState, ...(strategy === 'retry' ? { delayMs } : {}) });
    act(decision);
  };
  const decided = layer.recover({
    toolName: record.toolName,
    callId: call.callId,
    turnId: site.turnId,
    error,
    classification,
    breakerState,
    turnRemainingMs: record.remainingMs,
    required: call.required,
    ...circumstances,
  });
  if (decided instanceof Observable) return decided.pipe(take(1)).subscribe(tell);
  tell(decided);
  return undefined;
}
