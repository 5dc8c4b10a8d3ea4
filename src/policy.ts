/**
 * The pure decisions of the layer, for whoever replays, tests or builds on them: `spillway/policy`. Time and chance are
 * arguments, and nothing here runs a tool. `classify` and `decideRecovery` are at the root.
 */
export { backoffDelayMs, retryPolicy } from './policy/retry/backoff.ts';
export { breakerSettings, type BreakerSettings } from './policy/breaker/settings.ts';
export {
  initialBreaker,
  reduceBreaker,
  type BreakerInput,
  type BreakerMemory,
  type Permit,
} from './policy/breaker/reducer.ts';
export { breakerOutcome } from './policy/breaker/outcome.ts';
export { VOLATILE_FIELDS, canonicalJson, type CanonicalJsonOptions } from './policy/key/canonical-json.ts';
export { decideCascade, turnStatus, type Cascade, type SettledNode } from './policy/recovery/cascade.ts';
export { decideClaim, type ClaimDecision, type ClaimQuestion, type DedupeMode } from './policy/key/claim.ts';
export { escalationOf, type Escalation, type EscalationChoice } from './policy/recovery/escalation.ts';
export type { Episode, ExperienceMemory } from './policy/recovery/experience.ts';
export { callKey, type CallKey, type CallKeyParts } from './policy/key/call-key.ts';
export { RETRY_PROFILES } from './policy/profile.ts';
export { seededRandom } from './policy/random.ts';
export { createRedactor, type Capture } from './policy/redact/values.ts';
export { createRetryBudget, type RetryBudget } from './policy/retry/budget.ts';
