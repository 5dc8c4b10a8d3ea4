import type { ToolInForce } from '../../contract/event.ts';
import type { BreakerOptions, RetryBudgetOptions, ToolPolicy } from '../../contract/policy.ts';

/** The policies of a layer, each with every part decided: those that a trace begins with, or changed ones. */
export interface LayerPolicies {
  readonly tools: readonly ToolInForce[];
  /** Absent where retries have no limit in common. */
  readonly retryBudget?: Required<RetryBudgetOptions> | undefined;
}

/** What a trace leaves out of a breaker is off: `Infinity`, which JSON has no word for. */
const OFF: BreakerOptions = { failureThreshold: Infinity, failureRate: Infinity, slowCallMs: Infinity };

/** A policy in force as a tool's author would write it. */
export const policyOf = ({ policy, effects, mode }: ToolInForce): ToolPolicy => {
  const { timeoutMs, idleTimeoutMs, retry, breaker, alternatives, classification } = policy;
  const { enforcesKey, safetyCritical, cost, dedupe } = policy;
  return {
    timeoutMs,
    ...(idleTimeoutMs === undefined ? {} : { idleTimeoutMs }),
    retry,
    breaker: breaker === undefined ? false : { ...OFF, ...breaker },
    alternatives,
    classification,
    enforcesKey,
    safetyCritical,
    cost,
    dedupe,
    effects,
    mode,
  };
};
