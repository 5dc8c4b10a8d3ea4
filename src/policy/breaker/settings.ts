import type { BreakerOptions } from '../../contract/policy.ts';
import {
  checkKeys,
  checkNumber,
  checkOneOf,
  duration,
  durationOrInfinity,
  given,
  integer,
  integerOrInfinity,
  number,
  positiveDuration,
} from '../check.ts';

/** Every option of a breaker, decided. */
export type BreakerSettings = Required<BreakerOptions>;

/** A window is copied with each outcome, so its size is bounded. */
const COUNT_MAX = 10_000;
const COOLDOWN_MAX_MS = 300_000;
const HALF_OPEN_TIMEOUT_MS = 60_000;

/** Sources: SI 3.2 (5 failures, 30 s, 2 successes), CLAW 1.5 (50 % of 20, at least 10, in 120 s; one probe). */
const DEFAULTS = {
  failureThreshold: 5,
  failureRate: 0.5,
  windowSize: 20,
  windowMs: 120_000,
  cooldownMs: 30_000,
  cooldownMultiplier: 1,
  probes: 1,
  successThreshold: 2,
  rampMs: 0,
  slowCallMs: Infinity,
  initialState: 'closed',
} as const;

const KEYS = [...Object.keys(DEFAULTS), 'minimumCalls', 'cooldownMaxMs', 'halfOpenTimeoutMs'];

/**
 * Decides every option of a breaker.
 * @throws RangeError that names the option, the rule and the value
 */
export function breakerSettings(options: BreakerOptions = {}): BreakerSettings {
  checkKeys('a circuit breaker', options, KEYS);
  const chosen = { ...DEFAULTS, ...given(options) };
  const settings: BreakerSettings = {
    minimumCalls: Math.min(10, chosen.windowSize),
    cooldownMaxMs: Math.max(COOLDOWN_MAX_MS, chosen.cooldownMs),
    halfOpenTimeoutMs: Math.max(HALF_OPEN_TIMEOUT_MS, chosen.cooldownMs),
    ...chosen,
  };
  checkNumber('failureThreshold', settings.failureThreshold, integerOrInfinity(1, COUNT_MAX));
  if (settings.failureRate !== Infinity) {
    checkNumber('failureRate', settings.failureRate, {
      ...number(0, 1),
      rule: 'above 0 and up to 1, or Infinity',
      holds: (rate) => rate > 0 && rate <= 1,
    });
  }
  checkNumber('windowSize', settings.windowSize, integer(1, COUNT_MAX));
  checkNumber('windowMs', settings.windowMs, positiveDuration);
  checkNumber('minimumCalls', settings.minimumCalls, {
    ...integer(1, settings.windowSize),
    rule: `an integer from 1 to windowSize, which is ${settings.windowSize}`,
  });
  checkNumber('cooldownMs', settings.cooldownMs, duration);
  checkNumber('cooldownMultiplier', settings.cooldownMultiplier, number(1, 1000));
  checkNumber('cooldownMaxMs', settings.cooldownMaxMs, duration);
  checkNumber('probes', settings.probes, integer(1, COUNT_MAX));
  checkNumber('successThreshold', settings.successThreshold, integer(1, COUNT_MAX));
  checkNumber('halfOpenTimeoutMs', settings.halfOpenTimeoutMs, positiveDuration);
  checkNumber('rampMs', settings.rampMs, duration);
  checkNumber('slowCallMs', settings.slowCallMs, durationOrInfinity);
  checkOneOf('initialState', settings.initialState, ['closed', 'forced_open', 'disabled']);
  return settings;
}
