import type { FailureNotification, RecoveryDecision } from '../../contract/recovery.ts';
import { WITHOUT_ALTERNATIVE, reasonOf } from './decide.ts';
import { mayBeDoneElsewhere, retryRefusal, type RetryRefusal } from '../retry/refusal.ts';

/** Why a decision of the host's cannot be followed. */
export interface Objection {
  /** The rule that it goes against, where it is not just unusable. */
  readonly rule?: string;
  readonly because: string;
}

const ruleOf = (code: RetryRefusal, { safetyCritical }: FailureNotification): string => {
  if (code === 'uncertain_mutation' && safetyCritical === true) return 'safetyCritical (R-2.5)';
  return code === 'retry_after_too_long' || code === 'no_retry_hint' ? 'R-2.4' : 'R-2.5';
};

const objectionToRetry = (failure: FailureNotification, delayMs: unknown): Objection | undefined => {
  const { error, turnRemainingMs } = failure;
  if (error.kind === 'canceled') return { because: 'the call was canceled' };
  if (typeof delayMs !== 'number' || !(delayMs >= 0)) return { because: 'its delay is no duration' };
  const code = retryRefusal({ ...failure, nextDelayMs: delayMs });
  if (code !== undefined) return { rule: `${ruleOf(code, failure)}, ${code}`, because: reasonOf(failure, code) };
  if (delayMs >= turnRemainingMs) return { because: 'its delay does not fit the time left' };
  if (delayMs >= (error.retryAfterMs ?? 0)) return undefined;
  return { rule: 'R-2.4, Retry-After', because: 'its delay is shorter than the server asked for' };
};

const objectionToAlternative = (failure: FailureNotification, toolName: string | undefined): Objection | undefined => {
  const { error, alternatives, turnRemainingMs } = failure;
  if (turnRemainingMs <= 0) return { because: 'the time is over' };
  if (error.kind === 'canceled') return { because: 'the call was canceled' };
  if (WITHOUT_ALTERNATIVE.has(error.kind)) {
    return { rule: `R-6.1, ${error.kind}`, because: 'an alternative must not get round a no' };
  }
  if (mayBeDoneElsewhere(failure)) {
    return { rule: 'R-6.1, uncertain_mutation', because: 'an alternative must not do a thing twice' };
  }
  if (toolName !== undefined && alternatives.includes(toolName)) return undefined;
  return { because: 'it names no alternative that is left' };
};

/**
 * Why a decision of a host's error handler cannot be followed; `undefined` when it can. A handler can refuse more than
 * the rules do and never less: it cannot order a retry that they forbid, nor an alternative that gets round a
 * refusal or repeats what may have been done.
 */
export function objection(failure: FailureNotification, decision: RecoveryDecision): Objection | undefined {
  const { strategy, delayMs = 0, toolName } = decision ?? {};
  switch (strategy) {
    case 'retry':
      return objectionToRetry(failure, delayMs);
    case 'alternative':
      return objectionToAlternative(failure, toolName);
    case 'partial':
    case 'escalate':
    case 'fail':
      return undefined;
    default:
      return { because: 'it is no decision' };
  }
}
