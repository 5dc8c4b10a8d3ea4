import type { Classification, ToolErrorKind } from '../../contract/error-kind.ts';
import type { DecisiveError } from '../../contract/tool-error.ts';
import type { BreakerOutcome } from './reducer.ts';

/** Kinds that the layer or the caller gave, not the dependency: neutral, whatever the class. */
const NEUTRAL: ReadonlySet<ToolErrorKind> = new Set([
  'canceled',
  'circuit_open',
  'dependency_failed',
  'deadline_exceeded',
  'conflict',
  'duplicate_in_flight',
  'blocked',
  'retry_budget_exhausted',
  'store_unavailable',
  'limit_exceeded',
  'unknown_tool',
  'not_permitted',
  'invalid_parameters',
] as const);
/** Failures in which the dependency gave no answer. */
const UNANSWERED: ReadonlySet<ToolErrorKind> = new Set(['timeout', 'transport_error', 'internal_error'] as const);

/**
 * How a failure counts for a breaker. A permanent failure that the tool itself answered proves that the
 * dependency is reachable, so it counts as a success; one that never reached it says nothing. Where words alone say
 * that it is permanent, somebody answered and no more is known: a proxy's `not found` must not close a breaker.
 *
 * @param rule the rule that gave the class, as `classify` names it
 */
export function breakerOutcome(error: DecisiveError, classification: Classification, rule?: string): BreakerOutcome {
  if (NEUTRAL.has(error.kind)) return 'ignored';
  if (classification === 'transient') return 'failure';
  if (!error.executed || UNANSWERED.has(error.kind)) return 'ignored';
  return rule === 'words' ? 'answered' : 'success';
}
