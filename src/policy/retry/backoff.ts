import type { RetryPolicy } from '../../contract/policy.ts';
import { power } from '../power.ts';
import { RETRY_PROFILES } from '../profile.ts';
import { checkKeys, checkNumber, checkOneOf, duration, given, integer, number } from '../check.ts';

const MAX_ATTEMPTS_MAX = 1_000_000;
const RETRY_KEYS = Object.keys(RETRY_PROFILES.interactive);

/**
 * A whole retry policy from a part of one. An `initialDelayMs` above the default cap raises that cap, so that one
 * option alone means what it says.
 * @throws RangeError for an option out of its range
 */
export function retryPolicy(
  part: Partial<RetryPolicy> = {},
  base: RetryPolicy = RETRY_PROFILES.interactive,
): RetryPolicy {
  checkKeys('a retry policy', part, RETRY_KEYS);
  const policy = { ...base, ...given(part) };
  checkOneOf('strategy', policy.strategy, ['exponential', 'full_jitter', 'decorrelated', 'constant']);
  checkNumber('initialDelayMs', policy.initialDelayMs, duration);
  checkNumber('maxDelayMs', policy.maxDelayMs, duration);
  checkNumber('multiplier', policy.multiplier, number(1, 1000));
  checkNumber('jitterPercent', policy.jitterPercent, number(0, 100));
  checkNumber('maxAttempts', policy.maxAttempts, integer(1, MAX_ATTEMPTS_MAX));
  checkNumber('maxTotalTimeMs', policy.maxTotalTimeMs, duration);
  return part.maxDelayMs === undefined
    ? { ...policy, maxDelayMs: Math.max(policy.maxDelayMs, policy.initialDelayMs) }
    : policy;
}

/**
 * The wait before a retry, in milliseconds, never rounded. Jitter comes after the cap, so that delays at the
 * cap still differ.
 *
 * @param retry 0 before the first retry
 * @param previousDelayMs the wait before this one; `decorrelated` grows from it
 * @param random a number in [0, 1), drawn only by strategies that use it
 */
export function backoffDelayMs(
  policy: RetryPolicy,
  retry: number,
  previousDelayMs: number | undefined,
  random: () => number,
): number {
  const { strategy, initialDelayMs, maxDelayMs, multiplier, jitterPercent } = policy;
  const cappedMs = (): number => Math.min(maxDelayMs, initialDelayMs * power(multiplier, retry));
  const spread = (delayMs: number): number =>
    jitterPercent === 0 ? delayMs : delayMs * (1 + (jitterPercent / 100) * (2 * random() - 1));
  switch (strategy) {
    case 'exponential':
      return spread(cappedMs());
    case 'constant':
      return spread(Math.min(maxDelayMs, initialDelayMs));
    case 'full_jitter':
      return random() * cappedMs();
    case 'decorrelated': {
      const topMs = Math.min(maxDelayMs, 3 * (previousDelayMs ?? initialDelayMs));
      const bottomMs = Math.min(initialDelayMs, topMs);
      return bottomMs + random() * (topMs - bottomMs);
    }
  }
}
