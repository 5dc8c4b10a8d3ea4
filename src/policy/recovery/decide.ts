import type { FailureNotification, RecoveryDecision, RecoveryStrategy } from '../../contract/recovery.ts';
import { experienced } from './experience.ts';
import { guided } from './guidance.ts';
import { mayBeDoneElsewhere, retryDelayMs, retryRefusal, type RetryRefusal } from '../retry/refusal.ts';

/** Kinds for which no alternative is tried, since it would get round a refusal. */
export const WITHOUT_ALTERNATIVE: ReadonlySet<string> = new Set(['blocked', 'not_permitted', 'conflict']);

const seconds = (ms: number): string => `${Number((ms / 1000).toFixed(3))} s`;

/** Why a failure may not be retried, as a sentence. */
export const reasonOf = (failure: FailureNotification, code: RetryRefusal): string => {
  const { error, attempt, maxAttempts, maxTotalTimeMs, breakerState } = failure;
  switch (code) {
    case 'permanent':
      return `${error.kind} is permanent: asking again would fail again`;
    case 'attempts_exhausted':
      return `all ${maxAttempts} attempts were made`;
    case 'time_exhausted':
      return `the next attempt would start after the ${seconds(maxTotalTimeMs)} that all attempts may take`;
    case 'budget_exhausted':
      return 'the retries that all calls share are used up';
    case 'circuit_open':
      return `the circuit breaker is ${breakerState === 'closed' ? 'ramping up' : breakerState}`;
    case 'uncertain_mutation':
      return `attempt ${attempt} may have taken effect, and doing it twice could do harm`;
    case 'retry_after_too_long':
      return `the server asked for ${seconds(error.retryAfterMs ?? 0)}, longer than the time left`;
    case 'no_retry_hint':
      return 'the server asked not to be asked again';
  }
};

/** Refusals by time alone: the turn's end outranks them, since it would have ended the wait as well. */
export const isAboutTime = (code: RetryRefusal | undefined): boolean =>
  code === undefined || code === 'time_exhausted' || code === 'retry_after_too_long';

/** Every decision that is possible, the one to take first. */
const options = (failure: FailureNotification, code: RetryRefusal | undefined): RecoveryDecision[] => {
  const { error, alternatives, required } = failure;
  const reason =
    code === undefined ? `${error.kind} is temporary, and attempts and time are left` : reasonOf(failure, code);
  const why = { code: code ?? ('transient' as const), reason };
  const [alternative] = alternatives;
  const mayUseAlternative = !mayBeDoneElsewhere(failure) && !WITHOUT_ALTERNATIVE.has(error.kind);
  const last: readonly RecoveryStrategy[] = required
    ? ['escalate', 'partial', 'fail']
    : ['partial', 'escalate', 'fail'];
  return [
    ...(code === undefined ? [{ strategy: 'retry' as const, ...why, delayMs: retryDelayMs(failure) }] : []),
    ...(alternative !== undefined && mayUseAlternative
      ? [{ strategy: 'alternative' as const, ...why, toolName: alternative }]
      : []),
    ...last.map((strategy) => ({ strategy, ...why })),
  ];
};

/**
 * Decides what to do about a failure: retry it, use an alternative, go on without it, ask a person, or fail.
 * Experience is weighed first, and a host's guidance last, so that it decides. Pure: the same notification gives the
 * same decision.
 *
 * @example
 * decideRecovery({ ...notification, classification: 'permanent', alternatives: ['backup'] });
 * // { strategy: 'alternative', code: 'permanent', toolName: 'backup', reason: ... }
 */
export function decideRecovery(failure: FailureNotification): RecoveryDecision {
  const { error, turnRemainingMs } = failure;
  if (error.kind === 'canceled') return { strategy: 'fail', code: 'canceled', reason: 'the call was canceled' };
  if (turnRemainingMs <= 0)
    return { strategy: 'partial', code: 'turn_deadline', reason: 'the time for the turn is over' };
  const code = retryRefusal(failure);
  if (isAboutTime(code) && retryDelayMs(failure) >= turnRemainingMs) {
    return {
      strategy: 'partial',
      code: 'turn_deadline',
      reason: `the turn ends in ${seconds(turnRemainingMs)}, before another attempt could start`,
    };
  }
  const possible = options(failure, code);
  const [decision = { strategy: 'fail', code: 'guidance', reason: 'the host forbids every way to go on' }] = guided(
    failure,
    experienced(failure, possible),
  );
  return decision;
}
