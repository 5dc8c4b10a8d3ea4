import type { FailureNotification, GuidanceRule, RecoveryDecision, RecoveryStrategy } from '../../contract/recovery.ts';

const applies = ({ when = {} }: GuidanceRule, failure: FailureNotification): boolean => {
  const { tools, kinds, classification, costFrom, attemptFrom } = when;
  return (
    (tools === undefined || tools.includes(failure.toolName)) &&
    (kinds === undefined || kinds.includes(failure.error.kind)) &&
    (classification === undefined || classification === failure.classification) &&
    (costFrom === undefined || (failure.cost ?? 0) >= costFrom) &&
    (attemptFrom === undefined || failure.attempt >= attemptFrom)
  );
};

/** A preferred strategy's place; what is not named comes after, in its own order. */
const rank = (prefer: readonly RecoveryStrategy[], strategy: RecoveryStrategy): number => {
  const place = prefer.indexOf(strategy);
  return place < 0 ? prefer.length : place;
};

const follow = (
  possible: readonly RecoveryDecision[],
  { forbid = [], force, prefer = [] }: GuidanceRule,
): readonly RecoveryDecision[] => {
  const allowed = possible.filter(({ strategy }) => !forbid.includes(strategy));
  const forced = allowed.filter(({ strategy }) => strategy === force);
  if (forced.length > 0) return forced;
  return allowed.toSorted((a, b) => rank(prefer, a.strategy) - rank(prefer, b.strategy));
};

/**
 * What a host's rules leave of the possible decisions, the one to take first. All rules that apply are
 * followed, in their order. A decision that a rule brought to the front says so and why.
 */
export function guided(
  failure: FailureNotification,
  possible: readonly RecoveryDecision[],
): readonly RecoveryDecision[] {
  let left = possible;
  for (const rule of failure.guidance ?? []) {
    if (!applies(rule, failure)) continue;
    const before = left[0];
    left = follow(left, rule);
    const [first, ...rest] = left;
    if (first !== undefined && first.strategy !== before?.strategy)
      left = [{ ...first, code: 'guidance', reason: rule.reason }, ...rest];
  }
  return left;
}
