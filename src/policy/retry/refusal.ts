import type { FailureNotification, RecoveryCode } from '../../contract/recovery.ts';
import type { DecisiveError } from '../../contract/tool-error.ts';

/** Why a failure may not be retried. */
export type RetryRefusal = Exclude<
  RecoveryCode,
  'canceled' | 'turn_deadline' | 'transient' | 'guidance' | 'experience'
>;

/** What of a failure says whether it may be retried. */
export type RetryQuestion = { readonly error: DecisiveError } & Pick<
  FailureNotification,
  | 'classification'
  | 'breakerState'
  | 'attempt'
  | 'maxAttempts'
  | 'elapsedMs'
  | 'maxTotalTimeMs'
  | 'nextDelayMs'
  | 'budgetAvailable'
  | 'effects'
  | 'safetyCritical'
  | 'hasIdempotencyKey'
  | 'retrySafe'
>;

/** The wait before a retry: the backoff, and no less than the server asked for, if that can be read. */
export const retryDelayMs = ({
  nextDelayMs,
  error: { retryAfterMs = 0 },
}: Pick<RetryQuestion, 'nextDelayMs' | 'error'>): number => (retryAfterMs > nextDelayMs ? retryAfterMs : nextDelayMs);

/** Whether doing it again can do no harm, although the failed attempt may have taken effect. */
const mayRepeatEffects = ({ effects, safetyCritical, hasIdempotencyKey, retrySafe }: RetryQuestion): boolean =>
  effects === 'read' || (safetyCritical !== true && (hasIdempotencyKey || retrySafe));

const mayHaveTakenEffect = (failure: RetryQuestion): boolean => failure.error.uncertain && !mayRepeatEffects(failure);

/**
 * Whether an alternative could do again what the failed tool may have done. A key that the tool's own resource
 * checks, or a caller's leave to repeat that very call, says nothing of another resource.
 */
export const mayBeDoneElsewhere = ({ error, effects }: Pick<RetryQuestion, 'error' | 'effects'>): boolean =>
  error.uncertain && effects !== 'read';

/** Why a failure may not be retried, the first reason that holds; `undefined` when it may. */
export function retryRefusal(failure: RetryQuestion): RetryRefusal | undefined {
  const { error, attempt, maxAttempts, elapsedMs, maxTotalTimeMs, nextDelayMs } = failure;
  const hintMs = error.retryAfterMs;
  const unreadableHint = hintMs !== undefined && !(hintMs >= 0);
  if (failure.classification === 'permanent') return 'permanent';
  if (attempt >= maxAttempts) return 'attempts_exhausted';
  if (elapsedMs + nextDelayMs >= maxTotalTimeMs) return 'time_exhausted';
  if (!failure.budgetAvailable || error.kind === 'retry_budget_exhausted') return 'budget_exhausted';
  if (error.kind === 'circuit_open' || failure.breakerState === 'open' || failure.breakerState === 'forced_open')
    return 'circuit_open';
  if (mayHaveTakenEffect(failure)) return 'uncertain_mutation';
  if (!unreadableHint && elapsedMs + retryDelayMs(failure) >= maxTotalTimeMs) return 'retry_after_too_long';
  return unreadableHint ? 'no_retry_hint' : undefined;
}
