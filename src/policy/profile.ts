import type { BreakerOptions, DedupePolicy, Effects, ProfileName, RetryPolicy } from '../contract/policy.ts';

/** The two named retry policies. */
export const RETRY_PROFILES: Readonly<Record<ProfileName, RetryPolicy>> = {
  // SI 2.1: quick, for a person who waits.
  interactive: {
    strategy: 'exponential',
    initialDelayMs: 100,
    maxDelayMs: 800,
    multiplier: 2,
    jitterPercent: 10,
    maxAttempts: 5,
    maxTotalTimeMs: 2_000,
  },
  // CLAW 1.4: patient, for work in the background.
  resilient: {
    strategy: 'full_jitter',
    initialDelayMs: 200,
    maxDelayMs: 4_000,
    multiplier: 2,
    jitterPercent: 0,
    maxAttempts: 4,
    maxTotalTimeMs: 30_000,
  },
};

/** One attempt may take this long: SI 4.1. */
export const ATTEMPT_TIMEOUT_MS = 30_000;
/** One turn may take this long: SI 4.2. */
export const TURN_TIMEOUT_MS = 300_000;

/** What a profile's breakers start from. In the resilient profile a tool's effects choose (R-3.12, CLAW 1.5). */
export function breakerProfile(profile: ProfileName, effects: Effects | undefined): BreakerOptions {
  if (profile === 'interactive' || effects === undefined) return {};
  return effects === 'read' ? { failureThreshold: 8, cooldownMs: 20_000 } : { failureRate: 0.3, cooldownMs: 15_000 };
}

/** What a key is made of, and how long each outcome is remembered: CLAW 1.2 and 1.3. */
export const DEDUPE_DEFAULTS: Required<DedupePolicy> = {
  scope: 'session',
  volatile: ['clientTs', 'retryCount', 'traceparent'],
  whitespace: 'verbatim',
  // A day, five minutes, two minutes: as literals, since a bundler keeps what is computed even where nobody uses it.
  doneTtlMs: 86_400_000,
  failedTtlMs: 300_000,
  leaseMs: 120_000,
};

/** An answer of the store is waited for this long: longer than a slow store takes, shorter than a person waits. */
export const STORE_TIMEOUT_MS = 5_000;
/** The longest result that is kept; what is longer runs once and cannot be replayed. */
export const PAYLOAD_MAX_CHARS = 4_000_000;
